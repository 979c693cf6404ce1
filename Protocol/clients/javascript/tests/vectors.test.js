/** The vectors played against the daemon: answers, deltas of every watch, states, digests and errors, whole and byte by byte. */

import assert from "node:assert/strict";
import { connect as connectSocket } from "node:net";
import { test } from "node:test";

import { Connection, Counts, decode, JSONText, Mirror } from "../feedd.js";
import { frame, FrameReader, frameText } from "../lib/frames.js";
import { cases, Daemon, daemonFor, noDaemon, PATIENCE, vectors } from "./support.js";

const raw = (node) => new JSONText(node.text);
const params = (node) => Object.fromEntries(Array.from(node.members, ([name, value]) => [name, raw(value)]));
const read = (node) => decode(node.text);
const LISTS = ["deleted", "added", "updated", "sections", "moves"];
const listed = (result) => Object.fromEntries(LISTS.filter((name) => name in result).map((name) => [name, result[name]]));
const state = (sections) =>
  sections.items.map((section) => [section.get("name").value, section.get("elements").items.map(({ text }) => text)]);
const texts = (elements) => elements.map(({ text }) => text);

/** The value with only the members that are expected, at every level. */
function among(expected, value) {
  if (expected instanceof JSONText || value === null || typeof value !== "object") return value;
  if (Array.isArray(expected)) return expected.length === value.length ? expected.map((one, at) => among(one, value[at])) : value;
  return Object.fromEntries(
    Object.keys(expected ?? {}).filter((name) => name in value).map((name) => [name, among(expected[name], value[name])]),
  );
}

/**
 * Requests on one connection, watches on another, and a copy of each watched feed. What the daemon has is read over a third
 * connection, always whole.
 */
class Player {
  static async connect(t, daemon, cut) {
    const player = new Player();
    player.requests = await Connection.open(daemon.connector(cut));
    player.watches = await Connection.open(daemon.connector(cut));
    player.checks = await Connection.open(daemon.connector());
    player.copies = new Map();
    t.after(() => player.close());
    return player;
  }

  close() {
    this.requests.close();
    this.watches.close();
    this.checks.close();
  }

  call(method, given) {
    return this.requests.call(method, given);
  }

  async refused(step) {
    const error = step.get("error");
    const caught = await this.call(step.get("method").value, params(step.get("params"))).then(
      () => assert.fail("not refused"),
      (refusal) => refusal,
    );
    assert.equal(caught.code, error.get("code").value);
    const data = read(error.get("data"));
    assert.deepEqual(among(data, caught.data), data);
  }

  async watch(given) {
    const result = await this.watches.call("watch", given);
    this.copies.set(result.feed, given.elements?.text === "false" ? new Counts(result) : new Mirror(result));
    return result;
  }

  async follow(feeds) {
    for (const feed of feeds) await this.watch({ feed, spanning: true });
    await this.notifications();
  }

  /** The notifications that have come since, applied to the copies: those of a method by feed, without `feed`. */
  async notifications() {
    const { revision } = await this.watches.call("sync");
    const came = { delta: {}, selection: {}, snapshot: {}, revision };
    for (;;) {
      const notification = await this.watches.next(AbortSignal.abort()).catch(() => null);
      if (notification === null) return came;
      this.copies.get(notification.params.feed).apply(notification);
      const { feed, ...members } = notification.params;
      assert.ok(notification.method === "snapshot" || !(feed in came[notification.method]), "several for one step");
      came[notification.method][feed] = members;
    }
  }

  async snapshot(feed) {
    const { sections } = await this.checks.call("snapshot", { feed });
    return sections.map(({ name, elements }) => [name, texts(elements)]);
  }

  /** Plays a step with `change` and `deltas`, or `error`. */
  async step(step) {
    if (step.get("error")) {
      await this.refused(step);
      assert.deepEqual((await this.notifications()).delta, {});
      return;
    }
    const result = await this.call(step.get("method").value, params(step.get("params")));
    assert.deepEqual(listed(result), read(step.get("change")));
    await this.expectDeltas(step.get("deltas"), result.revision);
  }

