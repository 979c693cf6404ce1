/** The types of the client; see README.md. `T` is the type of the decoded elements. */

export type IndexPath = [section: number, row: number];

/** How numbers of elements are decoded: rounded, large integers as `bigint`, or each as `NumberText`. */
export type Numbers = "number" | "bigint" | "text";

/** A value that `encode` writes as JSON. */
export type Encodable =
  | null
  | boolean
  | number
  | bigint
  | string
  | JSONText
  | NumberText
  | { toJSON(): unknown }
  | readonly Encodable[]
  | { readonly [name: string]: Encodable | undefined };

/** The identity of an element. */
export type Identity = string | number | bigint | NumberText;

/** The exact text of one JSON value, which is sent unchanged. */
export class JSONText<T = unknown> {
  /** Throws a SyntaxError if the text is not one JSON value. */
  constructor(text: string, numbers?: Numbers);
  readonly text: string;
  /** The decoded value. */
  readonly value: T;
  decode(numbers: Numbers): unknown;
  toString(): string;
  toJSON(): unknown;
}

/** A number as it is written in JSON. */
export class NumberText {
  /** Throws a SyntaxError if the text is not a number of JSON. */
  constructor(text: string);
  readonly text: string;
  valueOf(): number;
  toString(): string;
  toJSON(): number;
}

/** Decodes a message. `elements`, `nodes` and `element` in it become `JSONText`. Throws a SyntaxError. */
export function decode(text: string, options?: { numbers?: Numbers }): unknown;

/** Encodes a value as JSON. Throws a TypeError for what JSON has no text for. */
export function encode(value: Encodable | object): string;

// Errors

/** Codes of a daemon's refusals, and words for what happened at this side. */
export type ErrorCode = number | "UNREACHABLE" | "CLOSED" | "TIMEOUT" | "PROTOCOL" | "VERSION" | "GAP";

export type ErrorName =
  | "ParseError"
  | "InvalidRequest"
  | "MethodNotFound"
  | "InvalidParams"
  | "InternalError"
  | "UnknownFeed"
  | "DefinitionConflict"
  | "WrongKind"
  | "NoIdentity"
  | "BadQuery"
  | "IndexOutOfRange"
  | "PermissionDenied"
  | "LimitExceeded"
  | "StorageFailed"
  | "ConditionFailed"
  | "UnknownIdentity"
  | "Refused"
  | "NoDaemon"
  | "ConnectionClosed"
  | "TimedOut"
  | "ProtocolError"
  | "UnsupportedVersion"
  | "Gap";

export class FeedError extends Error {
  constructor(code: ErrorCode, message: string, data?: Record<string, unknown>, options?: { cause?: unknown });
  readonly name: ErrorName;
  readonly code: ErrorCode;
  /** The facts: of a refusal those of the daemon, of a closed connection the `reason`. */
  readonly data: Record<string, unknown>;
}

// Transports

/** A stream of bytes to a daemon and back. */
export interface Transport {
  /** The next bytes, or null at the end. Called only when the client wants more: do not read ahead without limit. */
  read(): Promise<Uint8Array | null>;
  /** Writes bytes. The promise resolves when more can be written. */
  write(bytes: Uint8Array): Promise<void>;
  /** Closes both directions. A `read` that waits then settles in any way. */
  close(): void;
}

/** Opens a transport; called again for each connection. */
export type Connect = (signal: AbortSignal) => Transport | Promise<Transport>;

/** A transport over a pair of web streams. */
export function streamTransport(pair: {
  readable: ReadableStream<Uint8Array>;
  writable: WritableStream<Uint8Array>;
}): Transport;

// Requests and results

export interface Condition {
  feed: string;
  revision: number | null;
}

/** What any request that changes something takes. */
export interface Options {
  animation?: string;
  if?: Condition | Condition[];
}

export interface SectionCount {
  name: string;
  key?: unknown;
  count: number;
}

/** Section 4 of the protocol. */
export interface ChangeLists {
  deleted: IndexPath[];
  added: IndexPath[];
  updated: IndexPath[];
  sections?: { deleted: number[]; added: { at: number; name: string; key?: unknown }[] };
  moves?: [deleted: number, added: number][];
}

export type Mutation = { revision: number } & ChangeLists;

/** The answer to a request with `result: "counts"`: how many entries each list of the change has. */
export interface CountedMutation {
  revision: number;
  counts: {
    deleted: number;
    added: number;
    updated: number;
    moves: number;
    sections?: { deleted: number; added: number };
  };
}

