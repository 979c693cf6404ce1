/** Watches of a real daemon: changes, resumption, reconnection, back-pressure, cancellation. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, JSONText, Mirror, NumberText } from "../feedd.js";
import { Daemon, daemonFor, greeting, noDaemon, PATIENCE, scripted } from "./support.js";

const skip = { skip: noDaemon, timeout: PATIENCE };

/** A daemon with a collection "inbox", a client, and the number of connections that were opened. */
async function inbox(t, options) {
  const daemon = await daemonFor(t);
  const client = await daemon.client(options).ready();
  t.after(() => client.close());
  await client.call("define", {
    feed: "inbox",
    kind: "collection",
    exclusive: true,
    bins: [{ name: "urgent", filter: "@.p >= 5" }, { name: "rest" }],
  });
  return { daemon, client };
}

async function next(watch) {
  const { value, done } = await watch.next();
  assert.ok(!done);
  return value;
}

/** Takes changes until the copy has this revision. */
async function reach(watch, revision) {
  const found = [];
  do found.push(await next(watch)); while (found.at(-1).revision < revision);
  assert.equal(found.at(-1).revision, revision);
  return found;
}

async function verified(client, mirror) {
  const { digest, revision } = await client.call("verify", { feed: mirror.feed });
  assert.deepEqual([mirror.digest(), mirror.revision], [digest, revision]);
}

test("changes by position, with the rows and the copy after them", skip, async (t) => {
  const { client } = await inbox(t);
  await client.push("inbox", { id: 1, p: 9 }, { id: 2, p: 1 }, { id: 3, p: 1 });
  const watch = client.watch("inbox");
  t.after(() => watch.close());
  const first = await next(watch);
  assert.deepEqual([first.kind, first.mirror.counts()], ["snapshot", [1, 2]]);
  const row = first.mirror.at(1, 0);
  const { revision } = await client.call("update", { feed: "inbox", element: { id: 2, p: 7 }, animation: "fade" });
  const [change] = await reach(watch, revision);
  assert.deepEqual(change.deleted, [[1, 0]]);
  assert.deepEqual(change.added, [[0, 1]]);
  assert.deepEqual([change.moves, change.animation, change.rows, change.removed], [[[0, 0]], "fade", [row], []]);
  assert.equal(change.mirror.at(0, 1), row);
  await verified(client, watch.mirror);
  const last = await client.call("delete", { feed: "inbox", ids: [2] });
  assert.deepEqual((await reach(watch, last.revision))[0].removed, [row]);
});

test("elements keep their text, and numbers are exact on request", skip, async (t) => {
  const { daemon, client } = await inbox(t, { numbers: "text" });
  const text = '{"id":12345678901234567890.50,"p":1e400,"s":"\\u00e9\\/"}';
  await client.push("inbox", new JSONText(text));
  const watch = client.watch("inbox");
  t.after(() => watch.close());
  const row = (await next(watch)).mirror.at(0, 0);
  assert.equal(row.text, text);
  assert.equal(String(row.value.id), "12345678901234567890.50");
  await client.push("inbox", row.value);
  assert.equal((await client.call("get", { feed: "inbox", id: row.value.id })).element.text, text.replace("\\u00e9\\/", "é/"));
  const integers = await daemon.client({ numbers: "bigint" }).ready();
  t.after(() => integers.close());
  await integers.push("inbox", { id: 2n ** 70n });
  assert.equal((await integers.call("get", { feed: "inbox", id: 2n ** 70n })).element.value.id, 2n ** 70n);
  await assert.rejects(
    integers.call("get", { feed: "inbox", id: 2n ** 71n }).then(({ found }) => found || Promise.reject(new Error("absent"))),
    /absent/,
  );
});

