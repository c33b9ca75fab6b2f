/** What this server calls itself towards clients and in metrics. */
import { createRequire } from 'node:module'

/** Of package.json: "0.1.0". */
export const VERSION: string = (createRequire(import.meta.url)('cairndns/package.json') as { version: string }).version
export const SERVER_NAME = `CairnDNS-${VERSION}`
