#!/usr/bin/env node
/** `everforge ...`. Exit codes: 0 done; 1 a no as the answer, code that raised, or an answer that could not be written; 2 wrong usage; 3 refused or failed
 * with a sentence on stderr; 4 the server is not reachable; 130 interrupted; 141 whoever read the answer has gone. */

import { run } from "./run.js";

process.exit(await run(process.argv.slice(2)));