export type Kind = "collection" | "array" | "single" | "composed" | "segmented" | "slots" | "view";

export interface SortTerm {
  by: string;
  order?: "ascending" | "descending";
}

/** A definition; the members of each kind are in section 6 of the protocol. */
export interface Definition {
  feed: string;
  kind: Kind;
  [member: string]: unknown;
}

export interface Description {
  feed: string;
  kind: string;
  sections: SectionCount[];
  counts: number[];
  count: number;
  revision: number;
  watchers: number;
  /** In a group: its name, and how the daemon reaches the log of the group. */
  group?: string;
  log?: string;
  [member: string]: unknown;
}

export interface Hello {
  protocol: number;
  server: string;
  epoch: string;
  revision: number;
  limits: Record<string, number>;
  capabilities: { methods: string[]; kinds: string[]; durability: string };
  /** In a group: its name, and how the daemon reaches the log of the group. */
  group?: string;
  log?: string;
}

type Value = Encodable | object;
type One<P, R> = { params: P; result: R };
type Edit<P> = One<P & Options, Mutation>;
type Selecting = One<{ feed: string; at?: IndexPath | IndexPath[]; all?: boolean; if?: Condition | Condition[] }, Selected>;

export interface Selected {
  revision: number;
  selected: IndexPath[];
}

/** The parameters and results of the methods. A daemon may take more than these: cast such parameters. */
export interface Methods {
  hello: One<{ protocol?: 1; client?: string | { name: string } }, Hello>;
  ping: One<{}, {}>;
  sync: One<{}, { revision: number }>;
  define: One<Definition & Options & { replace?: boolean }, { revision: number }>;
  undefine: One<{ feed: string } & Options, { revision: number }>;
  feeds: One<{}, { feeds: Description[]; revision: number }>;
  describe: One<{ feed: string }, Description>;
  update: Edit<{ feed: string; element?: Value; elements?: Value[]; where?: string; absent?: boolean }>;
  patch: Edit<{ feed: string; id?: Identity; at?: number; patch?: Value; patches?: Value[]; where?: string }>;
  delete: Edit<{ feed: string; id?: Identity; ids?: Identity[]; where?: string }>;
  set: Edit<{ feed: string; elements: Value[] }>;
  transaction: One<
    { ops: { method: string; params: object }[]; if?: Condition | Condition[] },
    { revision: number; results: ChangeLists[] }
  >;
  insert: Edit<{ feed: string; element?: Value; elements?: Value[]; at?: number | number[] }>;
  remove: Edit<{ feed: string; at: number | number[] }>;
  replace: Edit<{ feed: string; element?: Value; elements?: Value[]; at: number | number[] }>;
  move: Edit<{ feed: string; from?: number; id?: Identity; to: number; where?: string }>;
  put: Edit<{ feed: string; element: Value }>;
  activate: Edit<{ feed: string; child: number | string }>;
  insertChild: Edit<{ feed: string; child: string; at?: number; before?: string; after?: string }>;
  removeChild: Edit<{ feed: string; child?: string; at?: number }>;
  get: One<
    { feed: string; at?: IndexPath; id?: Identity },
    { element: JSONText; at: IndexPath | IndexPath[]; type: string | null; found: boolean; revision: number }
  >;
  range: One<
    { feed: string; section?: number; from?: number; count?: number },
    { elements: JSONText[]; types: (string | null)[]; revision: number }
  >;
  snapshot: One<
    { feed: string },
    { revision: number; sections: (SectionCount & { elements: JSONText[]; types?: (string | null)[] })[] }
  >;
  query: One<
    { feed: string; path: string; places?: boolean },
    { nodes: JSONText[]; places?: (IndexPath | null)[]; revision: number }
  >;
  verify: One<{ feed: string }, { revision: number; counts: number[]; digest: string }>;
  select: Selecting;
  deselect: Selecting;
  selected: One<{ feed: string }, Selected>;
  stats: One<{}, Record<string, unknown>>;
  clients: One<{}, { clients: Record<string, unknown>[] }>;
  quotas: One<{}, Record<string, unknown>>;
  kick: One<{ connection: number }, { connection: number; uid: number; pid: number }>;
  logLevel: One<{ level?: string }, { level: string }>;
  group: One<{ action?: "status" | "leave" | "join" | "image" }, Record<string, unknown>>;
}

/** The methods that are answered with a change. */
export type Edits = { [M in keyof Methods]: Methods[M]["result"] extends Mutation ? M : never }[keyof Methods];

