/** Requests and answers, and daemons that lie, close, send half a frame, a huge length or another version. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Client, Connection, FeedError, JSONText, streamTransport } from "../feedd.js";
import { connect as connectNode } from "../node.js";
import { frame } from "../lib/frames.js";
import { bytesOf, greeting, inBytes, scripted } from "./support.js";

const QUICK = { timeout: 100 };
const answer = (id, result = {}) => ({ jsonrpc: "2.0", id, result });
const length = (...bytes) => Uint8Array.from(bytes);

/** A connection whose daemon answers the first request after `hello` with these bytes or messages. */
async function receiving(test, ...sent) {
  const connect = scripted((_, peer) => sent.forEach((one) => (one instanceof Uint8Array ? peer.bytes(one) : peer.send(one))));
  const connection = await Connection.open(connect, QUICK);
  test.after(() => connection.close());
  return connection;
}

test("lengths that no daemon sends are refused before anything is allocated", async (t) => {
  for (const bytes of [length(0, 0, 0, 0), length(255, 255, 255, 255), length(16, 0, 0, 1)]) {
    for (const cut of [false, true]) {
      const connect = scripted((_, peer) => peer.bytes(bytes));
      const connection = await Connection.open(cut ? inBytes(connect) : connect, QUICK);
      t.after(() => connection.close());
      await assert.rejects(connection.call("ping"), { name: "ProtocolError", code: "PROTOCOL" });
      assert.ok(connect.peers[0].isClosed);
    }
  }
});

test("frames that are no messages end the connection", async (t) => {
  for (
    const text of [
      "{",
      '{"id":2,"result":',
      '{"a"',
      "[".repeat(100_000),
      '{"a":'.repeat(100_000),
      "7",
      "null",
      "[7]",
      '[{"id":2,"result":{}}]',
      '{"id":2}',
      '{"id":2,"error":7}',
      '{"id":2,"error":{"code":1}}',
      '{"id":2,"error":{"code":"x","message":"y"}}',
      '{"method":7}',
      '{"method":"delta","params":[1]}',
      '{"method":"delta","params":null}',
      '{"method":"delta","params":{"elements":[{]}}',
      `{"id":2,"result":{"a":"${'\\"'.repeat(100_000)}`,
    ]
  ) {
    const connection = await receiving(t, text);
    await assert.rejects(connection.call("ping"), { code: "PROTOCOL" }, text.slice(0, 40));
    await assert.rejects(connection.call("ping"), { code: "PROTOCOL" });
    await assert.rejects(connection.next(), { code: "PROTOCOL" });
  }
  const connection = await receiving(t, length(0, 0, 0, 2, 0xff, 0xfe));
  await assert.rejects(connection.call("ping"), { code: "PROTOCOL" });
});

test("half a frame is an error, not a wait without end", async (t) => {
  for (const bytes of [length(0), length(0, 0, 0), length(0, 0, 0, 9, 123), length(1, 0, 0, 0, 123)]) {
    const connection = await receiving(t, bytes);
    await assert.rejects(connection.call("ping", {}, { timeout: 0 }), { code: "PROTOCOL" });
    await assert.rejects(connection.next(), { code: "PROTOCOL" });
  }
});

test("the end of the stream, also inside a frame, fails what waits", async (t) => {
  for (const bytes of [length(), length(0, 0), frame(JSON.stringify(answer(2))).subarray(0, 20)]) {
    const connect = scripted((_, peer) => (peer.bytes(bytes), peer.end()));
    const connection = await Connection.open(connect, QUICK);
    t.after(() => connection.close());
    await assert.rejects(connection.call("ping"), { name: "ConnectionClosed", code: "CLOSED" });
    await assert.rejects(connection.next(), { code: "CLOSED" });
  }
});

test("several calls of next share what comes", async (t) => {
  const note = (revision) => ({ method: "bookmark", params: { feed: "f", revision } });
  const connection = await receiving(t, note(1), note(2), answer(2), note(3));
  const stop = new AbortController();
  const waiting = [connection.next(), connection.next(stop.signal), connection.next(), connection.next()];
  stop.abort("enough");
  await assert.rejects(waiting[1], (reason) => reason === "enough");
  await connection.call("ping");
  const came = await Promise.all([waiting[0], waiting[2], waiting[3]]);
  assert.deepEqual(came.map(({ params }) => params.revision), [1, 2, 3]);
  const last = [connection.next(), connection.batch()];
  connection.close();
  for (const one of last) await assert.rejects(one, { code: "CLOSED" });
});

