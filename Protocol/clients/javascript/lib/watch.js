import { abortable, onAbort } from "./abort.js";
import { Connection } from "./connection.js";
import { FeedError, violation } from "./errors.js";
import { Counts, Mirror } from "./mirror.js";

/** The delays between attempts to connect: doubled after each, with some chance in them so that clients do not come at once. */
export class Backoff {
  #options;
  #delay;

  constructor({ first = 50, longest = 5000 } = {}) {
    this.#options = { first, longest };
    this.reset();
  }

  reset() {
    this.#delay = this.#options.first;
  }

  /** Milliseconds to wait before the next attempt. */
  next() {
    const delay = this.#delay;
    this.#delay = Math.min(2 * delay, this.#options.longest);
    return delay * (0.75 + Math.random() / 4);
  }
}

/** The notifications of a watch. Others, of later daemons, are dropped. */
const NOTIFICATIONS = new Set(["snapshot", "delta", "bookmark", "selection"]);

export function rest(milliseconds, signal) {
  let timer;
  return abortable(new Promise((resolve) => (timer = setTimeout(resolve, milliseconds))), signal).finally(() =>
    clearTimeout(timer)
  );
}

/** The code of a watch that a member of a group refuses until it has reached the position of the copy. */
const BEHIND = -32008;

/** Whether another attempt may succeed: the connection was lost, or there is no daemon, or it is busy or behind. */
export function isPassing(error) {
  if (!(error instanceof FeedError)) return false;
  if (error.code === "TIMEOUT" || error.code === BEHIND) return true;
  if (error.code === "CLOSED") return error.data.reason !== "badFrame";
  return error.code === "UNREACHABLE" && !["EACCES", "ENOTSOCK"].includes(error.data.cause);
}

/** The position of a watch: what to pass as `since`. It moves when a snapshot is whole, with each delta, and with bookmarks. */
class Position {
  constructor(since) {
    this.since = since ?? null;
    this.epoch = null;
  }

  /** Takes the result of `watch`. Without a snapshot to follow, it is the position already. */
  start({ epoch, revision, resumed }, hasSnapshot) {
    if (typeof epoch !== "string") throw violation("an answer to watch without an epoch");
    this.epoch = epoch;
    if (resumed !== true && !hasSnapshot) this.since = { epoch, revision };
  }

  take({ method, params }) {
    if (method === "delta" || (method === "snapshot" && params.last === true)) {
      this.since = { epoch: this.epoch, revision: params.revision };
    } else if (method === "bookmark") {
      this.since = { epoch: params.epoch, revision: params.current };
    }
  }
}

/**
 * Follows feeds over a series of connections, and yields the notifications that have come, as they are, in lists. First, and
 * after each reconnection, a list has for each feed `{method: "watch", params, text: null}` with the result of `watch`.
 */
async function* followed(connect, feeds, options) {
  const { since = {}, initial, elements, throttle, spanning = true, ids, signal, reconnect, onRetry, ...connecting } = options;
  // A feed may be named like a member that every object has, such as `constructor`.
  const positions = new Map(feeds.map((feed) => [feed, new Position(Object.hasOwn(since, feed) ? since[feed] : null)]));
  const backoff = new Backoff(reconnect || undefined);
  let hasBegun = false;
  for (;;) {
    let connection;
    try {
      connection = await Connection.open(connect, { ...connecting, signal });
      const results = await Promise.all(
        Array.from(positions, ([feed, { since }]) => {
          // A watch that cannot resume gets a snapshot, because it would miss changes otherwise.
          const params = { feed, elements, throttle, spanning, ids, ...(since ? { since } : { initial }) };
          return connection.call("watch", params, { signal });
        }),
      );
      for (const result of results) {
        const position = positions.get(result?.feed);
        if (position === undefined) throw violation("the answer to another watch");
        position.start(result, elements !== false && (position.since !== null || initial !== false));
      }
      hasBegun = true;
      yield results.map((params) => ({ method: "watch", params, text: null }));
      while (positions.size > 0) {
        const notifications = await connection.batch(signal);
        yield notifications.filter((notification) => isExpected(notification, positions));
        backoff.reset();
      }
      return;
    } catch (error) {
      if (!hasBegun || !reconnect || !isPassing(error)) throw error;
      const delay = backoff.next();
      onRetry?.(error, delay);
      await rest(delay, signal);
    } finally {
      connection?.close();
    }
  }
}