test("several feeds over one connection, each with its own copy", skip, async (t) => {
  const { client } = await inbox(t);
  await client.call("define", { feed: "list", kind: "array" });
  const before = (await client.call("clients")).clients.length;
  const watch = client.watch(["inbox", "list"]);
  t.after(() => watch.close());
  assert.deepEqual([(await next(watch)).feed, (await next(watch)).feed].sort(), ["inbox", "list"]);
  assert.equal((await client.call("clients")).clients.length, before + 1);
  await client.call("insert", { feed: "list", elements: ["x"] });
  assert.deepEqual((await next(watch)).mirror.values(), [["x"]]);
  await client.push("inbox", { id: 1 });
  assert.equal((await next(watch)).mirror, watch.mirrors.get("inbox"));
  await client.call("undefine", { feed: "list" });
  assert.deepEqual([(await next(watch)).ended, watch.mirrors.get("list").sections], [true, []]);
  await client.call("undefine", { feed: "inbox" });
  assert.equal((await next(watch)).ended, true);
  assert.ok((await watch.next()).done);
});

test("a slow reader is told of the end of the feed", skip, async (t) => {
  const { client } = await inbox(t);
  for (const options of [{}, { elements: false }]) {
    await client.call("define", { feed: "a", kind: "collection" });
    const watch = client.watch("a", options);
    t.after(() => watch.close());
    await next(watch);
    // Not taken from the connection while nobody asks for it: the changes behind it wait in the daemon.
    await client.call("update", { feed: "a", element: { id: 0, text: "x".repeat(6 << 20) } });
    const elements = Array.from({ length: 3000 }, (_, index) => ({ id: index + 1 }));
    await client.call("update", { feed: "a", elements });
    await client.call("undefine", { feed: "a" });
    const kinds = [];
    let last = null;
    for await (const change of watch) kinds.push((last = change).kind);
    assert.deepEqual([last.ended, last.mirror.counts.length ?? 0], [true, 0]);
    if (options.elements !== false) assert.deepEqual(kinds, ["delta", "snapshot"]);
  }
});

test("leaving the loop closes the connection; closing and aborting end it", skip, async (t) => {
  const { client } = await inbox(t);
  const watchers = async () => (await client.call("describe", { feed: "inbox" })).watchers;
  for await (const change of client.watch("inbox")) {
    assert.equal(await watchers(), 1);
    assert.equal(change.kind, "snapshot");
    break;
  }
  while ((await watchers()) > 0);
  const closed = client.watch("inbox");
  await next(closed);
  const waiting = closed.next();
  closed.close();
  assert.ok((await waiting).done && (await closed.next()).done);
  const controller = new AbortController();
  const aborted = client.watch("inbox", { signal: controller.signal });
  await next(aborted);
  const pending = aborted.next();
  controller.abort(new Error("enough"));
  await assert.rejects(pending, /enough/);
  await assert.rejects(client.watch("inbox", { signal: controller.signal }).next(), /enough/);
  while ((await watchers()) > 0);
  const orphan = client.watch("inbox");
  await next(orphan);
  const left = orphan.next();
  client.close();
  await assert.rejects(left, { code: "CLOSED" });
});

test("a watch that is ended between two changes closes its connection", skip, async (t) => {
  const { client } = await inbox(t);
  const connections = async () => (await client.call("stats")).connectionsOpen;
  const closed = async () => {
    while (await connections() > 1) await client.call("sync");
  };
  const watch = client.watch("inbox");
  await next(watch);
  assert.equal(await connections(), 2);
  watch.close();
  await closed();
  const stop = new AbortController();
  const aborted = client.follow("inbox", { signal: stop.signal });
  await next(aborted);
  assert.equal(await connections(), 2);
  stop.abort();
  await closed();
});

test("refusals of a watch", skip, async (t) => {
  const { client } = await inbox(t);
  await assert.rejects(client.watch("nothing").next(), { name: "UnknownFeed", code: -32000 });
  await assert.rejects(client.watch("inbox", { throttle: -1 }).next(), { code: -32602 });
  await assert.rejects(client.call("watch", { feed: "inbox" }), TypeError);
});

