// The package as it is published: dist/, with types, and the command line's data beside it.
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
rmSync(`${here}dist`, { recursive: true, force: true });
execFileSync(process.execPath, [`${here}node_modules/typescript/bin/tsc`, "-p", `${here}tsconfig.build.json`], { stdio: "inherit" });
copyFileSync(`${here}src/generated/commands.json`, `${here}dist/generated/commands.json`);
if (existsSync(`${here}dist/cli/main.js`)) chmodSync(`${here}dist/cli/main.js`, 0o755);
