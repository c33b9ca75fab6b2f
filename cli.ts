#!/usr/bin/env node
import { main } from './src/server/cli.js'

process.exitCode = await main(process.argv.slice(2))
