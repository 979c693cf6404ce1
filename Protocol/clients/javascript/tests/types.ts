/** Compiled with tsc --strict where it is installed: what must have a type, and what must not compile. */
import { Client, connect, Connection, decode, encode, FeedError, JSONText, Mirror, streamTransport, unixSocket } from "../node.js";
import type { Change, Counts, Delta, Transport, Watch, WatchResult } from "../node.js";

interface Notice {
  id: number;
  text: string;
}

async function main(signal: AbortSignal): Promise<void> {
  const client: Client = await connect({ client: "types", numbers: "bigint", signal });
  const { revision, added } = await client.push("inbox", { id: 1, text: "Door" }, new JSONText('{"id":2.0}'));
  const path: [number, number] | undefined = added[0];
  const { digest } = await client.call("verify", { feed: "inbox" });
  const { nodes } = await client.call("query", { feed: "inbox", path: "$[*]" }, { timeout: 100, signal });
  const texts: string[] = nodes.map((node) => node.text);
  const { element, revision: read } = await client.call("get", { feed: "inbox", at: [0, 0] });
  console.log(element.text, read + 1);
  await client.call("update", { feed: "inbox", element: { id: 1n }, if: { feed: "inbox", revision } });
  await client.call("define", { feed: "inbox", kind: "collection", bins: [{ name: "all" }], replace: true });
  await client.call("patch", { feed: "inbox", id: 1, patch: { owner: "me" }, where: "!@.owner" });
  const { counts } = await client.call("update", { feed: "inbox", elements: [{ id: 3 }], result: "counts" });
  const added3: number = counts.added;
  // @ts-expect-error: the answer has no lists.
  console.log(added3, (await client.call("update", { feed: "inbox", elements: [], result: "counts" })).deleted);
  const { results } = await client.call("transaction", { ops: [{ method: "undefine", params: {} }], result: "counts" });
  const first: number | undefined = results[0]?.counts.deleted;
  console.log(first);
  const later: unknown = await client.call("later", { anything: 1 });
  // @ts-expect-error: `feed` is missing.
  await client.call("verify", {});
  // @ts-expect-error: no such parameter.
  await client.call("get", { feed: "inbox", place: [0, 0] });
  // @ts-expect-error: no such kind.
  await client.call("define", { feed: "inbox", kind: "list" });
  // @ts-expect-error: the feed is an argument of its own.
  await client.pushAll("inbox", [{ id: 1 }], { feed: "queue" });
  await client.pushAll("inbox", [{ id: 1 }], { where: "!@.owner", window: 8, onRefused: (error, element) => console.log(error.code, element.id) });

  await client.pushAll("inbox", [{ id: 1 }], { absent: true, batch: 64, onRefused: (_, elements) => console.log(elements[0]?.id) });

  for await (const change of client.watch<Notice>("inbox", { signal, throttle: 50 })) {
    if (change.kind === "delta") {
      const delta: Delta<Notice> = change;
      const moves: [number, number][] = delta.moves;
      console.log(delta.rows[0]?.value.text, moves, delta.removed, delta.animation?.length, delta.deletedIDs?.[0] === 7n);
    } else if (change.kind === "selection") {
      console.log(change.selected);
    }
    const mirror: Mirror<Notice> = change.mirror;
    console.log(mirror.at(0, 0)?.key, mirror.values()[0]?.[0]?.text, mirror.digest() === digest);
    // @ts-expect-error: no such kind of change.
    if (change.kind === "counts") break;
  }
  const watch: Watch<Change<Notice>, Mirror<Notice>> = client.watch<Notice>(["inbox", "queue"]);
  watch.close();
  for await (const { counts, mirror } of client.watch("inbox", { elements: false })) {
    const copy: Counts = mirror;
    console.log(counts[0], copy.names);
  }
  for await (const { method, text } of client.follow("inbox", { ids: true, since: { inbox: { epoch: "e", revision: 1 } } })) {
    console.log(method, text);
  }

  try {
    await client.call("ping");
  } catch (error) {
    if (error instanceof FeedError && error.code === -32000) console.log(error.data.feed, error.name === "UnknownFeed");
    // @ts-expect-error: no such code.
    if (error instanceof FeedError && error.code === "ENOENT") console.log(error);
  }
  const connection = await Connection.open(unixSocket());
  const { resumed, sections }: WatchResult = await connection.call("watch", { feed: "inbox", ids: true });
  console.log(resumed, sections[0]?.count);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const transport: Transport = streamTransport({ readable, writable });
  const other = new Client(() => transport, { reconnect: { first: 10 } });
  console.log(encode({ a: [1, 2n, null] }), decode("{}"), path, texts, later, other.hello?.epoch, unixSocket());
}

export default main;