  async expectDeltas(expected, revision) {
    const { delta } = await this.notifications();
    assert.deepEqual(Object.keys(delta).sort(), [...expected.members.keys()].sort());
    for (const [feed, node] of expected.members) {
      assert.deepEqual(listed(delta[feed]), read(node.get("change")), feed);
      assert.deepEqual(texts(delta[feed].elements), node.get("elements").items.map(({ text }) => text), feed);
      assert.equal(delta[feed].revision, revision);
    }
  }

  async expectAfter(after) {
    for (const [feed, sections] of after.members) assert.deepEqual(await this.snapshot(feed), state(sections), feed);
    await this.agree();
  }

  /** The copies are what the daemon has. */
  async agree() {
    for (const [feed, copy] of this.copies) {
      const { digest, counts } = await this.checks.call("verify", { feed });
      assert.deepEqual([copy.digest(), copy.counts()], [digest, counts], feed);
    }
  }

  /** Removes all feeds, those that show others first. */
  async clear() {
    await this.watches.call("sync");
    while ((await this.watches.next(AbortSignal.abort()).catch(() => null)) !== null);
    for (let left = [null]; left.length > 0;) {
      left = (await this.checks.call("feeds")).feeds.map(({ feed }) => feed);
      for (const feed of left) await this.checks.call("undefine", { feed }).catch(({ code }) => assert.equal(code, -32001));
    }
    await this.notifications();
    this.copies.clear();
  }
}

/** Plays each case of a file against one daemon, whole and byte by byte. */
function play(name, each) {
  for (const [how, cut] of [["whole", false], ["byte by byte", true]]) {
    test(`vectors of ${name}, ${how}`, { skip: noDaemon, timeout: PATIENCE }, async (t) => {
      const player = await Player.connect(t, await daemonFor(t), cut);
      for (const one of cases(name)) {
        try {
          await each(player, one);
          await player.clear();
        } catch (error) {
          error.message = `${one.get("name").value}: ${error.message}`;
          throw error;
        }
      }
    });
  }
}

for (const name of ["lists", "arrays", "providers", "views", "sections"]) {
  play(name, async (player, one) => {
    for (const definition of one.get("definitions").items) await player.call("define", params(definition));
    await player.follow(one.get("definitions").items.map((definition) => definition.get("feed").value));
    for (const step of one.get("steps").items) await player.step(step);
    await player.expectAfter(one.get("after"));
  });
}

play("bins", async (player, one) => {
  const feed = one.get("definition").get("feed").value;
  await player.call("define", params(one.get("definition")));
  await player.follow([feed, ...one.get("after").items.map((section) => section.get("name").value)]);
  for (const step of one.get("steps").items) {
    if (step.get("error")) {
      await player.step(step);
      continue;
    }
    const from = player.copies.get(feed).revision;
    const result = await player.call(step.get("method").value, params(step.get("params")));
    const change = read(step.get("change"));
    assert.deepEqual(listed(result), change);
    const { delta } = await player.notifications();
    if (Object.values(change).every(({ length }) => length === 0)) {
      assert.deepEqual(delta, {});
      continue;
    }
    assert.deepEqual(listed(delta[feed]), change);
    assert.deepEqual(texts(delta[feed].elements), step.get("elements").items.map(({ text }) => text));
    assert.deepEqual([delta[feed].from, delta[feed].revision], [from, result.revision]);
  }
  assert.deepEqual(await player.snapshot(feed), state(one.get("after")));
  assert.equal((await player.call("verify", { feed })).digest, one.get("digest").value);
  await player.agree();
});

play("sorting", async (player, one) => {
  const bins = [{ name: "all", sort: raw(one.get("sort")) }];
  const ids = one.get("ids").items.map(({ text }) => text);
  for (
    const each of [one.get("elements").items.map((element) => ({ element: raw(element) })), [{
      elements: raw(one.get("elements")),
    }]]
  ) {
    await player.call("define", { feed: "sorted", kind: "collection", bins });
    for (const given of each) await player.call("update", { feed: "sorted", ...given });
    const { nodes } = await player.call("query", { feed: "sorted", path: "$[*].id" });
    assert.deepEqual(texts(nodes), ids);
    await player.call("undefine", { feed: "sorted" });
  }
});

