// Generated from src/everforge/wire by tools/make_contract.py; `make fix` writes it, `make check` compares.

export type EndKind = "value" | "error" | "interrupted" | "timed_out" | "lost" | "cancelled";
export type Stream = "stdout" | "stderr";
export type Retry = "never" | "later" | "now";
export type Egress = "none" | "list" | "packages" | "public";
export type FileKind = "file" | "folder" | "link" | "other";
export type ArchiveFormat = "tar" | "tar.gz" | "zip";
export type Scope = "read" | "exec" | "manage";
export type InstructionState = "queued" | "running" | "waiting" | "ended";
export type State = "creating" | "ready" | "busy" | "hibernating" | "asleep" | "waking" | "broken" | "deleted";
export type When = "idle" | "each";
export type Place = "body" | "url";

/** The same words, for whoever checks what was given. */
export const CHOICES = {
  EndKind: ["value", "error", "interrupted", "timed_out", "lost", "cancelled"],
  Stream: ["stdout", "stderr"],
  Retry: ["never", "later", "now"],
  Egress: ["none", "list", "packages", "public"],
  FileKind: ["file", "folder", "link", "other"],
  ArchiveFormat: ["tar", "tar.gz", "zip"],
  Scope: ["read", "exec", "manage"],
  InstructionState: ["queued", "running", "waiting", "ended"],
  State: ["creating", "ready", "busy", "hibernating", "asleep", "waking", "broken", "deleted"],
  When: ["idle", "each"],
  Place: ["body", "url"],
} as const;

export interface AuditEntry {
  /** RFC 3339, to the millisecond */
  time: string;
  action: string;
  outcome?: string;
  /** id; its name may be another one's later */
  account?: string | null;
  account_name?: string | null;
  /** the id, which is no secret */
  token?: string | null;
  machine?: string | null;
  address?: string | null;
  /** its id, as in the server's log */
  request?: string | null;
  detail?: Record<string, unknown>;
  /** from 1, without gaps */
  number: number;
  /** the hash of the entry before */
  previous: string;
  hash: string;
}

/** Where the chain ends: what was written last. */
export interface AuditHead {
  number: number;
  hash: string;
}

export interface Deleted {
  deleted: boolean;
}

export interface EgressPolicy {
  egress: Egress;
  egress_allow: string[];
}

/** Nothing at all: the server's own default again. */
export interface EgressDefault {
  egress?: Egress;
  egress_allow?: string[];
}

export interface EgressChange {
  egress?: Egress;
  /** rules to add, and */
  allow?: string[];
  /** to take away */
  deny?: string[];
}

export interface EgressAttempt {
  /** give it as `before` for older ones */
  number: number;
  time: string;
  host: string;
  port: number;
  /** http, tls, tcp */
  speech: string;
  method: string;
  path: string;
  verdict: "pending" | "allowed" | "refused" | "failed";
  why: string;
  allowed_by: string;
  address: string;
  sent_bytes: number;
  received_bytes: number;
  /** names of those that were put in */
  secrets: string[];
  ended_at: string | null;
}

export interface EgressLog {
  /** newest first */
  attempts: EgressAttempt[];
  next: number | null;
}

export interface File {
  name: string;
  path: string;
  kind: FileKind;
  size_bytes: number;
  modified_at: string;
  mode: number;
  /** of a link */
  target: string | null;
}

export interface FileList {
  path: string;
  files: File[];
  next: string | null;
}

export interface FileWritten {
  path: string;
  size_bytes: number;
}

export interface Unpacked {
  path: string;
  files: number;
  size_bytes: number;
}

export interface Whoami {
  account: string;
}

export interface TokenInUse {
  id: string;
  name: string | null;
  scopes: Scope[];
  /** it is for machines that have all of them; {}: for the whole account */
  tags: Record<string, string>;
}

