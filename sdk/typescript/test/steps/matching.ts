/** Does what came fit what was wanted? The patterns of the contract: see sdk/contract/README.md. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Fields = Record<string, Json>;

export function isFields(value: Json | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Where it does not, one sentence for each place. */
export function problems(wanted: Json, got: Json | undefined, at = ""): string[] {
  const wrong = [`${at || "it"} should be ${JSON.stringify(wanted)}, and is ${JSON.stringify(got)}`];
  if (Array.isArray(wanted)) {
    if (!Array.isArray(got) || got.length !== wanted.length) return wrong;
    return wanted.flatMap((one, i) => problems(one, got[i], `${at}[${i}]`));
  }
  if (!isFields(wanted)) return wanted === (got ?? null) ? [] : wrong;
  const [word = "", ...others] = Object.keys(wanted);
  if (word.startsWith("$") && others.length === 0) return fits(word, wanted[word] ?? null, got ?? null) ? [] : wrong;
  if (!isFields(got)) return wrong;
  return Object.entries(wanted).flatMap(([name, value]) => problems(value, got[name], at === "" ? name : `${at}.${name}`));
}

function fits(word: string, value: Json, got: Json): boolean {
  switch (word) {
    case "$has":
      return typeof got === "string" && typeof value === "string" && got.includes(value);
    case "$not":
      return problems(value, got).length > 0;
    case "$any":
      return got !== null;
    case "$above":
      return typeof got === "number" && got > Number(value);
    case "$some":
      return Array.isArray(got) && got.some((one) => problems(value, one).length === 0);
    default:
      throw new Error(`there is no pattern ${word}`);
  }
}
