/** What a command was given. */

export type Value = string | number | boolean | readonly string[];

export class Given {
  constructor(private readonly values: ReadonlyMap<string, Value>) {}

  /** An argument that must be there, and is: the parser has seen to it. */
  needed(name: string): string {
    return this.text(name) ?? "";
  }

  text(name: string): string | undefined {
    const found = this.values.get(name);
    return typeof found === "string" ? found : undefined;
  }

  number(name: string): number | undefined {
    const found = this.values.get(name);
    return typeof found === "number" ? found : undefined;
  }

  flag(name: string): boolean {
    return this.values.get(name) === true;
  }

  /** None: it was not given. */
  texts(name: string): string[] {
    const found = this.values.get(name);
    return Array.isArray(found) ? (found as string[]) : [];
  }

  get json(): boolean {
    return this.flag("json");
  }
}
