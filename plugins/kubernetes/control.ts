/** The control half of the kubernetes plugin: the source that the options name, registered under the key that the replicas ask for. */
import { existsSync } from 'node:fs'
import type { ControlContext, ControlPart, Directive } from '../../src/plugins/contract.js'
import { parseOptions, sourceKey } from './options.js'
import { openAccess } from './source/access-open.js'
import { apiSource } from './source/api-source.js'
import { manifestSource } from './source/manifest-source.js'

export function control(uses: readonly Directive[], ctx: ControlContext): ControlPart | undefined {
  // The serving half has told the warnings already.
  const { source: options } = parseOptions(uses, { ...ctx, warn: () => undefined })
  if (options.access.kind === 'manifests') checkPaths(options.access.paths, uses, ctx)
  if (options.access.kind === 'cluster' && ctx.checking && !process.env.KUBERNETES_SERVICE_HOST)
    ctx.note('not in a cluster here: a start needs `endpoint`, `kubeconfig` or `manifests`, or a pod with a service account', uses[0])
  if (ctx.checking) return undefined
  const key = sourceKey(options)
  const { log, clock, metrics } = ctx
  if (options.access.kind === 'manifests') {
    ctx.source(manifestSource({ key, paths: options.access.paths, options, log, clock }))
  } else {
    const { access } = options
    // A failed start is worded as CoreDNS words errors of set-up, where it does this.
    const open = () => openAccess(access, clock).catch((error: Error) => Promise.reject(ctx.fail(error.message, uses[0])))
    ctx.source(apiSource({ key, options, access: open, log, clock, metrics }))
  }
  return undefined
}

/** A start without any objects would deny every name: so a path that is not there is an error then, and a remark of `check`. */
function checkPaths(paths: readonly string[], uses: readonly Directive[], ctx: ControlContext): void {
  const at = uses[0]?.block?.find(({ name }) => name === 'manifests') ?? uses[0]
  for (const path of paths) {
    if (existsSync(path)) continue
    const message = `manifests: no such file or folder: ${path}`
    if (!ctx.checking) throw ctx.error(message, at)
    ctx.note(message, at)
  }
}