test("selections, counts and notifications as they are", skip, async (t) => {
  const { client } = await inbox(t);
  await client.push("inbox", { id: 1, p: 9 });
  const watch = client.watch("inbox");
  const counts = client.watch("inbox", { elements: false });
  const follow = client.follow("inbox", { initial: false });
  t.after(() => [watch, counts, follow].forEach((one) => one.close()));
  await next(watch);
  assert.deepEqual([(await next(counts)).names, counts.mirror.counts], [["inbox/urgent", "inbox/rest"], [1, 0]]);
  assert.equal((await next(follow)).method, "watch");
  await client.call("select", { feed: "inbox", at: [0, 0] });
  assert.deepEqual([await next(watch)].map(({ kind, selected }) => [kind, selected]), [["selection", [[0, 0]]]]);
  assert.equal((await next(follow)).method, "selection");
  const { revision } = await client.push("inbox", { id: 2, p: 1 });
  assert.deepEqual((await reach(counts, revision)).at(-1).counts, [1, 1]);
  const { text, params } = await next(follow);
  assert.deepEqual([JSON.parse(text).params.revision, params.elements[0].text], [revision, '{"id":2,"p":1}']);
});

test("feeds may be named like members of every object", skip, async (t) => {
  const { client } = await inbox(t);
  for (const feed of ["constructor", "toString", "__proto__"]) {
    await client.call("define", { feed, kind: "array" });
    await client.call("insert", { feed, at: 0, element: feed });
    const watch = client.watch(feed);
    const counts = client.watch(feed, { elements: false });
    const follow = client.follow([feed, "inbox"]);
    t.after(() => [watch, counts, follow].forEach((one) => one.close()));
    assert.deepEqual([(await next(watch)).mirror.values(), (await next(counts)).counts], [[[feed]], [1]]);
    assert.deepEqual([(await next(follow)).params.feed, (await next(follow)).params.feed], [feed, "inbox"]);
    const resumed = client.watch(feed, { mirror: Mirror.load(watch.mirror.save()) });
    t.after(() => resumed.close());
    const { revision } = await client.call("insert", { feed, at: 1, element: 1 });
    assert.deepEqual((await reach(resumed, revision)).map(({ kind, from }) => [kind, from]), [["delta", revision - 1]]);
  }
});

test("a copy is continued from where it was", skip, async (t) => {
  const { client } = await inbox(t);
  await client.pushAll("inbox", Array.from({ length: 50 }, (_, id) => ({ id, p: id % 9 })));
  const first = client.watch("inbox");
  await next(first);
  const { mirror } = first;
  first.close();
  const { revision } = await client.call("delete", { feed: "inbox", ids: [3, 4] });
  const loaded = client.watch("inbox", { mirror: Mirror.load(mirror.save()) });
  t.after(() => loaded.close());
  assert.deepEqual((await reach(loaded, revision)).map(({ kind }) => kind), ["delta"]);
  await verified(client, loaded.mirror);
  assert.throws(() => client.watch("inbox", { since: mirror.since }), TypeError);
  const second = client.watch("inbox", { mirror });
  t.after(() => second.close());
  const [change] = await reach(second, revision);
  assert.deepEqual([change.kind, change.removed.map(({ value }) => value.id), second.mirror], ["delta", [4, 3].sort(), mirror]);
  await verified(client, mirror);
  const third = client.follow("inbox", { since: { inbox: { epoch: "another", revision: 1 } } });
  t.after(() => third.close());
  assert.equal((await next(third)).params.resumed, false);
  assert.equal((await next(third)).method, "snapshot");
});

