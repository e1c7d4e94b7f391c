// What other programs run in tests, each in one file of dist-test/: the steps of the contract in Node, and the same for a page in a browser.
// Fast, since types are looked at elsewhere.
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const common = { bundle: true, format: "esm", logLevel: "error" };
await build({ ...common, entryPoints: [`${here}scenario.ts`], outfile: `${here}../dist-test/test/scenario.js`, platform: "node", target: "node20", packages: "external" });
// One that needs something of Node cannot be built: so nothing of it comes into the SDK of browsers.
await build({ ...common, entryPoints: [`${here}browser.ts`], outfile: `${here}../dist-test/browser.js`, platform: "browser", target: "es2022" });