/** Whether a notification is of a watch; moves the position of its feed. */
function isExpected(notification, positions) {
  const { method, params } = notification;
  if (!NOTIFICATIONS.has(method)) return false;
  if (typeof params.feed !== "string") throw violation("a notification without the name of a feed");
  const position = positions.get(params.feed);
  if (position === undefined) return false;
  position.take(notification);
  if (params.ended === true) positions.delete(params.feed);
  return true;
}

/** Makes changes of the notifications of watches, each with the copy after it. */
class Copies {
  constructor(mirrors, isCounting) {
    this.byFeed = new Map(mirrors.map((mirror) => [mirror.feed, mirror]));
    this.isCounting = isCounting;
  }

  /** The change that a notification makes, or null. */
  take(notification) {
    const { method, params } = notification;
    const mirror = this.byFeed.get(params.feed);
    if (method !== "watch") return mirror.apply(notification);
    if (mirror === undefined) {
      const fresh = this.isCounting ? new Counts(params) : new Mirror(params);
      this.byFeed.set(params.feed, fresh);
      return this.isCounting ? fresh.change() : null;
    }
    mirror.restart(params);
    return this.isCounting && !params.resumed ? mirror.change() : null;
  }
}

const settled = () => {};

/**
 * An async iterable of what is made of the notifications of watches, one after another: while nobody asks for the next one, none
 * is applied, and the connection stops reading. Ends when one of its signals is aborted, or when it is closed.
 */
class Stream {
  #stop = new AbortController();
  #isClosed = false;
  #callOff = [];
  #lists;
  #list = [];
  #at = 0;
  #take;
  /** Settles when no call of `next` before is left: each takes what is behind that of the one before. */
  #turn = Promise.resolve();

  constructor(lists, take, signals) {
    for (const one of signals.filter(Boolean)) {
      if (one.aborted) this.#stop.abort(one.reason);
      this.#callOff.push(onAbort(one, () => this.#stop.abort(one.reason)));
    }
    this.#lists = lists(this.#stop.signal);
    this.#take = take;
    // Between two calls of `next`, nothing in the lists waits for the signal: they must be left to close the connection.
    this.#stop.signal.addEventListener("abort", () => this.#lists.return().catch(() => {}), { once: true });
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  next() {
    const result = this.#turn.then(() => this.#next());
    this.#turn = result.then(settled, settled);
    return result;
  }

  async #next() {
    try {
      this.#stop.signal.throwIfAborted();
      for (;;) {
        while (this.#at < this.#list.length) {
          const value = this.#take(this.#list[this.#at++]);
          if (value !== null) return { done: false, value };
        }
        const { done, value } = await this.#lists.next();
        if (done) return this.#ended();
        this.#list = value;
        this.#at = 0;
      }
    } catch (error) {
      await this.#lists.return();
      this.#ended();
      if (this.#isClosed) return { done: true, value: undefined };
      throw error;
    }
  }

  /** Ends the iteration and closes its connection. */
  async return(value) {
    this.close();
    await this.#lists.return();
    return { done: true, value };
  }

  close() {
    this.#isClosed = true;
    this.#ended();
    this.#stop.abort();
  }

  #ended() {
    for (const callOff of this.#callOff) callOff();
    this.#list = [];
    return { done: true, value: undefined };
  }
}

/** The changes of watched feeds. */
export class Watch extends Stream {
  #copies;

  constructor(connect, feeds, { mirror = [], ...options }, signals) {
    const copies = new Copies([mirror].flat(), options.elements === false);
    const since = Object.fromEntries(Array.from(copies.byFeed, ([feed, { since }]) => [feed, since]));
    const lists = (signal) => followed(connect, feeds, { ...options, since, signal });
    super(lists, (notification) => copies.take(notification), signals);
    this.#copies = copies;
  }

  /** The copy of the feed, of the first one if there are several; null before the watch has begun. */
  get mirror() {
    return this.#copies.byFeed.values().next().value ?? null;
  }

  /** The copies by the names of their feeds. */
  get mirrors() {
    return this.#copies.byFeed;
  }
}

/** The notifications of followed feeds, as they are. */
export class Follow extends Stream {
  constructor(connect, feeds, options, signals) {
    super((signal) => followed(connect, feeds, { ...options, signal }), (notification) => notification, signals);
  }
}
