/** What `npm start` prints below the banner: lines to paste. */

export function printHints(listening: readonly string[], print: (line: string) => void): void {
  const port = /:(\d+)/.exec(listening.find((line) => !line.includes('://') && /:\d/.test(line)) ?? '')?.[1]
  if (port === undefined) return
  const dig = `dig @127.0.0.1 -p ${port}`
  print('')
  print(`Answering on port ${port}, UDP and TCP, IPv4 and IPv6. Try, in another terminal:`)
  for (const question of QUESTIONS) print(`  ${dig} ${question}`)
  print('Ctrl-C ends it.')
}

const QUESTIONS = [
  'kubernetes.default.svc.cluster.local A',
  '_https._tcp.kubernetes.default.svc.cluster.local SRV',
  '-x 10.96.0.1',
  'absent.default.svc.cluster.local A',
  'github.corp.mycloud.io A',
]
