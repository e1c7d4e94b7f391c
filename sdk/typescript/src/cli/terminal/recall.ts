/** Walks through what was typed before: what stands there already chooses what is found. No I/O. */

export class Recall {
  private at: number;
  private prefix: string | undefined;
  private typed = "";

  /** `entries`: the oldest first. */
  constructor(private readonly entries: readonly string[]) {
    this.at = entries.length;
  }

  /** Something was typed: the next search begins anew. */
  forget(): void {
    this.prefix = undefined;
    this.at = this.entries.length;
  }

  /** undefined: there is none before. */
  older(text: string, beforeCursor: string): string | undefined {
    if (this.prefix === undefined) [this.prefix, this.typed] = [beforeCursor, text];
    const { prefix } = this;
    for (let i = this.at - 1; i >= 0; i--) {
      const entry = this.entries[i] ?? "";
      if (entry.startsWith(prefix) && entry !== text) {
        this.at = i;
        return entry;
      }
    }
    return undefined;
  }

  newer(text: string): string | undefined {
    if (this.prefix === undefined) return undefined;
    for (let i = this.at + 1; i < this.entries.length; i++) {
      const entry = this.entries[i] ?? "";
      if (entry.startsWith(this.prefix) && entry !== text) {
        this.at = i;
        return entry;
      }
    }
    const back = this.at < this.entries.length ? this.typed : undefined;
    this.at = this.entries.length;
    return back;
  }
}
