// Generated from src/everforge/wire by tools/make_contract.py; `make fix` writes it, `make check` compares.

import type { EndKind, Retry, Stream } from "./api.js";

export interface Accepted {
  type: "accepted";
  position: number;
  /** give it as `after` to go on behind this entry */
  cursor: number;
  time: string;
  instruction: number;
  code: string;
  timeout_seconds: number;
  /** the client's idempotency key */
  key?: string | null;
  /** names alone */
  env?: string[];
  /** of the client's program, that it may call */
  functions?: string[];
}

export interface Output {
  type: "output";
  position: number;
  /** give it as `after` to go on behind this entry */
  cursor: number;
  time: string;
  instruction: number | null;
  stream: Stream;
  /** number of the first line within its instruction */
  seq: number;
  lines: string[];
  /** the last line's newline has not come */
  partial?: boolean;
  origin?: number | null;
}

export interface Displayed {
  type: "displayed";
  position: number;
  /** give it as `after` to go on behind this entry */
  cursor: number;
  time: string;
  instruction: number | null;
  data: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}

/** The one end of an instruction: its result. */
export interface Ended {
  type: "ended";
  position: number;
  /** give it as `after` to go on behind this entry */
  cursor: number;
  time: string;
  instruction: number;
  end: EndKind;
  runtime_ms?: number;
  value?: string | null;
  data?: Record<string, unknown> | null;
  /** one line: type and message */
  error?: string | null;
  traceback?: string | null;
  /** what survived, what was dropped, that a new interpreter began */
  note?: string | null;
  retry?: Retry;
  /** how many `Displayed` belong to it; None where only the tape knows */
  displays?: number | null;
}

/** The code has called a function of the client's program, and waits for its answer. */
export interface Called {
  type: "called";
  position: number;
  /** give it as `after` to go on behind this entry */
  cursor: number;
  time: string;
  instruction: number;
  /** its number within the instruction */
  call: number;
  function: string;
  args?: unknown[];
  kwargs?: Record<string, unknown>;
}

/** The one answer to a call. One that its caller no longer waits for is answered with an error, so that nobody else does. */
export interface Answered {
  type: "answered";
  position: number;
  /** give it as `after` to go on behind this entry */
  cursor: number;
  time: string;
  instruction: number;
  call: number;
}

/** Something happened to the machine itself: the lifecycle event's name, and what a reader needs to know of it. */
export interface Moved {
  type: "moved";
  position: number;
  /** give it as `after` to go on behind this entry */
  cursor: number;
  time: string;
  event: string;
  residence: string;
  detail?: Record<string, unknown>;
}

/** Memory since a point is gone: everything executed after it has left no trace in the machine. */
export interface Lost {
  type: "lost";
  position: number;
  /** give it as `after` to go on behind this entry */
  cursor: number;
  time: string;
  since_position: number;
  /** executed after the point, wholly or in part, and */
  first_instruction: number | null;
  /** None when none was */
  last_instruction: number | null;
  /** where the machine is, or can be, back */
  snapshot: string | null;
  reason: string;
}

/** An entry of a machine's tape. */
export type Entry = Accepted | Output | Displayed | Ended | Called | Answered | Moved | Lost;