test("a watch goes on after the daemon was killed, and misses nothing", skip, async (t) => {
  const daemon = await new Daemon().start();
  t.after(() => daemon.stop());
  const client = await daemon.client().ready();
  t.after(() => client.close());
  await client.call("define", { feed: "list", kind: "array" });
  await client.call("insert", { feed: "list", elements: [1, 2, 3] });
  const retries = [];
  const watch = client.watch("list", { onRetry: (error, delay) => retries.push([error.code, delay]) });
  const counts = client.watch("list", { elements: false });
  t.after(() => [watch, counts].forEach((one) => one.close()));
  const { mirror } = await next(watch);
  await next(counts);
  const [row] = mirror.sections[0].rows;
  const waiting = [watch.next(), counts.next()];
  await daemon.end("SIGKILL");
  while (retries.length < 3) await new Promise((resolve) => setTimeout(resolve, 10));
  const sent = client.call("insert", { feed: "list", elements: [0], at: [0] });
  await daemon.start();
  const { revision } = await sent;
  const { value: change } = await waiting[0];
  assert.deepEqual([change.kind, change.revision, mirror.values()], ["delta", revision, [[0, 1, 2, 3]]]);
  assert.deepEqual([(await waiting[1]).value.counts, counts.mirror.revision], [[4], revision]);
  assert.equal(mirror.at(0, 1), row);
  assert.deepEqual(retries.slice(0, 3).map(([code]) => code), ["CLOSED", "UNREACHABLE", "UNREACHABLE"]);
  assert.ok(retries[2][1] > retries[0][1]);
  await verified(client, mirror);
});

test("without reconnection, the end of the daemon ends a watch", skip, async (t) => {
  const { daemon, client } = await inbox(t, { reconnect: false });
  const watch = client.watch("inbox");
  await next(watch);
  const ended = assert.rejects(watch.next(), { code: "CLOSED", data: { reason: "shutdown" } });
  await daemon.end();
  await ended;
  await assert.rejects(client.call("ping"), (error) => ["CLOSED", "UNREACHABLE"].includes(error.code));
});

test("a slow consumer stops reading, and then gets one change for many", skip, async (t) => {
  const { client } = await inbox(t);
  await client.push("inbox", { id: 0 });
  const watch = client.watch("inbox");
  t.after(() => watch.close());
  await next(watch);
  // About 40 MB for a watcher that does not ask: far more than the client, the kernel and the daemon queue.
  const text = "x".repeat(20_000);
  for (let round = 0; round < 200; round += 1) {
    await client.pushAll("inbox", Array.from({ length: 10 }, (_, id) => ({ id, round, text })));
  }
  const { revision } = await client.call("sync");
  const stats = (await client.call("clients")).clients.find(({ watches }) => watches > 0);
  const changes = await reach(watch, revision);
  assert.ok(changes.length < 1000, `${changes.length} changes for 2000 commits; ${JSON.stringify(stats)}`);
  await verified(client, watch.mirror);
});

test("a consumer may send requests from its loop, however much it is told", skip, async (t) => {
  const { client } = await inbox(t);
  let count = 0;
  for await (const { mirror } of client.watch("inbox")) {
    if (count === 30) break;
    await client.pushAll("inbox", Array.from({ length: 20 }, () => ({ id: count += 1, text: "y".repeat(9000) })));
    if (count > 500) {
      assert.ok(mirror.revision > 0);
      break;
    }
  }
});

test("pushes in a pipeline stop at the first refusal, or tell of each", skip, async (t) => {
  const { client } = await inbox(t);
  const elements = [{ id: 1 }, { no: "id" }, { id: 2 }, {}, { id: 3 }];
  await assert.rejects(client.pushAll("inbox", elements), { name: "NoIdentity", code: -32003 });
  const refused = [];
  assert.equal(
    await client.pushAll("inbox", elements, { onRefused: (error, element) => refused.push([error.code, element]) }),
    3,
  );
  assert.deepEqual(refused, [[-32003, elements[1]], [-32003, {}]]);
  const onRefused = () => {
    throw new Error("of the program");
  };
  await assert.rejects(client.pushAll("inbox", elements, { onRefused }), { message: "of the program" });
  for (const name of ["batch", "window"]) {
    for (const value of [0, NaN]) {
      await assert.rejects(client.pushAll("inbox", elements, { [name]: value }), {
        name: "TypeError",
        message: `${name} must be at least 1`,
      });
    }
  }
  async function* many() {
    for (let id = 0; id < 3000; id += 1) yield { id };
  }
  assert.equal(await client.pushAll("inbox", many(), { window: 7 }), 3000);
  const { revision } = await client.call("sync");
  const again = Array.from({ length: 1000 }, (_, id) => ({ id, again: true }));
  assert.equal(await client.pushAll("inbox", again, { batch: 300 }), 1000);
  assert.equal((await client.call("sync")).revision, revision + 4);
  const parts = [];
  const mixed = [{ id: 1 }, { id: 2 }, {}, { id: 3 }, { id: 4 }];
  assert.equal(await client.pushAll("inbox", mixed, { batch: 2, onRefused: (error, part) => parts.push([error.code, part]) }), 3);
  assert.deepEqual(parts, [[-32003, [{}, { id: 3 }]]]);
  await assert.rejects(client.pushAll("inbox", mixed, { batch: 2 }), {
    code: -32003,
    data: { index: 0, feed: "inbox", path: "$.id" },
  });
  assert.deepEqual(await client.call("describe", { feed: "inbox" }).then(({ count }) => count), 3000);
});

