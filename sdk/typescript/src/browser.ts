/** The SDK in browsers, and wherever else there is `fetch` and no Node. */

import "./web/platform.js";

export * from "./surface.js";
