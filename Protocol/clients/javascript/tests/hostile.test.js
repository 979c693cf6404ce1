/** Daemons that lie over a real socket, and streams with random damage: a typed error, never a hang or a crash. */

import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Client, FeedError, unixSocket } from "../node.js";
import { frame } from "../lib/frames.js";
import { greeting, PATIENCE } from "./support.js";

const QUICK = { timeout: 200, reconnect: false };
/** As many as the long tests of the project have time for. */
const ROUNDS = process.env.FEEDD_LONG ? 20_000 : 1000;
const text = (message) => frame(JSON.stringify(message));
const HEAD = { feed: "f", epoch: "e", revision: 7, resumed: false, sections: [{ name: "f", count: 2 }] };
const SESSION = [
  greeting(1),
  { jsonrpc: "2.0", id: 2, result: HEAD },
  {
    jsonrpc: "2.0",
    method: "snapshot",
    params: { feed: "f", revision: 7, at: [0, 0], elements: [{ id: 1, text: "é" }, 2.5], types: ["a", null], last: true },
  },
  {
    jsonrpc: "2.0",
    method: "delta",
    params: {
      feed: "f",
      from: 7,
      revision: 8,
      deleted: [[0, 1]],
      added: [[0, 0], [1, 0]],
      updated: [],
      elements: [[], "x"],
      types: [null, null],
      sections: { deleted: [], added: [{ at: 1, name: "g" }] },
      moves: [[0, 1]],
    },
  },
  { jsonrpc: "2.0", method: "bookmark", params: { feed: "f", epoch: "e", revision: 8, current: 12 } },
  { jsonrpc: "2.0", method: "selection", params: { feed: "f", revision: 8, selected: [[0, 0]] } },
  {
    jsonrpc: "2.0",
    method: "delta",
    params: {
      feed: "f",
      from: 8,
      revision: 13,
      deleted: [[0, 0]],
      added: [],
      updated: [[0, 0]],
      elements: [1e400],
      types: [null],
      ended: true,
    },
  },
];

/** A server that does something with each connection. */
async function serving(t, serve) {
  const folder = mkdtempSync(join(tmpdir(), "feedd-test-"));
  const sockets = new Set();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", () => {});
    serve(socket);
  });
  const path = join(folder, "s");
  await new Promise((resolve) => server.listen(path, resolve));
  t.after(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return path;
}

test("daemons on a real socket that lie", { timeout: PATIENCE }, async (t) => {
  const bye = text({ jsonrpc: "2.0", method: "bye", params: { reason: "limit", message: "too many" } });
  for (
    const [name, code, serve] of [
      ["closes at once", "CLOSED", (socket) => socket.end()],
      ["resets", "CLOSED", (socket) => socket.destroy()],
      ["says nothing", "TIMEOUT", () => {}],
      ["says why it closes", "CLOSED", (socket) => socket.end(bye)],
      ["half a length", "TIMEOUT", (socket) => socket.write(Uint8Array.of(0, 0))],
      ["half a frame, and then nothing", "TIMEOUT", (socket) => socket.write(text(greeting(1)).subarray(0, 30))],
      ["half a frame, and then the end", "CLOSED", (socket) => socket.end(text(greeting(1)).subarray(0, 30))],
      ["a length of 0", "PROTOCOL", (socket) => socket.write(new Uint8Array(4))],
      ["a huge length", "PROTOCOL", (socket) => socket.write(Uint8Array.of(255, 255, 255, 255))],
      ["a length that is allowed, and then nothing", "TIMEOUT", (socket) => socket.write(Uint8Array.of(15, 255, 255, 255, 123))],
      ["HTTP", "PROTOCOL", (socket) => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n")],
      ["no UTF-8", "PROTOCOL", (socket) => socket.write(Uint8Array.of(0, 0, 0, 1, 0xff))],
      ["no JSON", "PROTOCOL", (socket) => socket.write(frame("hello"))],
      ["an old version", "VERSION", (socket) => socket.write(text(greeting(1, { protocol: 0 })))],
      [
        "no hello",
        "VERSION",
        (socket) => socket.write(text({ jsonrpc: "2.0", id: 1, error: { code: -32601, message: "unknown method", data: {} } })),
      ],
      ["what it sends is never read", "PROTOCOL", (socket) => socket.write(new Uint8Array(1 << 20))],
    ]
  ) {
    const path = await serving(t, serve);
    const either = (error) =>
      error instanceof FeedError && (error.code === code || (code === "TIMEOUT" && error.code === "PROTOCOL"));
    await assert.rejects(new Client(unixSocket(path), QUICK).ready(), either, name);
    await assert.rejects(new Client(unixSocket(path), QUICK).watch("f").next(), either, name);
  }
});

test("a daemon that reads nothing does not stop a request from timing out", { timeout: PATIENCE }, async (t) => {
  const path = await serving(t, (socket) => socket.pause().write(text(greeting(1))));
  const client = await new Client(unixSocket(path), QUICK).ready();
  t.after(() => client.close());
  await assert.rejects(client.push("f", "x".repeat(4 << 20)), { code: "TIMEOUT" });
});

/** A stream with some bytes changed, removed, repeated or cut off. */
function damaged(bytes) {
  let damaged = [...bytes];
  for (let count = randomInt(1, 4); count > 0 && damaged.length > 0; count -= 1) {
    const at = randomInt(damaged.length);
    const kind = randomInt(5);
    if (kind === 0) damaged[at] = randomInt(256);
    else if (kind === 1) damaged[at] = '{}[],:"0-9e.tn\\'.charCodeAt(randomInt(15));
    else if (kind === 2) damaged.splice(at, randomInt(1, 40));
    else if (kind === 3) damaged.splice(at, 0, ...damaged.slice(at, at + randomInt(1, 200)));
    else damaged = damaged.slice(0, at + 1);
  }
  return Uint8Array.from(damaged);
}

test("streams with random damage", { timeout: PATIENCE }, async () => {
  const first = text(SESSION[0]).length;
  const whole = Uint8Array.from(SESSION.flatMap((message) => [...text(message)]));
  for (let round = 0; round < ROUNDS; round += 1) {
    const stream = round === 0 ? whole : damaged(whole);
    const size = randomInt(1, 200);
    const connect = () => {
      let [at, writes] = [0, 0];
      return {
        async read() {
          // What follows the answer to hello follows the next request, if there is one.
          if (at >= first) {
            for (let turn = 0; turn < 3 && writes < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
          }
          const from = at;
          at = at < first ? Math.min(first, at + size) : at + size;
          return from < stream.length ? stream.subarray(from, at) : null;
        },
        async write() {
          writes += 1;
        },
        close() {},
      };
    };
    const seen = [];
    try {
      for await (const change of new Client(connect, QUICK).watch("f")) {
        seen.push(change.kind);
        change.mirror.values();
        change.mirror.digest();
      }
      if (round === 0) assert.deepEqual(seen, ["snapshot", "delta", "selection", "delta"]);
    } catch (error) {
      const data = Buffer.from(stream).toString("base64");
      assert.ok(round > 0 && error instanceof FeedError && error.code !== "TIMEOUT", `${error.stack}\n${data}`);
    }
  }
});
