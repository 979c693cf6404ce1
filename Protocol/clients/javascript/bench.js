#!/usr/bin/env node
/**
 * Measures the client: updates a second that one program pushes, and rows a second that one watcher takes into its copy.
 *
 * usage: node bench.js [COUNT]      (default: 200,000 elements of 200 bytes)
 *
 * Starts $FEEDD_BIN_DIR/feedd, or `feedd` of the PATH, without storage. If there is a redis-server, does the same with Redis:
 * HSET and PUBLISH of the same texts, and a subscriber that keeps them in a Map. Node has no client of Redis, so that is a loop
 * below that does only this job, which is the least that any client must do. Pusher, watcher and server are processes of their
 * own.
 */
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect as connectSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Client, unixSocket } from "./node.js";

const [count = "200000", role, path] = process.argv.slice(2);
const COUNT = Number(count);
const WINDOW = 256;
const element = (id) => ({ id: id % 10_000, priority: id % 10, from: "bench", text: "x".repeat(130), step: id });

/** A pipeline of commands to Redis, and the replies that have come. */
class Redis {
  #socket;
  #rest = "";
  #output = "";
  #waiting = null;
  replies = 0;
  onText = null;

  async connect(path) {
    this.#socket = connectSocket(path).setEncoding("latin1");
    this.#socket.on("data", (chunk) => this.#take(chunk));
    await once(this.#socket, "connect");
    return this;
  }

  send(...words) {
    if (this.#output === "") queueMicrotask(() => (this.#socket.write(this.#output, "latin1"), (this.#output = "")));
    this.#output += `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`;
  }

  /** Resolves when that many replies have come. */
  async until(count) {
    while (this.replies < count) await new Promise((resolve) => (this.#waiting = resolve));
  }

  #take(chunk) {
    const text = this.#rest + chunk;
    let at = 0;
    for (let end = text.indexOf("\r\n", at); end >= 0; end = text.indexOf("\r\n", at)) {
      const kind = text[at];
      if (kind === "$") {
        const length = Number(text.slice(at + 1, end));
        if (text.length < end + length + 4) break;
        this.onText?.(text.slice(end + 2, end + 2 + length));
        at = end + length + 4;
      } else {
        if (kind === ":") this.replies += 1;
        at = end + 2;
      }
    }
    this.#rest = text.slice(at);
    this.#waiting?.();
  }
}

async function pushes(options) {
  const client = await new Client(unixSocket(path)).ready();
  const start = performance.now();
  await client.pushAll("bench", elements(), options);
  return start;
}

const roles = {
  pushFeedd: () => pushes({ window: WINDOW }),
  batchFeedd: () => pushes({ batch: WINDOW }),

  async watchFeedd() {
    const client = new Client(unixSocket(path));
    let seen = 0;
    let deltas = 0;
    for await (const change of client.watch("bench")) {
      if (change.kind === "snapshot") process.send("ready");
      else deltas += 1;
      for (const row of change.rows ?? []) seen = row.value.step;
      if (seen === COUNT - 1) break;
    }
    return { deltas };
  },

  async pushRedis() {
    const redis = await new Redis().connect(path);
    const start = performance.now();
    let sent = 0;
    for (const each of elements()) {
      const text = JSON.stringify(each);
      redis.send("HSET", "bench", String(each.id), text);
      redis.send("PUBLISH", "bench", text);
      sent += 2;
      if (sent - redis.replies >= 2 * WINDOW) await redis.until(sent - WINDOW);
    }
    await redis.until(sent);
    return start;
  },

  async watchRedis() {
    const redis = await new Redis().connect(path);
    const copy = new Map();
    let done;
    const ended = new Promise((resolve) => (done = resolve));
    redis.onText = (text) => {
      if (text[0] !== "{") return;
      const { id, step } = JSON.parse(text);
      copy.set(id, text);
      if (step === COUNT - 1) done();
    };
    redis.send("SUBSCRIBE", "bench");
    await redis.until(1);
    process.send("ready");
    await ended;
    return { deltas: COUNT };
  },
};

function* elements() {
  for (let id = 0; id < COUNT; id += 1) yield element(id);
}

/** Runs a role in a process of its own: what it ended with, and the seconds that it took. */
async function run(role, socket, ready = () => {}) {
  const child = fork(new URL(import.meta.url), [String(COUNT), role, socket]);
  const { seconds, result } = await new Promise((resolve) => {
    child.on("message", (message) => (message === "ready" ? ready() : resolve(message)));
  });
  child.disconnect();
  return { seconds, ...result };
}

/** Measures pushes alone, and pushes with one watcher. */
async function measure(name, socket, suffix) {
  const alone = await run(`push${suffix}`, socket);
  let pushing;
  const ready = new Promise((resolve) => (pushing = resolve));
  const start = ready.then(() => performance.now());
  const watching = run(`watch${suffix}`, socket, pushing);
  await ready;
  const begun = await start;
  const pushed = run(`push${suffix}`, socket);
  const { deltas } = await watching;
  const seconds = (performance.now() - begun) / 1000;
  const together = await pushed;
  const rate = (seconds) => Math.round(COUNT / seconds).toLocaleString("en");
  const watched = `${rate(together.seconds)} updates/s, ${rate(seconds)} rows/s in ${deltas.toLocaleString("en")} deltas`;
  console.log(`${name}: ${rate(alone.seconds)} updates/s; with a watcher ${watched}`);
}

async function server(program, options, isReady) {
  const child = spawn(program, options, { stdio: ["ignore", "pipe", "pipe"] });
  const failed = once(child, "error").then(() => null);
  const listens = new Promise((resolve) => {
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => isReady.test(data) && resolve(child));
  });
  return Promise.race([listens, failed]);
}

if (role) {
  const start = await roles[role]();
  const isTime = typeof start === "number";
  process.send({ seconds: isTime ? (performance.now() - start) / 1000 : null, result: isTime ? {} : start });
} else {
  const folder = mkdtempSync(join(tmpdir(), "feedd-bench-"));
  const socket = join(folder, "feedd.sock");
  const program = join(process.env.FEEDD_BIN_DIR ?? "", "feedd");
  const daemon = await server(program, ["--socket", socket, "--durability", "memory"], /listens at/);
  if (daemon === null) throw new Error("cannot start feedd; set FEEDD_BIN_DIR");
  const client = await new Client(unixSocket(socket)).ready();
  await client.call("define", { feed: "bench", kind: "collection" });
  await measure("feedd", socket, "Feedd");
  const { seconds } = await run("batchFeedd", socket);
  console.log(`feedd, ${WINDOW} elements a request: ${Math.round(COUNT / seconds).toLocaleString("en")} updates/s`);
  client.close();
  daemon.kill();
  const other = join(folder, "redis.sock");
  const options = ["--port", "0", "--unixsocket", other, "--save", "", "--appendonly", "no"];
  const redis = await server("redis-server", options, /[Rr]eady to accept|now ready/);
  if (redis === null) console.log("Redis: skipped, there is no redis-server");
  else await measure("Redis, a loop for this job", other, "Redis");
  redis?.kill();
  rmSync(folder, { recursive: true, force: true });
}