/** What an account may have at most; 0: no limit. */
export interface Quota {
  machines: number;
  awake: number;
  memory_mb: number;
  disk_mb: number;
  requests_per_second: number;
  egress_bytes_per_day: number;
}

/** What is left out stays; 0: no limit, -1: as the server's settings say. */
export interface QuotaChange {
  machines?: number;
  awake?: number;
  memory_mb?: number;
  disk_mb?: number;
  requests_per_second?: number;
  egress_bytes_per_day?: number;
}

export interface Account {
  account: string;
  email: string | null;
  owner: boolean;
  created_at: string;
  token?: TokenInUse | null;
  quota?: Quota | null;
}

export interface AccountList {
  accounts: Account[];
}

export interface NewAccount {
  account_name: string;
  email?: string;
}

export interface AccountCreated {
  account: string;
  /** shown once */
  token: string;
}

export interface NewInvitation {
  email?: string;
  expires_at?: string;
}

export interface Invitation {
  invitation: string;
  expires_at: string;
}

export interface SignUp {
  email: string;
  account_name: string;
  invitation?: string;
}

export interface SignedUp {
  account: string;
  /** shown once; None when it was mailed */
  token: string | null;
  mailed: boolean;
}

export interface NewToken {
  name?: string;
  scopes?: Scope[];
  expires_at?: string;
  /** only for machines that have all of them */
  tags?: Record<string, string>;
}

export interface Token {
  id: string;
  name: string | null;
  scopes: Scope[];
  tags: Record<string, string>;
  created_at: string;
  last_used_at: string | null;
  expires_at: string | null;
}

export interface TokenCreated {
  id: string;
  name: string | null;
  scopes: Scope[];
  tags: Record<string, string>;
  created_at: string;
  last_used_at: string | null;
  expires_at: string | null;
  /** shown once */
  token: string;
}

export interface TokenList {
  tokens: Token[];
}

export interface LogInLink {
  /** good for one log-in */
  url: string;
  expires_at: string;
}

export interface LoggedIn {
  account: string;
  /** shown once */
  token: string;
  /** of the server */
  url: string;
}

export interface Usage {
  machines: number;
  awake: number;
  asleep: number;
  broken: number;
  instructions: number;
  runtime_ms: number;
  disk_bytes: number;
  egress_bytes?: number;
  /** of all machines together */
  awake_seconds?: number;
  quota?: Quota | null;
}

export interface InstructionText {
  code: string;
  timeout_seconds?: number;
  env?: Record<string, string>;
  /** of the client's program, that the code may call */
  functions?: string[];
}

export interface Exec {
  instruction: InstructionText;
  interrupt?: boolean;
}

export interface Accepted {
  instruction_seq: number;
  interrupted: boolean;
  machine: string;
}

/** Of `value` and `error` one is absent: `value` is there, and may be null, when `end` is "value". */
export interface Result {
  runtime_ms: number;
  end: EndKind;
  value?: string | null;
  data?: Record<string, unknown> | null;
  error?: string | null;
  traceback?: string | null;
  note?: string | null;
  retry?: Retry | null;
  displays?: Record<string, unknown>[] | null;
}

export interface InstructionResult {
  instruction_id: number;
  instruction_seq: number;
  result: Result;
}

export interface Instruction {
  instruction_seq: number;
  code: string;
  timeout_seconds: number;
  state: InstructionState;
  accepted_at: string;
  /** of its acceptance */
  position: number;
  result: Result | null;
}

export interface InstructionList {
  instructions: Instruction[];
  next: number | null;
}

export interface Interrupt {
  /** those that wait, too */
  pending?: boolean;
  /** this one alone, running or waiting */
  instruction?: number;
}

export interface Interrupted {
  interrupted: boolean;
}

export interface Complete {
  code: string;
  /** characters before it; None: at the end */
  cursor?: number;
}

export interface Completed {
  matches: string[];
  /** what they take the place of */
  start: number;
  end: number;
  /** an instruction runs: nobody was asked */
  busy: boolean;
}

