/** Python machines that never forget, on hardware you own: the SDK, in Node. */

import "./node/platform.js";

export * from "./surface.js";
