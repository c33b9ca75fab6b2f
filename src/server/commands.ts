/** The commands beside the server, read by commander. */
import { Command, CommanderError } from 'commander'

export async function runCommand(args: readonly string[]): Promise<number> {
  let code = 0
  const program = new Command('cairndns').exitOverride()
  program
    .command('check')
    .description('Parse and set up Corefiles without serving them; exits 1 if one of them could not start')
    .argument('<conf...>', 'Corefiles, ConfigMaps in YAML, or - for standard input')
    .option('--json', 'print one JSON document')
    .option('--plugin-cfg <file>', 'table of further plugins, as for the server')
    .option('--dns.port <port>', 'default port', '53')
    .action(async (files: string[], options: { json?: true; pluginCfg?: string; 'dns.port': string }) => {
      const { check } = await import('./check.js')
      code = await check(files, { json: options.json === true, pluginCfg: options.pluginCfg, port: options['dns.port'] })
    })
  program
    .command('query')
    .description('Ask a DNS server, and print the answer as dig does')
    .argument('<words...>', 'NAME, TYPE, CLASS, @SERVER[:PORT], -x ADDRESS, +tcp, +dnssec, +short, …')
    .helpOption('--help')
    .allowUnknownOption()
    .action(async () => {
      // The words as they came: dig's options are not commander's.
      const words = args.slice(1)
      const { query } = await import('./query-cli.js')
      code = await query(words)
    })
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    throw error
  }
  return code
}
