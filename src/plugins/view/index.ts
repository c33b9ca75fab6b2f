/** `view`: a server block that only takes the queries for which its expressions are true. */
import {
  compileExpression,
  type Directive,
  type ExprEnv,
  type Expression,
  ONCE,
  type Plugin,
  type PluginModule,
  type Query,
  type SetupContext,
  wrongCount,
} from '../contract.js'

const module: PluginModule = {
  name: 'view',
  apiVersion: 1,
  setup(uses, ctx) {
    if (uses[1] !== undefined) throw ctx.fail(ONCE, uses[1])
    const use = uses[0]!
    const [name, more] = use.args
    if (name === undefined || more !== undefined) throw ctx.error(wrongCount(use), more ?? use)
    ctx.block.viewName = name.text
    return new View(
      name.text,
      (use.block ?? []).map((option) => test(option, ctx)),
    )
  },
}
export default module

function test(option: Directive, ctx: SetupContext): Expression {
  if (option.name !== 'expr') throw ctx.error(`unknown property '${option.name}'`, option, ['expr'])
  try {
    return compileExpression(option.args.map(({ text }) => text).join(' '))
  } catch (error) {
    throw ctx.fail((error as Error).message, option)
  }
}

const NONE: ExprEnv['vars'] = new Map()

class View implements Plugin {
  readonly name = 'view'
  readonly #view: string
  readonly #tests: readonly Expression[]

  constructor(view: string, tests: readonly Expression[]) {
    this.#view = view
    this.#tests = tests
  }

  /** An expression that cannot be worked out for this query is not true, as in CoreDNS. */
  filter(query: Query): boolean {
    const env: ExprEnv = { query, vars: NONE, group: () => '' }
    try {
      return this.#tests.every((expression) => expression.run(env) === true)
    } catch {
      return false
    }
  }

  metadata(query: Query): void {
    query.metadata?.set('view/name', () => this.#view)
  }
}