export type ParamsOf<M extends string> = M extends keyof Methods ? Methods[M]["params"] : object;
export type ResultOf<M extends string> = M extends keyof Methods ? Methods[M]["result"] : unknown;

export interface CallOptions {
  signal?: AbortSignal;
  /** Milliseconds to wait for the answer; 0 waits without end. */
  timeout?: number;
}

// Copies

/** The rows of a section. */
export class Rows<R> implements Iterable<R> {
  readonly length: number;
  at(place: number): R | undefined;
  slice(start?: number, end?: number): R[];
  push(row: R): void;
  insert(place: number, row: R): void;
  remove(place: number): R;
  [Symbol.iterator](): IterableIterator<R>;
}

/** A row of a mirror, which stays the same object when it moves and when its element is replaced. */
export class Row<T = unknown> {
  constructor(key: number, element: JSONText<T>, type: string | null);
  /** A number that no other row of the mirror has or had. */
  readonly key: number;
  element: JSONText<T>;
  type: string | null;
  readonly text: string;
  readonly value: T;
}

export interface Section<T = unknown> {
  readonly name: string;
  /** The value that a section by value stands for; undefined for other sections. */
  readonly key: unknown;
  readonly rows: Rows<Row<T>>;
}

/** A position to resume from. */
export interface Since {
  epoch: string;
  revision: number;
}

export interface WatchResult {
  feed: string;
  epoch: string;
  revision: number;
  resumed: boolean;
  sections: SectionCount[];
}

export interface Notification {
  method: string;
  params: Record<string, unknown>;
}

export class Mirror<T = unknown> {
  constructor(result: WatchResult);
  /** Makes a copy of what `save` returned. Throws a SyntaxError or a FeedError if it is nothing like that. */
  static load<T = unknown>(text: string, options?: { numbers?: Numbers }): Mirror<T>;
  readonly feed: string;
  readonly sections: Section<T>[];
  readonly revision: number | null;
  readonly since: Since | null;
  readonly selected: IndexPath[];
  readonly isWhole: boolean;
  /** Continues with the result of another watch, called with `since` of this copy. */
  restart(result: WatchResult): void;
  /** Applies a notification. Throws a FeedError with code "GAP" if it does not follow. */
  apply(notification: Notification): Snapshot<T> | Delta<T> | Selection<T> | null;
  at(section: number, row: number): Row<T> | undefined;
  values(): T[][];
  counts(): number[];
  /** The digest that `verify` returns at this revision. */
  digest(): string;
  /** The copy as text, for `Mirror.load`. */
  save(): string;
}

export class Counts {
  constructor(result: WatchResult);
  readonly feed: string;
  readonly names: string[];
  readonly counts: number[];
  readonly revision: number;
  readonly since: Since | null;
  restart(result: WatchResult): void;
  apply(notification: Notification): CountsChange | null;
  change(): CountsChange;
}

/** The copy is new as a whole: the first one, or after changes that the daemon does not have any more. */
export interface Snapshot<T = unknown> {
  kind: "snapshot";
  feed: string;
  revision: number;
  /** Whether the feed was removed before that, and the watch of it ended. */
  ended: boolean;
  mirror: Mirror<T>;
}

export interface Delta<T = unknown> extends Required<ChangeLists> {
  kind: "delta";
  feed: string;
  from: number;
  revision: number;
  /** The rows of `added`, followed by those of `updated`. */
  rows: Row<T>[];
  /** The rows that left and were not moved, also those of deleted sections. */
  removed: Row<T>[];
  /**
   * With `ids`: the identity of each row of `deleted`, null for one that has none, and those of the rows of each deleted section.
   * Null without `ids`, and if the daemon does not know them.
   */
  deletedIDs: (Identity | null)[] | null;
  deletedSectionIDs: (Identity | null)[][] | null;
  animation: string | null;
  /** Whether the feed was removed, and the watch of it ended. */
  ended: boolean;
  mirror: Mirror<T>;
}

export interface Selection<T = unknown> {
  kind: "selection";
  feed: string;
  revision: number;
  selected: IndexPath[];
  mirror: Mirror<T>;
}

export interface CountsChange {
  kind: "counts";
  feed: string;
  revision: number;
  names: string[];
  counts: number[];
  animation: string | null;
  ended: boolean;
  mirror: Counts;
}

export type Change<T = unknown> = Snapshot<T> | Delta<T> | Selection<T>;

// Clients

