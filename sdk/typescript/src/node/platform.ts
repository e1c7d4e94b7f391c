/** What the SDK needs of Node. */

import { AsyncLocalStorage } from "node:async_hooks";

import { usePlatform, type Context, type Platform } from "../platform.js";
import { findAccess } from "./config.js";
import { NodeTransport } from "./transport.js";

const node: Platform = {
  agent: `Node/${process.versions.node}`,
  findAccess,
  transport: () => new NodeTransport(),
  openSocket: async (asked) => await (await import("./socket.js")).openSocket(asked),
  context<T>(): Context<T> {
    const storage = new AsyncLocalStorage<T>();
    return { run: (value, act) => storage.run(value, act), get: () => storage.getStore() };
  },
  disk: async () => (await import("./disk.js")).nodeDisk,
};

usePlatform(node);