play("identities", async (player, one) => {
  await player.call("define", { feed: "ids", kind: "collection" });
  const elements = one.get("elements").value.map((text) => new JSONText(text));
  const groups = one.get("groups").value;
  const first = new Set(groups.map(([place]) => place));
  for (const [place, element] of elements.entries()) {
    const answer = player.call("update", { feed: "ids", element });
    if (one.get("refused").value.includes(place)) await assert.rejects(answer, { code: -32003 });
    else assert.equal((await answer).added.length > 0, first.has(place), element.text);
  }
  assert.deepEqual((await player.snapshot("ids"))[0][1], groups.map((group) => elements[group.at(-1)].text));
});

play("transactions", async (player, one) => {
  for (const definition of one.get("definitions").items) await player.call("define", params(definition));
  for (const step of one.get("setup").items) await player.call(step.get("method").value, params(step.get("params")));
  await player.follow(one.get("definitions").items.map((definition) => definition.get("feed").value));
  const ops = one.get("ops").items.map((op) => ({ method: op.get("method").value, params: params(op.get("params")) }));
  const answer = player.call("transaction", { ops });
  if (one.get("error")) {
    const data = read(one.get("error").get("data"));
    const error = await answer.catch((refusal) => refusal);
    assert.deepEqual([error.code, among(data, error.data)], [one.get("error").get("code").value, data]);
    assert.deepEqual((await player.notifications()).delta, {});
  } else {
    const { results, revision } = await answer;
    assert.deepEqual(results.map(listed), read(one.get("results")));
    await player.expectDeltas(one.get("deltas"), revision);
  }
  await player.expectAfter(one.get("after"));
});

play("slots", async (player, one) => {
  const counts = Object.entries(one.get("counts").value);
  for (const [type, count] of counts) {
    await player.call("define", { feed: type, kind: "array" });
    await player.call("insert", { feed: type, elements: Array.from({ length: count }, (_, index) => [type, index]) });
  }
  const contents = Object.fromEntries(counts.map(([type]) => [type, type]));
  await player.call("define", { feed: "mixed", kind: "slots", contents, ...params(one.get("definition")) });
  await player.follow(["mixed"]);
  const rows = Array.from(player.copies.get("mixed").sections[0].rows);
  assert.deepEqual(rows.map(({ value }) => value), one.get("rows").value);
  assert.deepEqual(rows.map(({ type }) => type), one.get("rows").value.map(([type]) => type));
});

play("patch", async (player, one) => {
  const [target, patch, result] = ["target", "patch", "result"].map((name) => one.get(name));
  // The identity of an element is a member of it, so only patches of objects by objects can be played.
  if (!target.members || !patch.members || target.get("id") || patch.get("id")) return;
  const identified = (node) => (node.members.size === 0 ? '{"id":0}' : `{"id":0,${node.text.slice(1)}`);
  await player.call("define", { feed: "patched", kind: "collection" });
  await player.call("update", { feed: "patched", element: new JSONText(identified(target)) });
  await player.call("patch", { feed: "patched", id: 0, patch: raw(patch) });
  assert.deepEqual(await player.snapshot("patched"), [["patched/all", [identified(result)]]]);
});

for (const kind of ["collection", "array"]) {
  test(`vectors of expiry, in a feed of kind ${kind}`, { skip: noDaemon, timeout: PATIENCE }, async (t) => {
    const player = await Player.connect(t, await daemonFor(t), false);
    const all = cases("expiry");
    const isPast = (one) => one.get("expires").text !== "null" && Number(one.get("expires").value) < Date.now() / 1000;
    const kept = all.filter((one) => !isPast(one)).map((one) => one.get("name").value);
    await player.call("define", { feed: "f", kind, id: "$.name", retain: { until: "$.time" } });
    const result = await player.watch({ feed: "f" });
    await player.call("update", { feed: "f", elements: all.map(raw) });
    const mirror = player.copies.get("f");
    do mirror.apply(await player.watches.next()); while (
      mirror.revision <= result.revision || mirror.counts()[0] !== kept.length
    );
    assert.deepEqual(new Set(mirror.values()[0].map(({ name }) => name)), new Set(kept));
  });
}

