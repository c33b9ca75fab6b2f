/** `loadbalance`: set-up of both halves; the weight file is read in the control thread. */
import { randomInt } from 'node:crypto'
import { statSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { isAbsolute, join } from 'node:path'
import { type Message, RCODE, TYPE } from '../../dns/index.js'
import {
  type Argument,
  after,
  type ControlContext,
  type ControlPart,
  type Directive,
  formatDuration,
  type Handler,
  type Passing,
  type Plugin,
  type PluginModule,
  parseDuration,
  type Query,
  type Reply,
  type SetupContext,
  UNTOUCHED,
} from '../contract.js'
import { type FilePart, FileReplica, FileSource, firstValue } from '../file-source.js'
import { preferring, type Random, roundRobin, weighted } from './order.js'
import { chooserOf, parseWeights, tableOf, type WeightRow, type Weights } from './weights.js'

interface Options {
  /** undefined: round robin. */
  readonly weights: WeightFile | undefined
  readonly prefer: readonly string[]
}

interface WeightFile {
  /** As CoreDNS names it. */
  readonly path: string
  /** Absolute. */
  readonly file: string
  /** Milliseconds; 0: never. */
  readonly reload: number
  readonly argument: Argument
}

type Context = SetupContext | ControlContext

const module: PluginModule = {
  name: 'loadbalance',
  apiVersion: 1,
  setup(uses: readonly Directive[], ctx: SetupContext): Plugin {
    const { weights, prefer } = parse(uses, ctx)
    const rank = prefer.length === 0 ? undefined : rankIn(prefer)
    const policy =
      weights === undefined ? { order: (reply: Message) => roundRobin(reply, quick), start: undefined } : byWeight(weights, ctx)
    const order = rank === undefined ? policy.order : (reply: Message) => preferring(policy.order(reply), rank)
    return { ...pluginOf(order, policy.start), ...(weights === undefined && rank === undefined ? { stands } : {}) }
  },
  control(uses, ctx): ControlPart | undefined {
    const { weights } = parse(uses, ctx)
    if (weights === undefined) return undefined
    ctx.source(sourceOf(weights, ctx))
    return { onStartup: () => mustBeReadable(weights, ctx) }
  },
}
export default module

/** Which server comes first needs no cryptography, only speed. */
const quick: Random = (limit) => Math.floor(Math.random() * limit)

const SHUFFLES: Passing = { shuffles: true }

/** Of round robin: what has no two addresses is let through as it is; what has gets another order each time. */
function stands(_query: Query, reply: Message): Passing | undefined {
  const { layout } = reply
  if ((reply.flags & 0xf) !== RCODE.NOERROR || layout === undefined) return UNTOUCHED
  if (layout.mixed) return undefined
  return layout.addresses.length < 2 ? UNTOUCHED : SHUFFLES
}

function pluginOf(order: (reply: Message) => Message, start: (() => Promise<void>) | undefined): Plugin {
  const change = (reply: Message): Message => {
    if ((reply.flags & 0xf) !== RCODE.NOERROR) return reply
    const type = reply.question?.type
    return type === TYPE.AXFR || type === TYPE.IXFR ? reply : order(reply)
  }
  return {
    name: 'loadbalance',
    wraps: true,
    serveDNS: (query: Query, next: Handler): Reply | Promise<Reply> => after(next(query), change),
    ...(start === undefined ? {} : { onStartup: start }),
  }
}

// ---- set-up

function parse(uses: readonly Directive[], ctx: Context): Options {
  let weights: WeightFile | undefined
  const prefer: string[] = []
  for (const use of uses) {
    const [policy, ...args] = use.args
    weights = policy?.text === 'weighted' ? weightFileOf(use, args, ctx) : undefined
    if (policy?.text === 'weighted') continue
    if (policy !== undefined && policy.text !== 'round_robin') throw ctx.fail(`unknown policy: ${policy.text}`, policy)
    if (args.length > 0) throw ctx.error('unknown property for round_robin', args[0])
    for (const property of use.block ?? []) {
      if (property.name !== 'prefer') throw ctx.error(`unknown property '${property.name}'`, property, ['prefer'])
      for (const arg of property.args) prefer.push(networkOf(arg, ctx))
    }
  }
  return { weights, prefer }
}

function weightFileOf(use: Directive, args: readonly Argument[], ctx: Context): WeightFile {
  const [file, more] = args
  if (file === undefined) throw ctx.error('missing weight file argument', use)
  if (more !== undefined) throw ctx.error('unexpected argument(s)', more)
  let reload = 30_000
  for (const property of use.block ?? []) {
    if (property.name !== 'reload') throw ctx.error(`unknown property '${property.name}'`, property, ['reload'])
    reload = reloadOf(property, ctx)
  }
  const path = isAbsolute(file.text) || ctx.block.root === '' ? file.text : join(ctx.block.root, file.text)
  return { path, file: ctx.path(file.text), reload, argument: file }
}

function reloadOf(property: Directive, ctx: Context): number {
  const [arg, more] = property.args
  if (arg === undefined) throw ctx.error('reload duration value is missing', property)
  if (more !== undefined) throw ctx.error('unexpected argument', more)
  try {
    return Math.max(0, parseDuration(arg.text))
  } catch {
    // CoreDNS says it in the plugin's own words.
    throw ctx.error(`invalid reload duration '${arg.text}'`, arg)
  }
}

function networkOf(arg: Argument, ctx: Context): string {
  const [address = '', bits = '', surplus] = arg.text.split('/')
  const family = isIP(address)
  const wrong =
    family === 0 || address.includes('%') || surplus !== undefined || !/^\d{1,3}$/.test(bits) || Number(bits) > (family === 4 ? 32 : 128)
  if (wrong) throw ctx.error(`invalid CIDR "${arg.text}": invalid CIDR address: ${arg.text}`, arg)
  return arg.text
}

function rankIn(networks: readonly string[]): (address: string) => number {
  const lists = networks.map((network) => {
    const [address = '', bits] = network.split('/')
    const list = new BlockList()
    list.addSubnet(address, Number(bits), isIP(address) === 4 ? 'ipv4' : 'ipv6')
    return list
  })
  return (address) => lists.findIndex((list) => list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6'))
}

// ---- weights

const keyOf = ({ file, reload }: WeightFile): string => `loadbalance ${JSON.stringify([file, reload])}`

function byWeight(weights: WeightFile, ctx: SetupContext): { order: (reply: Message) => Message; start: () => Promise<void> } {
  if (ctx.checking) {
    try {
      statSync(weights.file)
    } catch (error) {
      ctx.note(`weight file ${weights.path}: ${(error as Error).message}`, weights.argument)
    }
  }
  let replica: FileReplica<WeightRow, Weights> | undefined
  const choose = chooserOf(
    () => replica?.value ?? new Map(),
    (limit) => randomInt(limit),
  )
  return {
    order: (reply) => weighted(reply, choose),
    start() {
      replica = ctx.shared(
        keyOf(weights),
        () => new FileReplica<WeightRow, Weights>(tableOf),
        () => undefined,
      )
      ctx.replica<FilePart<WeightRow>>(keyOf(weights), replica)
      return firstValue(replica, ctx.clock)
    },
  }
}

function sourceOf(weights: WeightFile, ctx: ControlContext): FileSource<WeightRow> {
  // What is wrong at the first look keeps the server from starting, or is said there.
  let looked = false
  return new FileSource<WeightRow>({
    key: keyOf(weights),
    path: weights.file,
    interval: weights.reload,
    clock: ctx.clock,
    parse: (text) => parseWeights(text, weights.path),
    onRead() {
      looked = true
      ctx.log.info(`Successfully reloaded weight file ${weights.path}`)
    },
    onError(error) {
      if (looked) ctx.log.error(error.code === undefined ? error.message : OPEN_ERROR)
      looked = true
    },
  })
}

const OPEN_ERROR = 'weight file open error'

/** A file that is missing may come while it is being looked for; one that is wrong keeps the server from starting. */
function mustBeReadable(weights: WeightFile, ctx: ControlContext): void {
  const failure = failureOf(weights, ctx)
  if (failure === undefined) return
  if (failure !== OPEN_ERROR || weights.reload === 0) throw ctx.fail(failure, weights.argument)
  ctx.log.warning(`Failed to open weight file:${failure}. Will try again in ${formatDuration(weights.reload)}`)
}

function failureOf(weights: WeightFile, ctx: ControlContext): string | undefined {
  const probe = new FileSource<WeightRow>({
    key: '',
    path: weights.file,
    interval: 0,
    clock: ctx.clock,
    parse: (text) => parseWeights(text, weights.path),
    onRead: () => undefined,
    onError: (error) => {
      failure = error.code === undefined ? error.message : OPEN_ERROR
    },
  })
  let failure: string | undefined
  probe.start(() => undefined)
  return failure
}
