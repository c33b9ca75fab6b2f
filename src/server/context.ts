/** What a plugin's set-up gets to work with, in a serving thread and in `check`. */
import { isAbsolute, join, resolve } from 'node:path'
import { type Argument, CorefileError, type Directive, nearest, type Position, placedError } from '../corefile/tree.js'
import type { BlockConfig, Clock, Logger, MetricsScope, Plugin, SetupContext } from '../plugins/contract.js'
import type { Block } from './block.js'
import type { Generation } from './generation.js'
import { dgramTransport } from './transport.js'

type Place = Directive | Argument | Position

const positionOf = (at: Place): Position => ('pos' in at ? at.pos : at)
const wordOf = (at: Place): string | undefined => ('text' in at ? at.text : 'name' in at ? at.name : undefined)

/** Error with file and line, in CoreDNS's words; `prefix` is the plugin's. */
export function configError(plugin: string, message: string, at: Place | undefined, candidates?: Iterable<string>): CorefileError {
  const pos = at === undefined ? { file: 'Corefile', line: 0, column: 0 } : positionOf(at)
  const word = at === undefined ? undefined : wordOf(at)
  const error = new CorefileError(
    message,
    pos,
    word,
    word !== undefined && candidates !== undefined ? nearest(word, candidates) : undefined,
  )
  error.message = `plugin/${plugin}: ${error.message}`
  return error
}

export interface ContextParts {
  readonly block: BlockConfig
  readonly plugin: string
  /** The directives that this set-up is about; they tell where, when the plugin does not. */
  readonly uses: readonly Directive[]
  readonly log: Logger
  readonly clock: Clock
  readonly metrics: MetricsScope
  readonly checking: boolean
  /** Take whole lines. */
  readonly note: (line: string) => void
  readonly warn: (line: string) => void
}

/** What set-up in a serving thread and the control part have in common. */
export function commonContext({ block, plugin, uses, log, clock, metrics, checking, note, warn }: ContextParts) {
  const line = (message: string, at: Place | undefined): string => {
    const pos = positionOf(at ?? uses[0]!)
    return `${pos.file}:${pos.line}: plugin/${plugin}: ${message}`
  }
  return {
    block,
    log,
    clock,
    metrics,
    checking,
    error: (message: string, at?: Place, candidates?: Iterable<string>) => configError(plugin, message, at ?? uses[0], candidates),
    fail: (message: string, at: Place | undefined = uses[0]) =>
      at === undefined
        ? new Error(`plugin/${plugin}: ${message}`)
        : placedError(`plugin/${plugin}: ${message}`, positionOf(at), wordOf(at)),
    note: (message: string, at?: Place) => note(line(message, at)),
    warn: (message: string, at?: Place) => warn(line(message, at)),
    path: (file: string) => (isAbsolute(file) ? file : resolve(join(block.root, file))),
  }
}

export function makeContext(generation: Generation, block: Block, plugin: string, uses: readonly Directive[]): SetupContext {
  const { deps } = generation
  return {
    ...commonContext({
      block: block.config,
      plugin,
      uses,
      log: deps.logger(plugin),
      clock: deps.clock,
      metrics: deps.metrics,
      checking: deps.checking ?? false,
      note: (text) => void generation.notes.push(text),
      warn: (text) => void generation.warnings.push(text),
    }),
    connectDatagram: deps.connectDatagram,
    thread: generation.options.thread,
    endOfRound: (deps.transport ?? dgramTransport).endOfRound,
    chain: block.plugins,
    find: (name) => block.plugins.find((other) => other.name === name),
    findAll: (name) => block.plugins.filter((other) => other.name === name),
    everywhere: (name) => generation.blocks.flatMap(({ config, plugins }) => holders(config, plugins, name)),
    resolve: (query) => generation.resolve(query),
    shared: (key, create, dispose) => generation.outliving.shared.get(generation.id, key, create, dispose),
    tally: () => generation.tally(),
    counterparts: (key, receive) => generation.outliving.talk.open(`${plugin} ${key}`, receive),
    finish: (fn) => void block.finishers.push(fn),
    onServerReply: (fn) => void generation.reported.push(fn),
    replica: (key, replica) =>
      generation.outliving.replicas.add(generation.id, key, replica as Parameters<typeof generation.outliving.replicas.add>[2]),
    fatal: (text) => generation.outliving.fatal(`[FATAL] plugin/${plugin}: ${text}`),
  }
}

const holders = (block: Block['config'], plugins: readonly Plugin[], name: string): { block: Block['config']; plugin: Plugin }[] =>
  plugins.filter((plugin) => plugin.name === name).map((plugin) => ({ block, plugin }))