test("a bye names its reason", async (t) => {
  const connection = await receiving(t, { method: "bye", params: { reason: "quota", message: "too much" } });
  await assert.rejects(connection.call("ping"), { code: "CLOSED", data: { reason: "quota" }, message: /too much/ });
});

test("a request without an answer times out, whatever else arrives", async (t) => {
  const connect = scripted((request, peer) => {
    if (request.method === "ping") setInterval(() => peer.send(answer(99)), 5).unref();
    else peer.send(answer(request.id, 1));
  });
  const connection = await Connection.open(connect, QUICK);
  t.after(() => connection.close());
  await assert.rejects(connection.call("ping"), { name: "TimedOut", code: "TIMEOUT" });
  assert.equal(await connection.call("sync"), 1);
});

test("what came while the program was busy is in time", async (t) => {
  const connect = scripted(({ id }, peer) => setImmediate(() => peer.send(answer(id, 1))));
  const connection = await Connection.open(connect, QUICK);
  t.after(() => connection.close());
  // Behind other immediates: timers come before the next ones.
  await new Promise((resolve) => setImmediate(resolve));
  const waiting = connection.call("ping");
  await new Promise((resolve) => process.nextTick(resolve));
  for (const end = performance.now() + 2 * QUICK.timeout; performance.now() < end;);
  assert.equal(await waiting, 1);
});

test("a daemon that does not answer hello times out, and its transport is closed", async () => {
  const silent = scripted(() => {}, { hello: false });
  await assert.rejects(new Client(silent, QUICK).ready(), { code: "TIMEOUT" });
  assert.ok(silent.peers[0].isClosed);
  await assert.rejects(new Client(() => new Promise(() => {}), QUICK).ready(), { code: "TIMEOUT" });
});

test("another version of the protocol is an error of its own", async () => {
  const refusal = (code, data = {}) => (id) => ({ id, error: { code, message: "no", data } });
  for (
    const reply of [
      (id) => greeting(id, { protocol: 2 }),
      (id) => greeting(id, { protocol: 0 }),
      (id) => greeting(id, { protocol: undefined }),
      (id) => answer(id, null),
      refusal(-32601),
      refusal(-32602, { member: "protocol" }),
    ]
  ) {
    const connect = scripted(({ id }, peer) => peer.send(reply(id)), { hello: false });
    await assert.rejects(new Client(connect, QUICK).ready(), { name: "UnsupportedVersion", code: "VERSION" });
    assert.ok(connect.peers[0].isClosed);
  }
  const connect = scripted(({ id }, peer) => peer.send(greeting(id, { epoch: 7 })), { hello: false });
  await assert.rejects(new Client(connect, QUICK).ready(), { code: "PROTOCOL" });
});

test("answers that nobody asked for are dropped", async (t) => {
  const connection = await receiving(t, answer(7), answer(-1), answer(1), answer("2"), { id: [2], result: {} }, {
    id: 2n.toString(),
    result: {},
  }, answer(2, 5));
  assert.equal(await connection.call("ping"), 5);
});

test("an error without an id is that of the oldest request", async (t) => {
  const connection = await receiving(t, { id: null, error: { code: -32007, message: "too deep", data: { limit: "maxDepth" } } });
  const first = connection.call("ping");
  await assert.rejects(first, { name: "LimitExceeded", code: -32007, data: { limit: "maxDepth" } });
});

test("an error without a request ends the connection", async (t) => {
  const connection = await receiving(t, answer(2), { id: null, error: { code: -32600, message: "bad length", data: {} } });
  await connection.call("ping");
  await assert.rejects(connection.next(), { code: -32600 });
});

