import { abortable } from "./abort.js";
import { Connection, DEFAULTS } from "./connection.js";
import { FeedError } from "./errors.js";
import { NUMBERS } from "./text.js";
import { Backoff, Follow, isPassing, rest, Watch } from "./watch.js";

/**
 * A client of one daemon. Requests share a connection, which is opened when it is needed and again after it was lost. Each watch
 * has a connection of its own, so a slow reader of one feed delays nothing else.
 */
export class Client {
  #connect;
  #options;
  #live = null;
  #opening = null;
  /** The number of calls that wait for a connection; later ones queue behind them. */
  #waiting = 0;
  #hasBegun = false;
  #stop = new AbortController();

  /** `connect(signal)` opens a transport: an object with `read`, `write` and `close`, or a promise of one. */
  constructor(connect, options = {}) {
    this.#connect = connect;
    this.#options = { ...DEFAULTS, reconnect: {}, ...options };
    if (!NUMBERS.includes(this.#options.numbers)) {
      throw new TypeError(`numbers must be one of ${NUMBERS.join(", ")}: ${this.#options.numbers}`);
    }
  }

  /** The result of the latest `hello`, or null before the first connection. */
  get hello() {
    return this.#live?.hello ?? null;
  }

  /** Resolves when the client is connected. Fails at once if there is no daemon yet. */
  async ready({ signal } = {}) {
    await this.#connected(signal);
    return this;
  }

  /**
   * Sends a request and resolves with its result. Requests are sent in the order of the calls. One whose answer is lost with its
   * connection fails with code "CLOSED": it may have been executed. It is not sent again.
   */
  async call(method, params, options = {}) {
    if (method === "watch" || method === "unwatch") throw new TypeError("use client.watch or client.follow");
    if (this.#isLive && this.#waiting === 0) return this.#live.call(method, params, options);
    this.#waiting += 1;
    try {
      await this.#connected(options.signal);
    } finally {
      this.#waiting -= 1;
    }
    return this.#live.call(method, params, options);
  }

  /** Adds elements to a collection or an array, or replaces those of the same identity, in one request. */
  push(feed, ...elements) {
    return this.call("update", { feed, elements });
  }

  /**
   * Pushes the elements of any iterable, with at most `window` requests without an answer. Resolves with the number of accepted
   * elements. With `batch`, that many elements are one request and one commit, and are accepted or refused together.
   * `onRefused(error, element)` is told of each refusal, with `batch` of all elements of the request; what it throws ends the
   * work, as the first refusal does without it.
   */
  async pushAll(feed, elements, { batch = 1, window = batch > 1 ? 4 : 256, onRefused, signal, timeout, ...members } = {}) {
    if (!(batch >= 1 && window >= 1)) throw new TypeError(`${batch >= 1 ? "window" : "batch"} must be at least 1`);
    let accepted = 0;
    let open = 0;
    let failure = null;
    let continues = null;
    const settled = () => {
      open -= 1;
      if (open <= window / 2) continues?.();
    };
    const below = async (count) => {
      while (open >= count) await new Promise((resolve) => (continues = resolve));
    };
    const send = (part) => {
      open += 1;
      const content = batch > 1 ? { elements: part, result: "counts" } : { element: part[0] };
      this.call("update", { feed, ...content, ...members }, { signal, timeout }).then(
        () => {
          accepted += part.length;
          settled();
        },
        (error) => {
          try {
            if (!onRefused || typeof error.code !== "number") throw error;
            onRefused(error, batch > 1 ? part : part[0]);
          } catch (reason) {
            failure ??= reason;
          }
          settled();
        },
      );
    };
    // An iterable that need not be awaited fills the window in one turn, whose requests are written at once.
    const isAsync = elements[Symbol.asyncIterator] !== undefined;
    const iterator = isAsync ? elements[Symbol.asyncIterator]() : elements[Symbol.iterator]();
    let part = [];
    try {
      while (failure === null) {
        const { done, value } = isAsync ? await iterator.next() : iterator.next();
        if (!done) part.push(value);
        if (part.length >= batch || (done && part.length > 0)) {
          send(part);
          part = [];
          if (open >= window) await below(window);
        }
        if (done) break;
      }
    } finally {
      await iterator.return?.();
    }
    await below(1);
    if (failure !== null) throw failure;
    return accepted;
  }

  /**
   * Watches a feed, or several feeds over one connection: an async iterable of changes, each with the copy after it. Options:
   * `mirror` to continue with a copy, `elements: false` for counts, `throttle`, `signal`, `onRetry(error, milliseconds)`.
   */
  watch(feeds, options = {}) {
    if (options.since !== undefined) throw new TypeError("pass the copy as mirror, or use follow to resume without a copy");
    return new Watch(this.#connect, [feeds].flat(), { ...this.#options, ...options }, [this.#stop.signal, options.signal]);
  }

  /**
   * Follows feeds without a copy: an async iterable of notifications as the daemon sent them, `{method, params, text}`, after one
   * `{method: "watch", params}` for each feed whenever its watch begins. `since` has the positions to resume from, by feed.
   */
  follow(feeds, options = {}) {
    return new Follow(this.#connect, [feeds].flat(), { ...this.#options, ...options }, [this.#stop.signal, options.signal]);
  }

  /** Closes all connections. Requests without an answer fail, and watches end. */
  close() {
    this.#stop.abort(new FeedError("CLOSED", "the client was closed by this program"));
    this.#live?.close();
  }

  get #isLive() {
    return this.#live !== null && this.#live.error === null;
  }

  async #connected(signal) {
    if (this.#isLive) return;
    signal?.throwIfAborted();
    this.#opening ??= this.#open().finally(() => (this.#opening = null));
    await abortable(this.#opening, signal);
  }

  /** Connects. Once it was connected, waits for a daemon that is gone as long as for an answer. */
  async #open() {
    const { reconnect, timeout } = this.#options;
    const { signal } = this.#stop;
    const backoff = new Backoff(reconnect || undefined);
    const start = performance.now();
    for (;;) {
      try {
        this.#live = await Connection.open(this.#connect, { ...this.#options, notifications: false, signal });
        this.#hasBegun = true;
        return;
      } catch (error) {
        const delay = backoff.next();
        const isLate = timeout > 0 && performance.now() + delay - start > timeout;
        if (!this.#hasBegun || !reconnect || !isPassing(error) || isLate) throw error;
        await rest(delay, signal);
      }
    }
  }
}
