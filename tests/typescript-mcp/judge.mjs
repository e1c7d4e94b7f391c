// The official TypeScript client against `everforge mcp serve`, over one transport and in both eras of the protocol.
// Arguments: where its packages lie, and what to do as JSON: {"url", "token"} or {"command", "args", "env"}, and
// "thorough", the era in which each tool is called. Prints one object of JSON at the end.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

import { walk } from "./walk.mjs";

const [modules, text] = process.argv.slice(2);
const given = JSON.parse(text);
const require = createRequire(pathToFileURL(`${modules}/package.json`));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()";

function connection() {
  if (given.url === undefined) return new StdioClientTransport({ command: given.command, args: given.args, env: given.env, stderr: "inherit" });
  const headers = { Authorization: `Bearer ${given.token}`, "Everforge-Conversation": "typescript" };
  return new StreamableHTTPClientTransport(new URL(given.url), { requestInit: { headers } });
}

async function connect(mode) {
  const client = new Client({ name: "judge", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(connection());
  return client;
}

function good(result, name) {
  if (result.isError) throw new Error(`${name}: ${JSON.stringify(result.content)}`);
  return result;
}

async function cancel(client) {
  const controller = new AbortController();
  const heard = [];
  const onprogress = (told) => {
    heard.push(told.message);
    if (told.message === "begun") controller.abort();
  };
  const code = "print('begun', flush=True)\nwhile True: pass";
  const call = client.callTool({ name: "run_python", arguments: { code } }, { signal: controller.signal, onprogress });
  const failed = await call.then(() => null, (error) => error);
  if (failed === null) throw new Error("the call was not cancelled");
  const { structuredContent } = good(await client.callTool({ name: "run_python", arguments: { code: "x" } }), "after the cancelled one");
  return { heard, value: structuredContent.value };
}

async function judge(mode, thorough) {
  const client = await connect(mode);
  const { tools } = await client.listTools();
  const first = good(await client.callTool({ name: "run_python", arguments: { code: "x = globals().get('x', 0) + 1\nx" } }), "run_python");
  const figure = good(await client.callTool({ name: "run_python", arguments: { code: FIGURE } }), "figure");
  const names = tools.map((tool) => tool.name);
  const said = {
    tools: names,
    machine: first.structuredContent.machine,
    value: first.structuredContent.value,
    images: figure.content.filter((part) => part.type === "image").map((part) => [part.mimeType, part.data.slice(0, 11)]),
    cancelled: await cancel(client),
    resources: (await client.listResources()).resources.map((found) => found.uri),
    read: (await client.readResource({ uri: "everforge://machines" })).contents[0].mimeType,
    unknown: await client.callTool({ name: "no_such_tool", arguments: {} }).then(() => null, (error) => error.code),
  };
  said.called = thorough ? await walk(client, names) : [];
  await client.close();
  return said;
}

const said = {};
for (const mode of ["legacy", "auto"]) said[mode] = await judge(mode, mode === given.thorough);
console.log(JSON.stringify(said));
