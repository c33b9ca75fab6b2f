#!/usr/bin/env bash
# Builds kube-apiserver, kube-controller-manager and etcd into a cache folder, for `npm run test:e2e`. Needs Go and a module proxy.
# Prints the folder. Does nothing when what is there came from this go.mod and go.sum. Ends with 75 where there is no Go or the modules
# cannot be had, with 1 where they do not build.
set -euo pipefail
cd "$(dirname "$0")"
out=${CAIRNDNS_CONTROL_PLANE:-${XDG_CACHE_HOME:-$HOME/.cache}/cairndns/control-plane}
stamp=$(cat go.mod go.sum | sha256sum | cut -d' ' -f1)
if [ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ]; then
  echo "$out"
  exit 0
fi
command -v go >/dev/null || { echo 'build.sh: no go command found' >&2; exit 75; }

etcd=go.etcd.io/etcd/server/v3
kubernetes=k8s.io/kubernetes
# Loads the modules of all packages, and no others. A network that swallows packets must not hold this up for ever.
CGO_ENABLED=0 timeout 900 go list -mod=readonly -deps "$etcd" "$kubernetes/cmd/kube-apiserver" "$kubernetes/cmd/kube-controller-manager" >/dev/null ||
  { echo 'build.sh: the modules cannot be had' >&2; exit 75; }

version=$(go list -m -f '{{.Version}}' "$kubernetes")
minor=${version#v1.}
base=k8s.io/component-base/version
flags="-s -w -X $base.gitVersion=$version -X $base.gitMajor=1 -X $base.gitMinor=${minor%%.*}"
mkdir -p "$out"
rm -f "$out/stamp"

# build NAME PACKAGE: beside its final place first, so that a build cut short leaves no half a binary.
build() {
  CGO_ENABLED=0 nice -n 19 go build -trimpath -mod=readonly -ldflags "$flags" -o "$out/$1.new" "$2"
  mv "$out/$1.new" "$out/$1"
}
build etcd "$etcd"
build kube-apiserver "$kubernetes/cmd/kube-apiserver"
build kube-controller-manager "$kubernetes/cmd/kube-controller-manager"
printf 'kubernetes %s\netcd %s\n' "$version" "$(go list -m -f '{{.Version}}' "$etcd")" >"$out/versions"
echo "$stamp" >"$out/stamp"
echo "$out"