test("refusals have code, name and data", async (t) => {
  const connection = await receiving(t, {
    id: 2,
    error: { code: -32010, message: "no element", data: { id: 12345678901234567890n.toString(), index: 0 } },
  });
  const error = await connection.call("get").catch((caught) => caught);
  assert.ok(error instanceof FeedError && error instanceof Error);
  assert.deepEqual([error.name, error.code, error.message, error.data.index], ["UnknownIdentity", -32010, "no element", 0]);
  const other = await receiving(t, { id: 2, error: { code: 5, message: "new", data: null } });
  await assert.rejects(other.call("get"), { name: "Refused", code: 5, data: {} });
});

test("notifications without end do not fill the memory", async (t) => {
  const text = JSON.stringify({ method: "delta", params: { feed: "f", text: "x".repeat(10_000) } });
  const endless = async () => {
    let isGreeted = false;
    return {
      async read() {
        if (!isGreeted) await new Promise((resolve) => setImmediate(resolve));
        const bytes = frame(isGreeted ? text : JSON.stringify(greeting(1)));
        isGreeted = true;
        endless.reads += 1;
        return bytes;
      },
      async write() {},
      close() {},
    };
  };
  endless.reads = 0;
  // Nobody waits for an answer: the connection stops reading.
  const connection = await Connection.open(endless, QUICK);
  t.after(() => connection.close());
  for (let before = -1; before !== endless.reads;) {
    before = endless.reads;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.ok(endless.reads < 12, `${endless.reads} chunks`);
  const before = endless.reads;
  for (let taken = 0; taken < 20; taken += 1) await connection.next();
  assert.ok(endless.reads > before);
  // An answer is awaited, which comes behind them: up to a limit.
  await assert.rejects(connection.call("ping", {}, { timeout: 0 }), { code: "PROTOCOL" });
});

test("a connection without watches drops notifications", async (t) => {
  const connect = scripted(({ id }, peer) => {
    for (let count = 0; count < 1000; count += 1) peer.send({ method: "delta", params: { feed: "f" } });
    peer.send(answer(id, 1));
  });
  const client = await new Client(connect, QUICK).ready();
  t.after(() => client.close());
  assert.equal(await client.call("ping"), 1);
});

test("requests can be aborted, and later answers find their requests", async (t) => {
  const connect = scripted(({ id, method }, peer) => method !== "stop" && setTimeout(() => peer.send(answer(id, id)), 5));
  const client = await new Client(connect, QUICK).ready();
  t.after(() => client.close());
  const controller = new AbortController();
  const first = client.call("ping", {}, { signal: controller.signal });
  const second = client.call("ping");
  controller.abort();
  await assert.rejects(first, { name: "AbortError" });
  assert.equal(await second, 3);
  await assert.rejects(client.call("ping", {}, { signal: controller.signal }), { name: "AbortError" });
  await assert.rejects(client.call("stop", {}, { signal: AbortSignal.timeout(10), timeout: 0 }), { name: "TimeoutError" });
  // Nothing is left behind that nobody handles: the runner fails for such a promise.
  const offline = new Client(() => Promise.reject(new Error("offline")), QUICK);
  await assert.rejects(offline.call("ping", {}, { signal: controller.signal }), { name: "AbortError" });
  await new Promise((resolve) => setImmediate(resolve));
  const aborted = new Client(() => new Promise(() => {}), QUICK);
  await assert.rejects(aborted.ready({ signal: AbortSignal.timeout(10) }), { name: "TimeoutError" });
});

test("many requests share a signal", async (t) => {
  const warnings = [];
  const warn = (warning) => warnings.push(warning.message);
  process.on("warning", warn);
  t.after(() => process.off("warning", warn));
  const client = await new Client(scripted(({ id, params }, peer) => params?.element === 1 && peer.send(answer(id))), QUICK)
    .ready();
  const controller = new AbortController();
  const { signal } = controller;
  assert.equal(await client.pushAll("f", Array(50).fill(1), { signal }), 50);
  const calls = Array.from({ length: 50 }, () => client.call("ping", {}, { signal }));
  const settled = Promise.allSettled([...calls, client.pushAll("f", [2], { signal })]);
  controller.abort(new Error("enough"));
  assert.deepEqual(new Set((await settled).map(({ reason }) => reason.message)), new Set(["enough"]));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warnings, []);
  client.close();
});

