/** A command line that is none of ours. */

export class WrongUsage extends Error {
  /** Where to read how it is right. */
  command: string | undefined;

  constructor(message: string, path?: readonly string[]) {
    super(message);
    this.command = path === undefined ? undefined : ["everforge", ...path].join(" ");
  }

  /** One sentence. Those that a command finds itself get its name from whoever runs it. */
  get sentence(): string {
    const text = `${this.message.replace(/\.+$/, "")}: see \`${this.command ?? "everforge"} --help\``;
    return text.slice(0, 1).toLowerCase() + text.slice(1);
  }
}

/** Something that was given to a command, and cannot be. `what` is the option or argument, spelled as it is typed. */
export class BadValue extends WrongUsage {
  constructor(message: string, what?: string) {
    super(what === undefined ? `Invalid value: ${message}` : `Invalid value for ${what}: ${message}`);
  }
}