for (const [how, cut] of [["whole", false], ["byte by byte", true]]) {
  for (const name of ["counts", "exchanges"]) {
    test(`vectors of ${name}, ${how}`, { skip: noDaemon, timeout: PATIENCE }, async (t) => {
      for (const one of cases(name)) {
        await t.test(one.get("name").value, async (t) => {
          const daemon = await new Daemon(null, "--durability", "memory").start();
          t.after(() => daemon.stop());
          const player = await Player.connect(t, daemon, cut);
          for (const step of one.get("setup").items) await player.call(step.get("method").value, params(step.get("params")));
          for (const step of one.get("steps").items) await exchange(player, step);
        });
      }
    });
  }

  test(`vectors of errors, ${how}`, { skip: noDaemon, timeout: PATIENCE }, async (t) => {
    const daemon = await daemonFor(t);
    const player = await Player.connect(t, daemon, cut);
    const file = vectors("errors");
    for (const step of file.get("setup").items) await player.call(step.get("method").value, params(step.get("params")));
    const everything = async () => {
      const { feeds } = await player.checks.call("feeds");
      const digests = await Promise.all(feeds.map(({ feed }) => player.checks.call("verify", { feed })));
      return [feeds, digests, (await player.checks.call("sync")).revision];
    };
    const before = await everything();
    for (const one of file.get("cases").items) {
      const { members, text } = one.get("request");
      const method = members.get("method")?.value;
      // What no client sends goes over a plain socket.
      const isPart = members.has("params") && !members.has("jsonrpc") && !members.has("id");
      const isPlain = isPart && typeof method === "string" && members.get("params").members !== null;
      const error = isPlain
        ? await player.call(method, raw(members.get("params"))).catch((refusal) => refusal)
        : (await exchanged(daemon, isPart ? `{"jsonrpc":"2.0","id":1,${text.slice(1)}` : text, cut)).error;
      const expected = read(one.get("error"));
      assert.equal(error.code, expected.code, one.get("name").value);
      assert.deepEqual(among(expected.data, error.data), expected.data, one.get("name").value);
      assert.ok(error.message && (!isPlain || error.name !== "Refused"));
      assert.deepEqual(await everything(), before, one.get("name").value);
    }
  });

  test(`vectors of framing, ${how}`, { skip: noDaemon, timeout: PATIENCE }, async (t) => {
    const daemon = await daemonFor(t);
    for (const one of cases("framing")) await framing(daemon, one, cut);
  });
}

async function exchange(player, step) {
  if (step.get("error")) {
    await player.refused(step);
  } else {
    const method = step.get("method").value;
    const given = params(step.get("params"));
    const expected = read(step.get("result"));
    const result = await (method === "watch" ? player.watch(given) : player.call(method, given));
    assert.deepEqual(among(expected, result), expected);
  }
  const { delta, selection } = await player.notifications();
  assert.deepEqual(delta, step.get("deltas") ? read(step.get("deltas")) : {});
  assert.deepEqual(selection, step.get("selections") ? read(step.get("selections")) : {});
}

/** A plain socket, and the messages that come over it. */
function plain(daemon, cut) {
  const socket = connectSocket({ path: daemon.path, allowHalfOpen: true });
  socket.on("error", () => {});
  async function* messages() {
    const reader = new FrameReader(1 << 28);
    for await (const chunk of socket) {
      for (let at = 0; at < chunk.length; at += cut ? 1 : chunk.length) {
        reader.push(chunk.subarray(at, cut ? at + 1 : chunk.length));
        for (let bytes = reader.next(); bytes !== null; bytes = reader.next()) yield decode(frameText(bytes));
      }
    }
    assert.ok(!reader.isInside);
  }
  return [socket, messages()];
}

/** The answer to a request that is sent as it stands. */
async function exchanged(daemon, text, cut) {
  const [socket, messages] = plain(daemon, cut);
  socket.write(frame(text));
  const { value } = await messages.next();
  socket.destroy();
  return value;
}

/** Sends the bytes of a case, and reads the answers as the client does. */
async function framing(daemon, one, cut) {
  const [socket, messages] = plain(daemon, cut);
  const name = one.get("name").value;
  const expect = async (expected) => assert.deepEqual(among(expected, (await messages.next()).value), expected, name);
  for (const piece of one.get("send").value) socket.write(Buffer.from(piece, "hex"));
  if (one.get("end")) socket.end();
  for (const message of one.get("expect").items) await expect(read(message));
  if (one.get("closed").value) {
    assert.ok((await messages.next().catch(() => ({ done: true }))).done, name);
  } else {
    socket.write(frame('{"jsonrpc":"2.0","id":"last","method":"ping"}'));
    await expect({ id: "last", result: {} });
  }
  socket.destroy();
}
