/** The one error that decoding and encoding may throw. */

/** A message, name or record that breaks the wire format or its text form. `code` is stable; the text is for people. */
export class WireError extends Error {
  readonly code: 'SHORT' | 'LABEL' | 'NAME' | 'POINTER' | 'COUNT' | 'RDATA' | 'TEXT' | 'SIZE'
  constructor(code: WireError['code'], message: string) {
    super(message)
    this.name = 'WireError'
    this.code = code
  }
}