/** What a host function returned, or the message of what it raised. */
export interface Answer {
  value?: unknown;
  error?: string;
}

export interface Answered {
  answered: boolean;
}

export interface SnapshotRef {
  machine: string;
  /** id or name */
  snapshot: string;
}

export interface NewMachine {
  tags?: Record<string, string>;
  memory_mb?: number;
  name?: string;
  image?: string;
  cpus?: number;
  disk_mb?: number;
  processes?: number;
  env?: Record<string, string>;
  egress?: Egress;
  egress_allow?: string[];
  idle_seconds?: number;
  expires_at?: string;
  history?: When;
  durability?: When;
  metadata?: Record<string, unknown>;
  from_snapshot?: SnapshotRef;
}

export interface MachineCreated {
  machine_name: string;
}

export interface ListedMachine {
  name: string;
  state: State;
  created_at: string;
  last_used_at: string;
  expires_at: string | null;
  tags: Record<string, string>;
  metadata: Record<string, unknown>;
  memory_mb: number;
  cpus: number;
  disk_mb: number;
  processes: number;
  engine: string;
  image: string;
  idle_seconds: number;
  history: string;
  durability: string;
  /** what it may reach, and */
  egress: Egress;
  /** beyond that */
  egress_allow: string[];
  next_instruction: number;
  pending_instructions: number;
  error: string | null;
  running: boolean;
  has_pending_instruction: boolean;
  has_pending_instructions: boolean;
}

export interface Machine {
  name: string;
  state: State;
  created_at: string;
  last_used_at: string;
  expires_at: string | null;
  tags: Record<string, string>;
  metadata: Record<string, unknown>;
  memory_mb: number;
  cpus: number;
  disk_mb: number;
  processes: number;
  engine: string;
  image: string;
  idle_seconds: number;
  history: string;
  durability: string;
  /** what it may reach, and */
  egress: Egress;
  /** beyond that */
  egress_allow: string[];
  next_instruction: number;
  pending_instructions: number;
  error: string | null;
  running: boolean;
  has_pending_instruction: boolean;
  has_pending_instructions: boolean;
  /** the tape's last */
  position: number;
  /** of the host, now */
  memory_bytes: number;
  /** its snapshots */
  disk_bytes: number;
  /** the name of the machine that it was forked from, while that is there */
  forked_from: string | null;
}

export interface ListMachines {
  tags?: Record<string, string>;
  state?: State;
  name_prefix?: string;
  limit?: number;
  after?: string;
}

export interface MachineList {
  machines: ListedMachine[];
  /** give it as `after` for the next page */
  next: string | null;
}

export interface MachineChange {
  tags?: Record<string, string>;
  metadata?: Record<string, unknown>;
  idle_seconds?: number;
  history?: When;
  durability?: When;
  egress?: Egress;
  /** in place of the rules that there are */
  egress_allow?: string[];
  /** "never" clears it */
  expires_at?: string;
}

export interface Fork {
  names?: string[];
  count?: number;
}

export interface Forked {
  machine_name: string;
  machine_names: string[];
}

export interface Reset {
  /** a machine that is awake is not saved first, and `undo` is null */
  discard?: boolean;
}

export interface WasReset {
  /** the snapshot that brings back what was before */
  undo: string | null;
}

export interface NewSecret {
  value: string;
  hosts: string[];
  /** put in by itself, {} where the value goes */
  header?: string;
  /** beside headers */
  places?: Place[];
}

/** Everything of it but its value. */
export interface Secret {
  name: string;
  placeholder: string;
  hosts: string[];
  header: string | null;
  places: string[];
  created_at: string;
  changed_at: string;
}

export interface SecretList {
  secrets: Secret[];
}

export interface Health {
  status: string;
  version: string;
}

export interface Error {
  code: string;
  message: string;
  retry: Retry;
  id?: string | null;
  details?: Record<string, unknown>;
}

