/** What a plugin's set-up gets to work with, in a serving thread and in `check`. */
import { isAbsolute, join, resolve } from 'node:path'
import { type Argument, CorefileError, type Directive, nearest, type Position } from '../corefile/tree.js'
import type { Plugin, SetupContext } from '../plugins/contract.js'
import type { Block } from './block.js'
import type { Generation } from './generation.js'

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

/** `uses` are the directives that this set-up is about; they tell where, when the plugin does not. */
export function makeContext(generation: Generation, block: Block, plugin: string, uses: readonly Directive[]): SetupContext {
  const { deps } = generation
  const place = (at: Place | undefined): string => {
    const pos = positionOf(at ?? uses[0]!)
    return `${pos.file}:${pos.line}`
  }
  return {
    block: block.config,
    log: deps.logger(plugin),
    clock: deps.clock,
    metrics: deps.metrics,
    checking: deps.checking ?? false,
    thread: generation.options.thread,
    chain: block.plugins,
    error: (message, at, candidates) => configError(plugin, message, at ?? uses[0], candidates),
    fail: (message) => new Error(`plugin/${plugin}: ${message}`),
    note: (message, at) => void generation.notes.push(`${place(at)}: plugin/${plugin}: ${message}`),
    warn: (message, at) => void generation.warnings.push(`${place(at)}: plugin/${plugin}: ${message}`),
    path: (file) => (isAbsolute(file) ? file : resolve(join(block.config.root, file))),
    find: (name) => block.plugins.find((other) => other.name === name),
    findAll: (name) => block.plugins.filter((other) => other.name === name),
    everywhere: (name) => generation.blocks.flatMap(({ config, plugins }) => holders(config, plugins, name)),
    resolve: (query) => generation.resolve(query),
    shared: (key, create, dispose) => generation.outliving.shared.get(generation.id, key, create, dispose),
    finish: (fn) => void block.finishers.push(fn),
    onServerReply: (fn) => void generation.reported.push(fn),
    replica: (key, replica) =>
      generation.outliving.replicas.add(generation.id, key, replica as Parameters<typeof generation.outliving.replicas.add>[2]),
    fatal: (text) => generation.outliving.fatal(`[FATAL] plugin/${plugin}: ${text}`),
  }
}

const holders = (block: Block['config'], plugins: readonly Plugin[], name: string): { block: Block['config']; plugin: Plugin }[] =>
  plugins.filter((plugin) => plugin.name === name).map((plugin) => ({ block, plugin }))
