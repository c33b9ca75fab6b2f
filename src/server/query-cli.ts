export async function query(_words: string[]): Promise<number> {
  return 1
}
