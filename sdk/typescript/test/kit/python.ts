/** The Python that the replay server and servers of tests run with. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));
export const CONTRACT = join(PACKAGE, "..", "contract");
export const PYTHON = process.env["EVERFORGE_PYTHON"] ?? join(PACKAGE, "..", "..", ".venv", "bin", "python");
