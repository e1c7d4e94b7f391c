/** Ctrl-C, and a kill: what they mean at the moment. Where nobody says otherwise, the command ends, and what it has open is closed first. */

type Act = () => void;

const meanings: Act[] = [];
const endings = new Set<() => Promise<void> | void>();

/** Somebody has had enough. */
export class Left extends Error {
  constructor(readonly exit: number) {
    super("left");
  }
}

let leave: (left: Left) => void = () => undefined;

/** Rejects with Left. Asked for once, at the beginning. */
export function untilLeft(): Promise<never> {
  process.on("SIGINT", () => (meanings.at(-1) ?? (() => leaveNow(130)))());
  process.on("SIGTERM", () => leaveNow(143));
  return new Promise((_, reject) => {
    leave = reject;
  });
}

export function leaveNow(exit: number): void {
  leave(new Left(exit));
}

/** While `work` lasts, Ctrl-C means this. */
export async function meaning<T>(pressed: Act, work: () => Promise<T>): Promise<T> {
  meanings.push(pressed);
  try {
    return await work();
  } finally {
    meanings.splice(meanings.lastIndexOf(pressed), 1);
  }
}

/** What has to be put away also when the command is left early; the answer takes it back. */
export function atEnd(act: () => Promise<void> | void): () => void {
  endings.add(act);
  return () => endings.delete(act);
}

export async function putAway(): Promise<void> {
  await Promise.allSettled([...endings].map(async (act) => act()));
}
