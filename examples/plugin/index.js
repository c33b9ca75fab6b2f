// A whole plugin in plain JavaScript. It needs nothing but what the server hands it: the query, the next handler, a set-up context.
// Docs: docs/plugins.md in the CairnDNS repository.

const TXT = 16
const OPTIONS = ['text', 'ttl']

/** Reads `greet [LABEL] { text WORDS...; ttl SECONDS }`. Called once per server block that uses the directive; starts nothing. */
function readOptions(uses, ctx) {
  if (uses.length > 1) throw ctx.error('greet may be used once in a server block', uses[1])
  const [use] = uses
  if (use.args.length > 1) throw ctx.error('greet takes one label', use.args[1])
  const options = { label: (use.args[0]?.text ?? 'hello').toLowerCase(), text: 'hello from a plugin', ttl: 60 }
  for (const option of use.block ?? []) {
    const words = option.args.map((arg) => arg.text)
    if (!OPTIONS.includes(option.name)) throw ctx.error(`unknown property '${option.name}'`, option, OPTIONS)
    if (words.length === 0) throw ctx.error(`'${option.name}' needs a value`, option)
    if (option.name === 'text') options.text = words.join(' ')
    else options.ttl = Number(words[0])
    if (!Number.isInteger(options.ttl) || options.ttl < 0) throw ctx.error(`ttl is not a number of seconds: '${words[0]}'`, option.args[0])
  }
  if (Buffer.byteLength(options.text) > 255) throw ctx.error('text is longer than 255 octets', use)
  return options
}

export default {
  name: 'greet',
  apiVersion: 1,
  setup(uses, ctx) {
    const options = readOptions(uses, ctx)
    const answered = ctx.metrics.counter('example_greet_answers_total', 'Questions that greet answered.', ['server'])
    return {
      name: 'greet',
      serveDNS(q, next) {
        if (q.type !== TXT || q.name.foldedLabel(0) !== options.label) return next(q)
        answered.with(q.server).inc()
        const record = {
          name: q.name,
          type: TXT,
          class: q.class,
          ttl: options.ttl,
          data: { kind: 'TXT', strings: [Buffer.from(options.text)] },
        }
        return q.reply('greet', 0, { answers: [record] })
      },
    }
  },
}
