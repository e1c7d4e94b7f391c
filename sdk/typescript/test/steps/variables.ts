/** What `${name}` stands for in steps. */

import { isFields, type Fields, type Json } from "./matching.js";

export class Variables {
  readonly #values: Map<string, Json>;

  constructor(given: Fields) {
    this.#values = new Map(Object.entries(given));
  }

  get(name: string): string {
    const found = this.#values.get(name);
    if (typeof found !== "string") throw new Error(`there is no variable ${name}`);
    return found;
  }

  set(name: string, value: Json): void {
    this.#values.set(name, value);
  }

  filled(value: Json): Json {
    if (typeof value === "string") return this.#text(value);
    if (Array.isArray(value)) return value.map((one) => this.filled(one));
    if (isFields(value)) return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.filled(one)]));
    return value;
  }

  /** One that stands alone keeps its type. */
  #text(text: string): Json {
    let made = text;
    for (const [name, found] of this.#values) {
      if (text === `\${${name}}`) return found;
      made = made.replaceAll(`\${${name}}`, () => (typeof found === "string" ? found : JSON.stringify(found)));
    }
    return made;
  }

  /** A path as `a.b`, or `0` for the first of a list. */
  keep(paths: Record<string, string>, got: Json): void {
    for (const [name, path] of Object.entries(paths)) {
      let found: Json | undefined = got;
      for (const part of path.split(".")) found = Array.isArray(found) ? found[Number(part)] : isFields(found) ? found[part] : undefined;
      if (found === undefined) throw new Error(`there is no ${path} to keep in ${JSON.stringify(got)}`);
      this.#values.set(name, found);
    }
  }
}
