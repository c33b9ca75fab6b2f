/** The lines that say which server this is, as CoreDNS prints its own. */
import { SERVER_NAME } from '../plugins/version.js'

export const versionLines = (): string[] => [SERVER_NAME, `${process.platform}/${process.arch}, node${process.version.slice(1)}, `]
