/** The arguments of a step, by name. */

import { isFields, type Fields, type Json } from "./matching.js";

export class Given {
  constructor(readonly fields: Fields) {}

  text(name: string): string {
    const found = this.fields[name];
    if (typeof found !== "string") throw new Error(`${name} is no text in ${JSON.stringify(this.fields)}`);
    return found;
  }

  maybeText(name: string): string | undefined {
    return this.fields[name] === undefined ? undefined : this.text(name);
  }

  maybeNumber(name: string): number | undefined {
    const found = this.fields[name];
    return typeof found === "number" ? found : undefined;
  }

  texts(name: string): string[] {
    const found = this.fields[name];
    return Array.isArray(found) ? found.map(String) : [];
  }

  is(name: string): boolean {
    return this.fields[name] === true;
  }

  object(name: string): Fields | undefined {
    const found = this.fields[name];
    return isFields(found) ? found : undefined;
  }

  /** The rest of them, as the SDK wants its options. What type that is, the step must know. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- see above
  without<T>(...names: string[]): T & object {
    return Object.fromEntries(Object.entries(this.fields).filter(([name]) => !names.includes(name))) as T & object;
  }
}

/** What the SDK gives, as JSON. */
export function plain(value: unknown): Json {
  return JSON.parse(JSON.stringify(value ?? null)) as Json;
}

export async function collected<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of stream) found.push(one);
  return found;
}