test("closing fails what waits", async () => {
  const client = await new Client(scripted(() => {}), QUICK).ready();
  const waiting = client.call("ping");
  client.close();
  await assert.rejects(waiting, { code: "CLOSED" });
  await assert.rejects(client.call("ping"), { code: "CLOSED" });
});

test("a value that JSON cannot say fails alone", async (t) => {
  const connection = await receiving(t, answer(2, 5));
  await assert.rejects(connection.call("update", { element: NaN }), TypeError);
  assert.equal(await connection.call("ping"), 5);
});

test("requests of one turn are written at once, in order, and elements unchanged", async (t) => {
  const writes = [];
  const connect = scripted(({ id }, peer) => peer.send(answer(id, id)));
  const counting = async () => {
    const transport = await connect();
    return { ...transport, write: (bytes) => (writes.push(new TextDecoder().decode(bytes)), transport.write(bytes)) };
  };
  const connection = await Connection.open(counting, QUICK);
  t.after(() => connection.close());
  const answers = [1, 2, 3].map((n) => connection.call("update", { element: new JSONText(`{"n":${n}.0,"t":"é"}`) }));
  assert.deepEqual(await Promise.all(answers), [2, 3, 4]);
  assert.equal(writes.length, 2);
  for (const n of [1, 2, 3]) assert.ok(writes[1].includes(`{"element":{"n":${n}.0,"t":"é"}}`));
});

test("a pair of web streams is a transport", async (t) => {
  const [there, back] = [new TransformStream(), new TransformStream()];
  const writer = back.writable.getWriter();
  const reader = there.readable.getReader();
  (async () => {
    for (let { value, done } = await reader.read(); !done; { value, done } = await reader.read()) {
      const { id, method } = JSON.parse(new TextDecoder().decode(value.subarray(4)));
      await writer.write(frame(JSON.stringify(method === "hello" ? greeting(id) : answer(id, "pong"))));
    }
  })().catch(() => {});
  const client = new Client(() => streamTransport({ readable: back.readable, writable: there.writable }), QUICK);
  t.after(() => client.close());
  assert.equal(await client.call("ping"), "pong");
});

test("no daemon is an error with its cause", async () => {
  await assert.rejects(connectNode({ path: "/nonexistent/feedd.sock" }), {
    name: "NoDaemon",
    code: "UNREACHABLE",
    data: { cause: "ENOENT" },
  });
  // Node cuts a longer path off: it would connect to the socket of the shorter one.
  const folder = mkdtempSync(join(tmpdir(), "feedd-"));
  const path = join(folder, "s".repeat(106 - folder.length));
  const server = createServer((socket) => socket.end()).listen(path);
  await once(server, "listening");
  await assert.rejects(connectNode({ path: `${path}s` }), { code: "UNREACHABLE", data: { cause: "ENAMETOOLONG" } });
  await assert.rejects(connectNode({ path }), { code: "CLOSED" });
  server.close();
  rmSync(folder, { recursive: true });
  for (
    const connect of [() => Promise.reject(new Error("offline")), () => {
      throw new Error("offline");
    }]
  ) {
    await assert.rejects(new Client(connect).ready(), { code: "UNREACHABLE", message: /offline/ });
  }
  assert.throws(() => new Client(scripted(() => {}), { numbers: "decimal" }), TypeError);
});

test("frames are found however the stream is cut", async () => {
  const { FrameReader, frameText } = await import("../lib/frames.js");
  const texts = ["{}", "x".repeat(70_000), "é😀", "y".repeat(300_000), "z"];
  const stream = new Uint8Array(texts.map(frame).flatMap((bytes) => [...bytes]));
  for (const size of [1, 2, 3, 7, 1000, 65_536, stream.length]) {
    const reader = new FrameReader(1 << 20);
    const found = [];
    for (let at = 0; at < stream.length; at += size) {
      reader.push(stream.subarray(at, at + size));
      for (let bytes = reader.next(); bytes !== null; bytes = reader.next()) found.push(frameText(bytes));
    }
    assert.deepEqual(found, texts);
    assert.ok(!reader.isInside);
  }
  assert.deepEqual([...frame("é")], [0, 0, 0, 2, 0xc3, 0xa9]);
  assert.deepEqual(frameText(bytesOf("\uFEFF{}")), "\uFEFF{}");
});
