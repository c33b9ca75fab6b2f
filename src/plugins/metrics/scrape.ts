/** The answer to a scrape. */
import type { ControlProcess, HttpHandler } from '../contract.js'

/** zlib is loaded at the first scrape that wants it. */
async function compress(text: string): Promise<Buffer> {
  const { gzip } = await import('node:zlib')
  return new Promise((resolve, reject) => gzip(text, (error, octets) => (error === null ? resolve(octets) : reject(error))))
}

export function metricsHandler(process: ControlProcess): HttpHandler {
  return async (request, response) => {
    const { contentType, body } = await process.metricsText()
    const zipped = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
    const octets = zipped ? await compress(body) : Buffer.from(body)
    response.writeHead(200, {
      'content-type': contentType,
      'content-length': octets.length,
      ...(zipped ? { 'content-encoding': 'gzip' } : {}),
    })
    response.end(octets)
  }
}