export interface NewSnapshot {
  name?: string;
}

export interface Snapshot {
  id: string;
  name: string | null;
  position: number;
  /** the last one whose effects it holds */
  instruction: number | null;
  created_at: string;
  reason: string;
  size_bytes: number;
}

export interface SnapshotList {
  snapshots: Snapshot[];
}

export interface Rollback {
  /** a snapshot's id or name; or an instruction: the state after it; None: the newest snapshot */
  to?: string | number;
  /** a machine that is awake is not saved first, and `undo` is null */
  discard?: boolean;
}

export interface RolledBack {
  snapshot: Snapshot;
  undo: string | null;
}

export interface Tape {
  entries: Record<string, unknown>[];
  /** give it as `after` to go on */
  position: number;
  more: boolean;
}

export interface NewWebhook {
  url: string;
  events?: string[];
  secret?: string;
}

export interface Webhook {
  id: string;
  url: string;
  events: string[];
  created_at: string;
}

export interface WebhookCreated {
  id: string;
  url: string;
  events: string[];
  created_at: string;
  /** shown once */
  secret: string;
}

export interface WebhookList {
  webhooks: Webhook[];
}

export interface WebhookTested {
  delivered: boolean;
}

export interface Delivery {
  id: string;
  webhook: string;
  event: string;
  /** as it was signed */
  body: string;
  created_at: string;
  attempts: number;
  /** why the last try failed */
  error: string | null;
}

export interface DeliveryList {
  deliveries: Delivery[];
  /** older ones that there was no room for, since the server's start */
  let_go?: number;
}

export interface RetryDead {
  /** all of them */
  id?: string;
}

export interface Retried {
  deliveries: number;
}

export interface AuditPage {
  /** oldest first */
  entries: AuditEntry[];
  /** to be given as `after` for those that follow */
  next: number | null;
  /** where the whole log ends; for the owner, who alone sees all of it */
  head?: AuditHead | null;
}

