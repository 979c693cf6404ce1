import { abortable } from "./abort.js";
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
    clearTimeout(timer),
  );
}

/** Whether another attempt may succeed: the connection was lost, or there is no daemon. */
export function isPassing(error) {
  if (!(error instanceof FeedError)) return false;
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
 * Follows feeds over a series of connections, and yields every notification as it is. First, and after each reconnection, it
 * yields for each feed `{method: "watch", params, text: null}` with the result of `watch`.
 */
export async function* follow(connect, feeds, options) {
  const { since = {}, initial, elements, throttle, spanning = true, signal, reconnect, onRetry, ...connecting } = options;
  const positions = new Map(feeds.map((feed) => [feed, new Position(since[feed])]));
  const backoff = new Backoff(reconnect || undefined);
  let hasBegun = false;
  for (;;) {
    let connection;
    try {
      connection = await Connection.open(connect, { ...connecting, signal });
      const results = await Promise.all(
        Array.from(positions, ([feed, { since }]) => {
          // A watch that cannot resume gets a snapshot, because it would miss changes otherwise.
          const params = { feed, elements, throttle, spanning, ...(since ? { since } : { initial }) };
          return connection.call("watch", params, { signal });
        }),
      );
      for (const result of results) {
        const position = positions.get(result?.feed);
        if (position === undefined) throw violation("the answer to another watch");
        position.start(result, elements !== false && (position.since !== null || initial !== false));
      }
      hasBegun = true;
      for (const params of results) yield { method: "watch", params, text: null };
      while (positions.size > 0) {
        const notification = await connection.next(signal);
        const { feed, ended } = notification.params;
        if (!NOTIFICATIONS.has(notification.method)) continue;
        if (typeof feed !== "string") throw violation("a notification without the name of a feed");
        if (!positions.has(feed)) continue;
        positions.get(feed).take(notification);
        backoff.reset();
        if (ended === true) positions.delete(feed);
        yield notification;
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

/** The changes of followed feeds, each with the copy after it. */
export async function* changes(connect, feeds, mirrors, options) {
  const since = {};
  for (const [feed, { since: position }] of mirrors) since[feed] = position;
  const notifications = follow(connect, feeds, { ...options, since });
  for await (const notification of notifications) {
    const { method, params } = notification;
    const mirror = mirrors.get(params.feed);
    if (method !== "watch") {
      const change = mirror?.apply(notification) ?? null;
      if (change !== null) yield change;
    } else if (mirror !== undefined) {
      mirror.restart(params);
      if (options.elements === false && !params.resumed) yield mirror.change();
    } else if (options.elements === false) {
      mirrors.set(params.feed, new Counts(params));
      yield mirrors.get(params.feed).change();
    } else {
      mirrors.set(params.feed, new Mirror(params));
    }
  }
}