// Daemons that lie

const HEAD = { feed: "f", epoch: "e", revision: 7, resumed: false, sections: [{ name: "f", count: 1 }] };
const PART = { feed: "f", revision: 7, at: [0, 0], elements: [1], last: true };

/** A client of a daemon that answers `watch` with these messages. */
function lying(...messages) {
  const connect = scripted(({ id, method }, peer) => {
    if (method !== "watch") return;
    for (const message of messages) {
      if (message === "end") peer.end();
      else peer.send("method" in message || "jsonrpc" in message ? message : { jsonrpc: "2.0", id, result: message });
    }
  });
  return [new Client(connect, { timeout: 100, reconnect: { first: 1, longest: 2 } }), connect];
}

test("a request above maxFrame is refused and not sent, and those around it are answered", async () => {
  const sent = [];
  const connect = scripted(({ id, method, params }, peer) => {
    if (method === "hello") return peer.send(greeting(id, { limits: { maxFrame: 1000 } }));
    sent.push(params.element.id);
    peer.send({ jsonrpc: "2.0", id, result: {} });
  }, { hello: false });
  const client = new Client(connect);
  await client.ready();
  const refused = [];
  const elements = [{ id: 1 }, { id: 2, text: "\u00e9".repeat(500) }, { id: 3 }];
  const accepted = await client.pushAll("f", elements, { onRefused: ({ code }, { id }) => refused.push([id, code]) });
  assert.deepEqual([accepted, refused, sent, connect.peers.length], [2, [[2, -32600]], [1, 3], 1]);
  client.close();
});

test("lies of a daemon end a watch with an error", async () => {
  for (
    const [messages, code] of [
      [[null], "PROTOCOL"],
      [[7], "PROTOCOL"],
      [[{}], "PROTOCOL"],
      [[{ ...HEAD, feed: "g" }], "PROTOCOL"],
      [[{ ...HEAD, epoch: 1 }], "PROTOCOL"],
      [[{ ...HEAD, revision: -1 }], "GAP"],
      [[{ ...HEAD, resumed: true }], "GAP"],
      [[{ ...HEAD, sections: [{ name: "f", count: 1e15 }] }, { method: "snapshot", params: PART }], "GAP"],
      [[HEAD, { method: "snapshot", params: { ...PART, elements: [1, 2] } }], "GAP"],
      [[HEAD, { method: "delta", params: { from: 7, revision: 8 } }], "PROTOCOL"],
      [[HEAD, { method: "delta", params: { feed: "f", from: 7, revision: 8 } }], "GAP"],
      [[HEAD, { method: "snapshot", params: { ...PART, revision: 9 } }], "GAP"],
      [[], "TIMEOUT"],
    ]
  ) {
    const [client, connect] = lying(
      ...messages.map((
        message,
      ) => (typeof message === "number" || message === null ? { jsonrpc: "2.0", id: 2, result: message } : message)),
    );
    await assert.rejects(client.watch("f").next(), { code }, JSON.stringify(messages));
    assert.equal(connect.peers.length, 1);
    assert.ok(connect.peers[0].isClosed);
    client.close();
  }
});

