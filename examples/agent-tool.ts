/**
 * An agent's tool: a model runs Python in a machine that remembers, reads what came of it, repairs its code, and goes on.
 *
 * npm install everforge, and with a server running (`make run`): node examples/agent-tool.ts pictures
 * Node runs TypeScript as it is from 23.6 on; before that: npx tsx examples/agent-tool.ts pictures
 */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Everforge, type Machine } from "everforge";

const TURNS_MAX = 10;
const CHARACTERS_MAX = 20_000; // that a model reads of one run: it pays for every word, and errors are at the end

/** One call of the tool, and what the model is told of it. */
interface Call {
  code: string;
  ok: boolean;
  text: string;
  pictures: string[];
}
type Move = { code: string } | { answer: string };

/** What decides. Here a real model goes in: send it the task, the calls so far and a tool `run_python` with one text, `code`. */
type Model = (task: string, calls: readonly Call[]) => Promise<Move>;

/** The tool. An error of the code is no error here: its traceback is what the model needs to see. */
async function runPython(machine: Machine, code: string, folder: string, number: number): Promise<Call> {
  const result = await machine.run(code, { timeout_seconds: 60 });
  const pictures: string[] = [];
  for (const png of result.displays.map((display) => display.png)) {
    if (png === null) continue;
    const name = `call-${number}-${pictures.length + 1}.png`;
    await writeFile(join(folder, name), png);
    pictures.push(name);
  }
  return { code, ok: result.ok, text: result.text.slice(-CHARACTERS_MAX) || "done, nothing was shown", pictures };
}

async function agent(machine: Machine, model: Model, task: string, folder: string): Promise<string> {
  const calls: Call[] = [];
  for (let turn = 1; turn <= TURNS_MAX; turn++) {
    const move = await model(task, calls);
    if ("answer" in move) return move.answer;
    const call = await runPython(machine, move.code, folder, turn);
    calls.push(call);
    console.log(`call ${turn} ${call.ok ? "went well" : "failed"}: ${[call.text.split("\n").at(-1), ...call.pictures].join(", ")}`);
  }
  throw new Error(`The model did not come to an end in ${TURNS_MAX} turns; machine ${machine.name} has what it did so far.`);
}

const LOAD = `import pandas as pd
orders = pd.DataFrame({"item": ["tea", "cake", "tea"], "cents": [300, 450, 350]})`;
const draw = (column: string): string => `import matplotlib.pyplot as plt
totals = orders.groupby("item")["${column}"].sum()
totals.plot.bar()
plt.show()
totals.to_dict()`;

/** In place of a model, so that this runs without a key: it guesses a column, and looks at the error when the guess was wrong. */
const scripted: Model = async (_task, calls) => {
  const last = calls.at(-1);
  if (last === undefined) return { code: LOAD };
  if (!last.ok) return { code: draw(last.text.includes("price") ? "cents" : "price") }; // `orders` is still there
  return last.code === LOAD ? { code: draw("price") } : { answer: `What was spent on each item: ${last.text}` };
};

const folder = process.argv[2] ?? "pictures";
await mkdir(folder, { recursive: true });
const client = new Everforge();
const machine = await client.create({ tags: { example: "agent-tool" } });
try {
  console.log(await agent(machine, scripted, "What was spent on each item? Draw it, too.", folder));
} finally {
  await machine.delete();
  await client.close();
}