export interface ClientOptions {
  /** The name of the program in the daemon's log and in `clients`. */
  client?: string;
  numbers?: Numbers;
  /** Milliseconds to wait for an answer, for a connection, or for the rest of a frame (30,000); 0 waits without end. */
  timeout?: number;
  /** The most bytes of a frame (256 MiB). */
  maxFrame?: number;
  /** Delays of reconnection in milliseconds (50, doubled up to 5,000), or false for none. */
  reconnect?: { first?: number; longest?: number } | false;
}

/** The members of each `update`, and the most requests without an answer. */
export type PushOptions = Omit<Methods["update"]["params"], "feed" | "element" | "elements"> & CallOptions & { window?: number };

export interface WatchOptions {
  signal?: AbortSignal;
  throttle?: number;
  reconnect?: ClientOptions["reconnect"];
  /** Called before each wait for another attempt to connect. */
  onRetry?(error: FeedError, milliseconds: number): void;
}

/** An async iterable with a connection of its own. It stops reading when nobody takes what it has. */
export interface Follow<C> extends AsyncIterableIterator<C> {
  next(): Promise<IteratorResult<C, undefined>>;
  return(): Promise<IteratorResult<C, undefined>>;
  /** Ends it and closes its connection. */
  close(): void;
}

export interface Watch<C, M> extends Follow<C> {
  /** The copy of the feed; null before the watch has begun. */
  readonly mirror: M | null;
  /** The copies by the names of their feeds. */
  readonly mirrors: ReadonlyMap<string, M>;
}

export class Client {
  constructor(connect: Connect, options?: ClientOptions);
  /** The result of the latest `hello`. */
  readonly hello: Hello | null;
  /** Connects. Fails at once if there is no daemon. */
  ready(options?: { signal?: AbortSignal }): Promise<this>;
  call<M extends Edits>(
    method: M,
    params: Methods[M]["params"] & { result: "counts" },
    options?: CallOptions,
  ): Promise<CountedMutation>;
  call(
    method: "transaction",
    params: Methods["transaction"]["params"] & { result: "counts" },
    options?: CallOptions,
  ): Promise<{ revision: number; results: Pick<CountedMutation, "counts">[] }>;
  call<M extends string>(method: M, params?: ParamsOf<M>, options?: CallOptions): Promise<ResultOf<M>>;
  /** Updates with all the elements in one request. */
  push(feed: string, ...elements: Value[]): Promise<Mutation>;
  /** Updates with one element each, in a pipeline. Resolves with the number of accepted elements. */
  pushAll<E extends Value>(
    feed: string,
    elements: Iterable<E> | AsyncIterable<E>,
    options?: PushOptions & { batch?: 1; onRefused?(error: FeedError, element: E): void },
  ): Promise<number>;
  /** Updates with `batch` elements each: one commit, accepted or refused together. */
  pushAll<E extends Value>(
    feed: string,
    elements: Iterable<E> | AsyncIterable<E>,
    options: PushOptions & { batch: number; onRefused?(error: FeedError, elements: E[]): void },
  ): Promise<number>;
  watch<T = unknown>(
    feeds: string | string[],
    options?: WatchOptions & { mirror?: Mirror<T> | Mirror<T>[]; elements?: true; spanning?: boolean; ids?: boolean },
  ): Watch<Change<T>, Mirror<T>>;
  watch(
    feeds: string | string[],
    options: WatchOptions & { mirror?: Counts | Counts[]; elements: false },
  ): Watch<CountsChange, Counts>;
  /** Notifications as the daemon sent them, after `{method: "watch", params}` whenever a watch begins. */
  follow(
    feeds: string | string[],
    options?: WatchOptions & {
      since?: { [feed: string]: Since };
      initial?: boolean;
      elements?: boolean;
      spanning?: boolean;
      ids?: boolean;
    },
  ): Follow<Notification & { text: string | null }>;
  close(): void;
}

/** One connection, for programs that manage connections and watches themselves. */
export class Connection {
  constructor(transport: Transport, options?: ClientOptions & { notifications?: boolean });
  static open(connect: Connect, options?: ClientOptions & { notifications?: boolean; signal?: AbortSignal }): Promise<Connection>;
  readonly hello: Hello | null;
  readonly error: FeedError | null;
  call(method: "watch", params: object, options?: CallOptions): Promise<WatchResult>;
  call<M extends string>(method: M, params?: ParamsOf<M>, options?: CallOptions): Promise<ResultOf<M>>;
  /** The next notification. Rejects when the connection ends. */
  next(signal?: AbortSignal): Promise<Notification & { text: string }>;
  /** All notifications that have come, at least one. */
  batch(signal?: AbortSignal): Promise<(Notification & { text: string })[]>;
  close(): void;
}