test("a daemon that closes again and again is asked less often, until the watch is closed", async () => {
  const [client, connect] = lying(HEAD, "end");
  const delays = [];
  const watch = client.watch("f", { onRetry: (_, delay) => delays.push(delay) && delays.length === 5 && watch.close() });
  assert.ok((await watch.next()).done);
  assert.equal(connect.peers.length, 5);
  assert.ok(delays[4] > delays[0]);
  client.close();
});

test("calls of next that do not wait for each other get the changes in order", async () => {
  const connect = scripted(({ id, method }, peer) => {
    if (method === "watch") for (const message of [{ jsonrpc: "2.0", id, result: HEAD }, part]) peer.send(message);
  });
  const part = { method: "snapshot", params: PART };
  const delta = (from) => ({
    method: "delta",
    params: { feed: "f", from, revision: from + 1, deleted: [], added: [], updated: [], elements: [] },
  });
  const client = new Client(connect);
  const watch = client.watch("f");
  await watch.next();
  const changes = [1, 2, 3, 4].map(() => watch.next());
  for (const from of [7, 8, 9]) connect.peers[0].send(delta(from));
  assert.deepEqual((await Promise.all(changes.slice(0, 3))).map(({ value }) => value.revision), [8, 9, 10]);
  connect.peers[0].send(delta(10));
  assert.equal((await changes[3]).value.revision, 11);
  client.close();
});

test("a member of a group that is behind the copy is asked again", async () => {
  const connect = scripted(({ id, method }, peer) => {
    if (method !== "watch") return;
    const error = { code: -32008, message: "behind", data: {} };
    if (connect.peers.length === 2) return peer.send({ jsonrpc: "2.0", id, error });
    peer.send({ jsonrpc: "2.0", id, result: HEAD });
    peer.send({ method: "snapshot", params: PART });
    if (connect.peers.length === 1) peer.end();
  });
  const client = new Client(connect, { reconnect: { first: 1, longest: 2 } });
  const errors = [];
  const watch = client.watch("f", { onRetry: ({ code }) => errors.push(code) });
  assert.equal((await watch.next()).value.kind, "snapshot");
  assert.equal((await watch.next()).value.kind, "snapshot");
  assert.deepEqual(errors, ["CLOSED", -32008]);
  client.close();
});

test("messages of other feeds and unknown notifications are dropped", async () => {
  const [client] = lying(HEAD, { method: "delta", params: { feed: "g", from: 1 } }, { method: "news", params: {} }, {
    method: "snapshot",
    params: PART,
  });
  const watch = client.watch("f");
  assert.deepEqual((await watch.next()).value.mirror.values(), [[1]]);
  assert.ok(watch.mirror instanceof Mirror);
  client.close();
  assert.equal(greeting(1).id, 1);
});

test("watches name the rows that left, as their elements do", skip, async (t) => {
  for (const [numbers, exact] of Object.entries({ number: (n) => Number(n), bigint: BigInt, text: (n) => new NumberText(n) })) {
    const { client } = await inbox(t, { numbers });
    const long = "12345678901234567890";
    await client.push("inbox", { id: 1, p: 9 }, { id: "two", p: 1 }, new JSONText(`{"id":${long},"p":1}`));
    const watch = client.watch("inbox", { ids: true });
    const follow = client.follow("inbox", { ids: true, initial: false });
    t.after(() => [watch, follow].forEach((one) => one.close()));
    await next(watch);
    await next(follow);
    const { nodes } = await client.call("query", { feed: "inbox", path: "$[1:].id" });
    await client.call("delete", { feed: "inbox", ids: ["two", new JSONText(long)] });
    const ids = (await next(watch)).deletedIDs;
    assert.deepEqual(ids, ["two", exact(long)]);
    assert.deepEqual(ids, nodes.map((node) => node.value));
    assert.deepEqual((await next(follow)).params.deletedIDs, ids);
  }
});
