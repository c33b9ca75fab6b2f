/**
 * `npm run bench -- forward`: what a question costs that has to be asked upstream, over UDP, TCP and TLS, beside other forwarders. Options as of the
 * speed bench.
 */
import { runBench } from './speed/run.js'

export default async function main(args: readonly string[]): Promise<void> {
  await runBench('forward', args, ['miss', 'miss-tcp', 'miss-tls'])
}
