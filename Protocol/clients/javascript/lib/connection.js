import { abortable, onAbort } from "./abort.js";
import { FeedError, violation } from "./errors.js";
import { frame, FrameReader, frameText } from "./frames.js";
import { decode, encode } from "./text.js";

/** The bytes of notifications that may wait for the program before the connection stops reading. */
const HIGH_WATER = 1 << 16;
/** The bytes that may wait while an answer is awaited, which comes behind them. */
const MAX_QUEUED = 64 << 20;

export const DEFAULTS = {
  client: "feedd.js",
  numbers: "number",
  /** Milliseconds to wait for an answer, or for the rest of a frame. */
  timeout: 30_000,
  /** The most bytes of a frame: several times the largest of a daemon with default limits. */
  maxFrame: 256 << 20,
};

/** The longest time that `setTimeout` can wait, in milliseconds. */
const LONGEST = 0x7fffffff;
/** Milliseconds to read what has come while the program slept or was busy, before its time is up. */
const GRACE = 20;

/** Calls `act` after a time, unless it is stopped. */
class Alarm {
  #timer;

  constructor(milliseconds, act) {
    const again = () => (this.#timer = setTimeout(act, GRACE));
    this.#timer = setTimeout(again, Math.min(milliseconds, LONGEST));
  }

  /** Whether it keeps a program of Node running. */
  holds(isNeeded) {
    if (isNeeded) this.#timer.ref?.();
    else this.#timer.unref?.();
  }

  stop() {
    clearTimeout(this.#timer);
  }
}

const isLimited = (timeout) => timeout > 0 && timeout < Infinity;

/**
 * One connection over a transport: requests and their answers, and the queue of notifications.
 *
 * It reads whenever an answer is awaited or little waits for the program. While more than 64 KiB of notifications wait, it stops
 * reading: the transport fills, and the daemon then combines what is missed into one delta.
 */
export class Connection {
  #transport;
  #options;
  #frames;
  #nextId = 1;
  /** Requests without an answer, by id, in the order in which they were sent. */
  #pending = new Map();
  #alarm = null;
  #alarmTime = Infinity;
  #output = [];
  #isWriting = false;
  #queue = [];
  #queuedBytes = 0;
  #keepsNotifications;
  /** Called when a notification or the end arrives, one for each that waits; called when the queue is short again. */
  #arrived = new Set();
  #drained = null;
  #error = null;

  /** Uses a transport that is open. `notifications: false` drops notifications, for a connection without watches. */
  constructor(transport, options = {}) {
    this.#transport = transport;
    this.#options = { ...DEFAULTS, ...options };
    this.#keepsNotifications = options.notifications ?? true;
    this.#frames = new FrameReader(this.#options.maxFrame);
    /** The result of `hello`. */
    this.hello = null;
    this.#read();
  }

  /** Opens a transport and calls `hello`. */
  static async open(connect, options = {}) {
    const { timeout, client, signal } = { ...DEFAULTS, ...options };
    const transport = await opened(connect, timeout, signal);
    const connection = new Connection(transport, options);
    try {
      connection.hello = await greeting(connection, client, signal);
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** Why the connection ended, or null while it is open. */
  get error() {
    return this.#error;
  }

  /** Sends a request. Resolves with its result, or rejects with a FeedError or the reason of the signal. */
  call(method, params, { signal, timeout = this.#options.timeout } = {}) {
    if (this.#error) return Promise.reject(this.#error);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const id = this.#nextId;
    let bytes;
    try {
      const body = encode({ jsonrpc: "2.0", id, method, params });
      bytes = frame(body);
    } catch (error) {
      return Promise.reject(error);
    }
    const maxFrame = this.hello?.limits?.maxFrame ?? Infinity;
    if (bytes.length - 4 > maxFrame) {
      // The daemon would close the connection, and the requests of others with it.
      const message = `invalid request: ${method} has ${bytes.length - 4} bytes; the maxFrame of this daemon is ${maxFrame}`;
      return Promise.reject(new FeedError(-32600, message));
    }
    this.#nextId += 1;
    const answer = new Promise((resolve, reject) => {
      const deadline = isLimited(timeout) ? performance.now() + timeout : Infinity;
      this.#pending.set(id, { method, resolve, reject, deadline, timeout });
      this.#watchTime(deadline);
      // The alarm keeps a program running only while it waits for an answer.
      if (this.#pending.size === 1) this.#alarm?.holds(true);
    });
    this.#output.push(bytes);
    if (!this.#isWriting) this.#write();
    this.#drained?.();
    return abortable(answer, signal);
  }

  /** The next notification as `{method, params, text}`, with the text of its frame. Rejects when the connection ends. */
  async next(signal) {
    while (this.#queue.length === 0) await this.#arrival(signal);
    const notification = this.#queue.shift();
    this.#release(notification.text.length);
    return notification;
  }

  /** All notifications that have come, at least one. Rejects when the connection ends. */
  async batch(signal) {
    while (this.#queue.length === 0) await this.#arrival(signal);
    const notifications = this.#queue;
    this.#queue = [];
    this.#release(this.#queuedBytes);
    return notifications;
  }

  /** Waits for a notification, which another one that waits may take first. */
  async #arrival(signal) {
    if (this.#error) throw this.#error;
    let arrived;
    const arrival = new Promise((resolve) => (arrived = resolve));
    this.#arrived.add(arrived);
    try {
      await abortable(arrival, signal);
    } finally {
      this.#arrived.delete(arrived);
    }
  }

  #announce() {
    for (const arrived of this.#arrived) arrived();
  }

  #release(bytes) {
    this.#queuedBytes -= bytes;
    if (this.#queuedBytes <= HIGH_WATER) this.#drained?.();
  }

  /** Closes the connection. Requests without an answer fail. */
  close() {
    this.#end(new FeedError("CLOSED", "the connection was closed by this program"));
  }

  /** Writes all frames that were sent in one turn at once. */
  async #write() {
    this.#isWriting = true;
    try {
      await null;
      while (this.#output.length > 0 && !this.#error) {
        const frames = this.#output;
        this.#output = [];
        await this.#transport.write(joined(frames));
      }
    } catch {
      // The daemon closed the connection. What it sent before, such as the reason, is still read.
    } finally {
      this.#isWriting = false;
    }
  }

  async #read() {
    try {
      for (;;) {
        while (this.#queuedBytes > HIGH_WATER && this.#pending.size === 0 && !this.#error) {
          await new Promise((resolve) => (this.#drained = resolve));
        }
        if (this.#error) return;
        const chunk = await this.#chunk();
        if (chunk === null) throw new FeedError("CLOSED", "the daemon closed the connection");
        this.#frames.push(chunk);
        for (let bytes = this.#frames.next(); bytes !== null && !this.#error; bytes = this.#frames.next()) {
          this.#take(frameText(bytes));
        }
      }
    } catch (error) {
      this.#end(error instanceof FeedError ? error : new FeedError("CLOSED", error.message, {}, { cause: error }));
    }
  }

  /** The next bytes. Fails if the rest of a frame does not come. */
  async #chunk() {
    const { timeout } = this.#options;
    if (!this.#frames.isInside || !isLimited(timeout)) return this.#transport.read();
    let alarm;
    const stalled = new Promise((_, reject) => {
      alarm = new Alarm(timeout, () => reject(violation(`a frame without its rest for ${timeout / 1000} s`)));
    });
    try {
      return await Promise.race([this.#transport.read(), stalled]);
    } finally {
      alarm.stop();
    }
  }

  #take(text) {
    let message;
    try {
      message = decode(text, this.#options);
    } catch (cause) {
      throw violation(`a frame that is not a message: ${cause.message}`, { cause });
    }
    if (message === null || typeof message !== "object" || Array.isArray(message)) {
      throw violation("a message that is not an object");
    }
    if ("method" in message) this.#notify(message, text);
    else this.#answer(message);
  }

  #notify({ method, params = {} }, text) {
    if (typeof method !== "string" || params === null || typeof params !== "object" || Array.isArray(params)) {
      throw violation("a notification without a name, or with parameters that are not an object");
    }
    if (method === "bye") {
      const { reason, message } = params;
      throw new FeedError("CLOSED", `the daemon closed the connection: ${message ?? reason}`, { reason });
    }
    if (!this.#keepsNotifications) return;
    this.#queuedBytes += text.length;
    if (this.#queuedBytes > MAX_QUEUED) throw violation("more notifications than this client keeps, and no answer");
    this.#queue.push({ method, params, text });
    this.#announce();
  }

  #answer(message) {
    // The daemon cannot name a request that it could not read. It answers in order, so it is the oldest one.
    const id = message.id === null ? this.#pending.keys().next().value : message.id;
    const failure = "error" in message ? refusal(message.error) : null;
    if (failure === null && !("result" in message)) throw violation("an answer without a result");
    const request = this.#pending.get(id);
    if (request === undefined) {
      if (message.id === null && failure !== null) throw failure;
      return;
    }
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#alarm?.holds(false);
    if (failure) request.reject(failure);
    else request.resolve(message.result);
  }

  #watchTime(deadline) {
    if (deadline >= this.#alarmTime) return;
    this.#alarm?.stop();
    this.#alarmTime = deadline;
    this.#alarm = new Alarm(deadline - performance.now(), () => this.#checkTime());
  }

  #checkTime() {
    this.#alarmTime = Infinity;
    const now = performance.now();
    let next = Infinity;
    for (const request of this.#pending.values()) {
      if (request.deadline <= now) {
        // It stays in the line, so that answers find their requests.
        request.deadline = Infinity;
        const seconds = request.timeout / 1000;
        request.reject(new FeedError("TIMEOUT", `${request.method} timed out after ${seconds} s`, { seconds }));
      } else {
        next = Math.min(next, request.deadline);
      }
    }
    if (next < Infinity) this.#watchTime(next);
  }

  #end(error) {
    if (this.#error) return;
    this.#error = error;
    this.#alarm?.stop();
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    this.#output = [];
    this.#announce();
    this.#drained?.();
    this.#transport.close();
  }
}

/** Opens a transport. One that opens after the time is up, or after the signal, is closed again. */
async function opened(connect, timeout, signal) {
  const stop = new AbortController();
  if (signal?.aborted) throw signal.reason;
  const callOff = signal ? onAbort(signal, () => stop.abort(signal.reason)) : () => {};
  const seconds = timeout / 1000;
  const late = () => stop.abort(new FeedError("TIMEOUT", `connecting timed out after ${seconds} s`, { seconds }));
  const alarm = isLimited(timeout) ? new Alarm(timeout, late) : null;
  const transport = (async () => connect(stop.signal))();
  try {
    return await abortable(transport, stop.signal);
  } catch (error) {
    transport.then((opened) => opened.close(), () => {});
    if (stop.signal.aborted || error instanceof FeedError) throw error;
    throw new FeedError("UNREACHABLE", `cannot connect: ${error?.message ?? error}`, { cause: error?.code }, { cause: error });
  } finally {
    alarm?.stop();
    callOff();
  }
}

async function greeting(connection, client, signal) {
  let hello;
  try {
    hello = await connection.call("hello", { protocol: 1, client }, { signal });
  } catch (error) {
    const isOther = error.code === -32601 || (error.code === -32602 && error.data?.member === "protocol");
    if (!isOther) throw error;
    throw new FeedError("VERSION", `the daemon does not speak version 1 of the protocol: ${error.message}`, {});
  }
  if (hello?.protocol !== 1) {
    const protocol = typeof hello?.protocol === "number" ? hello.protocol : null;
    throw new FeedError("VERSION", `the daemon speaks version ${protocol} of the protocol, this client version 1`, { protocol });
  }
  if (typeof hello.epoch !== "string" || !Number.isSafeInteger(hello.revision)) {
    throw violation("an answer to hello without epoch and revision");
  }
  return hello;
}

function refusal(error) {
  if (typeof error?.code !== "number" || typeof error.message !== "string") {
    throw violation("an error without a code and a message");
  }
  const data = error.data !== null && typeof error.data === "object" ? error.data : {};
  return new FeedError(error.code, error.message, data);
}

function joined(chunks) {
  if (chunks.length === 1) return chunks[0];
  const bytes = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
