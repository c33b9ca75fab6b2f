/** Helpers for reading a directive's arguments. */

/** Go's time.ParseDuration, in milliseconds. Throws Error with Go's wording. */
export function parseDuration(text: string): number {
  throw new Error(`time: invalid duration ${JSON.stringify(text)}`)
}
