/** The answer to a scrape. */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { ControlProcess, HttpHandler } from '../contract.js'

const compress = promisify(gzip)

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
