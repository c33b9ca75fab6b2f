/** How the user wants UDP to be moved. `auto`: in batches if that can be had, else by node:dgram. */
export const TRANSPORTS = ['auto', 'batch', 'dgram'] as const
export type TransportChoice = (typeof TRANSPORTS)[number]
