import { describe, expect, it } from "vitest";

import { COMMANDS, commandAt } from "../../src/cli/commands.js";
import { parse } from "../../src/cli/parser.js";
import { WrongUsage } from "../../src/cli/wrongusage.js";

function given(...words: string[]) {
  const parsed = parse(words);
  if (parsed.what !== "run") throw new Error(`${words.join(" ")} is ${parsed.what}`);
  return parsed.given;
}

function refusal(...words: string[]): string {
  try {
    parse(words);
  } catch (error) {
    if (error instanceof WrongUsage) return error.sentence;
    throw error;
  }
  throw new Error("it was taken");
}

describe("a command line", () => {
  it("has options between its arguments", () => {
    const found = given("machine", "exec", "--json", "one", "--env", "A=1", "print(1)", "--env=B=2", "--instruction-timeout-seconds", "1.5");
    expect([found.json, found.needed("name"), found.needed("code")]).toEqual([true, "one", "print(1)"]);
    expect([found.texts("env"), found.number("timeout_seconds")]).toEqual([["A=1", "B=2"], 1.5]);
  });

  it("takes what follows -- as it is", () => {
    expect(given("machine", "exec", "one", "--", "-x").needed("code")).toBe("-x");
    expect(given("machine", "show", "--", "--json").needed("name")).toBe("--json");
  });

  it("takes a dash alone for a word", () => {
    expect(given("machine", "exec", "one", "-").needed("code")).toBe("-");
  });

  it("takes the last of what can be given once", () => {
    expect(given("machine", "new", "--name", "a", "--name", "b").text("name")).toBe("b");
  });

  it("gives the rest to the argument that takes several", () => {
    const found = given("egress", "allow", "one", "a.example", "b.example");
    expect([found.needed("name"), found.texts("hosts")]).toEqual(["one", ["a.example", "b.example"]]);
  });

  it("reads letters behind one dash as flags", () => {
    expect(given("machine", "files", "delete", "one", "a", "-r").flag("recursive")).toBe(true);
    expect(refusal("machine", "logs", "one", "-fx")).toBe("no such option: -x: see `everforge machine logs --help`");
  });

  it("reads options of a group that runs alone", () => {
    const parsed = parse(["audit", "--last", "3"]);
    expect(parsed.what === "run" && [parsed.command.path, parsed.given.number("last")]).toEqual([["audit"], 3]);
  });

  it.each(["1_0", " 10 ", "+10", "10.0"])("reads the whole number %j as Python does", (text) => {
    expect(given("machine", "new", "--memory-mb", text).number("memory_mb")).toBe(10);
  });

  it.each(["", "1.5", "1e3", "0x10", "1__0", "_1", "5.", "٣"])("refuses the whole number %j", (text) => {
    expect(refusal("machine", "new", "--memory-mb", text)).toContain("Input should be a valid integer");
  });
});

describe("help", () => {
  it.each(COMMANDS.map((command) => command.path.join(" ")))("of everforge %s is as Python prints it", (path) => {
    const words = path === "" ? [] : path.split(" ");
    for (const flag of ["-h", "--help"]) expect(parse([...words, flag])).toEqual({ what: "help", text: commandAt(words)?.help });
  });

  it("of a group is shown where the command is missing", () => {
    expect(parse(["webhook", "dead"])).toEqual({ what: "help", text: commandAt(["webhook", "dead"])?.help });
    expect(parse([])).toEqual({ what: "help", text: commandAt([])?.help });
  });

  it("is not shown before a mistake in the same line is told", () => {
    expect(refusal("machine", "delete", "a", "-h", "--bogus")).toBe("no such option: --bogus: see `everforge machine delete --help`");
  });
});

it("the version is asked before or without a command", () => {
  expect(parse(["--version"])).toEqual({ what: "version" });
  expect(parse(["--version", "machine"])).toEqual({ what: "version" });
});

it("a command of the server's own computer is answered with where to get it", () => {
  expect(refusal("serve")).toContain("pip install everforge");
});