/** Of answers: what must be there, and what of it is another answer (`[]`: a list of them). */
export const SHAPES = {
  AuditEntry: { needs: ["time", "action", "number", "previous", "hash"], inner: {} },
  AuditHead: { needs: ["number", "hash"], inner: {} },
  Deleted: { needs: ["deleted"], inner: {} },
  EgressPolicy: { needs: ["egress", "egress_allow"], inner: {} },
  EgressAttempt: { needs: ["number", "time", "host", "port", "speech", "method", "path", "verdict", "why", "allowed_by", "address", "sent_bytes", "received_bytes", "secrets", "ended_at"], inner: {} },
  EgressLog: { needs: ["attempts", "next"], inner: {"attempts": "EgressAttempt[]"} },
  File: { needs: ["name", "path", "kind", "size_bytes", "modified_at", "mode", "target"], inner: {} },
  FileList: { needs: ["path", "files", "next"], inner: {"files": "File[]"} },
  FileWritten: { needs: ["path", "size_bytes"], inner: {} },
  Unpacked: { needs: ["path", "files", "size_bytes"], inner: {} },
  Whoami: { needs: ["account"], inner: {} },
  TokenInUse: { needs: ["id", "name", "scopes", "tags"], inner: {} },
  Quota: { needs: ["machines", "awake", "memory_mb", "disk_mb", "requests_per_second", "egress_bytes_per_day"], inner: {} },
  Account: { needs: ["account", "email", "owner", "created_at"], inner: {"token": "TokenInUse", "quota": "Quota"} },
  AccountList: { needs: ["accounts"], inner: {"accounts": "Account[]"} },
  AccountCreated: { needs: ["account", "token"], inner: {} },
  Invitation: { needs: ["invitation", "expires_at"], inner: {} },
  SignedUp: { needs: ["account", "token", "mailed"], inner: {} },
  Token: { needs: ["id", "name", "scopes", "tags", "created_at", "last_used_at", "expires_at"], inner: {} },
  TokenCreated: { needs: ["id", "name", "scopes", "tags", "created_at", "last_used_at", "expires_at", "token"], inner: {} },
  TokenList: { needs: ["tokens"], inner: {"tokens": "Token[]"} },
  LogInLink: { needs: ["url", "expires_at"], inner: {} },
  LoggedIn: { needs: ["account", "token", "url"], inner: {} },
  Usage: { needs: ["machines", "awake", "asleep", "broken", "instructions", "runtime_ms", "disk_bytes"], inner: {"quota": "Quota"} },
  Accepted: { needs: ["instruction_seq", "interrupted", "machine"], inner: {} },
  Result: { needs: ["runtime_ms", "end"], inner: {} },
  InstructionResult: { needs: ["instruction_id", "instruction_seq", "result"], inner: {"result": "Result"} },
  Instruction: { needs: ["instruction_seq", "code", "timeout_seconds", "state", "accepted_at", "position", "result"], inner: {"result": "Result"} },
  InstructionList: { needs: ["instructions", "next"], inner: {"instructions": "Instruction[]"} },
  Interrupted: { needs: ["interrupted"], inner: {} },
  Completed: { needs: ["matches", "start", "end", "busy"], inner: {} },
  Answered: { needs: ["answered"], inner: {} },
  MachineCreated: { needs: ["machine_name"], inner: {} },
  ListedMachine: { needs: ["name", "state", "created_at", "last_used_at", "expires_at", "tags", "metadata", "memory_mb", "cpus", "disk_mb", "processes", "engine", "image", "idle_seconds", "history", "durability", "egress", "egress_allow", "next_instruction", "pending_instructions", "error", "running", "has_pending_instruction", "has_pending_instructions"], inner: {} },
  Machine: { needs: ["name", "state", "created_at", "last_used_at", "expires_at", "tags", "metadata", "memory_mb", "cpus", "disk_mb", "processes", "engine", "image", "idle_seconds", "history", "durability", "egress", "egress_allow", "next_instruction", "pending_instructions", "error", "running", "has_pending_instruction", "has_pending_instructions", "position", "memory_bytes", "disk_bytes", "forked_from"], inner: {} },
  MachineList: { needs: ["machines", "next"], inner: {"machines": "ListedMachine[]"} },
  Forked: { needs: ["machine_name", "machine_names"], inner: {} },
  WasReset: { needs: ["undo"], inner: {} },
  Secret: { needs: ["name", "placeholder", "hosts", "header", "places", "created_at", "changed_at"], inner: {} },
  SecretList: { needs: ["secrets"], inner: {"secrets": "Secret[]"} },
  Health: { needs: ["status", "version"], inner: {} },
  Error: { needs: ["code", "message", "retry"], inner: {} },
  Snapshot: { needs: ["id", "name", "position", "instruction", "created_at", "reason", "size_bytes"], inner: {} },
  SnapshotList: { needs: ["snapshots"], inner: {"snapshots": "Snapshot[]"} },
  RolledBack: { needs: ["snapshot", "undo"], inner: {"snapshot": "Snapshot"} },
  Tape: { needs: ["entries", "position", "more"], inner: {} },
  Webhook: { needs: ["id", "url", "events", "created_at"], inner: {} },
  WebhookCreated: { needs: ["id", "url", "events", "created_at", "secret"], inner: {} },
  WebhookList: { needs: ["webhooks"], inner: {"webhooks": "Webhook[]"} },
  WebhookTested: { needs: ["delivered"], inner: {} },
  Delivery: { needs: ["id", "webhook", "event", "body", "created_at", "attempts", "error"], inner: {} },
  DeliveryList: { needs: ["deliveries"], inner: {"deliveries": "Delivery[]"} },
  Retried: { needs: ["deliveries"], inner: {} },
  AuditPage: { needs: ["entries", "next"], inner: {"entries": "AuditEntry[]", "head": "AuditHead"} },
} as const;
