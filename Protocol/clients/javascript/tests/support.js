/** What the tests share: a daemon of their own, transports that are scripted or cut into bytes, and vectors that keep their text. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { Client, unixSocket } from "../node.js";
import { frame } from "../lib/frames.js";

const VECTORS = new URL("../../../vectors/", import.meta.url);

/** Milliseconds after which a test fails that waits for something. */
export const PATIENCE = 120_000;

/** Why tests with a daemon are skipped, or false. */
export const noDaemon = process.env.FEEDD_BIN_DIR ? false : "FEEDD_BIN_DIR names no folder with feedd in it";

/** A daemon on a socket of its own. */
export class Daemon {
  constructor(folder, ...options) {
    this.folder = folder ?? mkdtempSync(join(tmpdir(), "feedd-test-"));
    this.path = join(this.folder, "feedd.sock");
    this.options = options;
  }

  /** Resolves when it listens. */
  async start() {
    const program = join(process.env.FEEDD_BIN_DIR, "feedd");
    const options = ["--socket", this.path, "--state", join(this.folder, "state"), ...this.options];
    this.process = spawn(program, options, { stdio: ["ignore", "ignore", "pipe"] });
    const log = [];
    for await (const line of createInterface({ input: this.process.stderr })) {
      log.push(line);
      if (line.includes("listens at")) {
        this.process.stderr.resume();
        return this;
      }
    }
    throw new Error(`the daemon is not ready: ${log.join("\n")}`);
  }

  /** Ends the daemon, and resolves when it is gone. */
  async end(signal = "SIGTERM") {
    const { process } = this;
    if (process.exitCode !== null || process.signalCode !== null) return;
    process.kill(signal);
    await once(process, "exit");
  }

  async stop() {
    await this.end();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** How to connect; `cut` cuts what the daemon sends into single bytes. */
  connector(cut = false) {
    return cut ? inBytes(unixSocket(this.path)) : unixSocket(this.path);
  }

  client(options, cut = false) {
    return new Client(this.connector(cut), options);
  }
}

/** A daemon for a test, which ends with it. */
export async function daemonFor(test, ...options) {
  const daemon = await new Daemon(null, "--durability", "memory", ...options).start();
  test.after(() => daemon.stop());
  return daemon;
}

/** Delivers what comes over a transport byte by byte. */
export function inBytes(connect) {
  return async (signal) => {
    const transport = await connect(signal);
    let chunk = new Uint8Array(0);
    let at = 0;
    return {
      async read() {
        while (chunk !== null && at === chunk.length) [chunk, at] = [await transport.read(), 0];
        return chunk === null ? null : chunk.subarray(at, at += 1);
      },
      write: (bytes) => transport.write(bytes),
      close: () => transport.close(),
    };
  };
}

/**
 * A daemon in memory. `script(request, peer)` is called for each request and answers with `peer.send(message)`, `peer.bytes(bytes)`
 * and `peer.end()`. `hello` is answered unless `hello` is false.
 */
export function scripted(script, { hello = true } = {}) {
  const connect = async () => {
    const queue = [];
    let wake = () => {};
    const peer = {
      /** The number of chunks that the client has read, and whether it has closed the transport. */
      reads: 0,
      isClosed: false,
      bytes(bytes) {
        queue.push(bytes);
        wake();
      },
      send(message) {
        peer.bytes(frame(typeof message === "string" ? message : JSON.stringify(message)));
      },
      end() {
        queue.push(null);
        wake();
      },
    };
    connect.peers.push(peer);
    return {
      async read() {
        while (queue.length === 0) await new Promise((resolve) => (wake = resolve));
        peer.reads += 1;
        return queue.shift();
      },
      async write(bytes) {
        for (let at = 0; at < bytes.length;) {
          const length = new DataView(bytes.buffer, bytes.byteOffset + at).getUint32(0);
          const request = JSON.parse(new TextDecoder().decode(bytes.subarray(at + 4, at + 4 + length)));
          at += 4 + length;
          if (hello && request.method === "hello") peer.send(greeting(request.id));
          else script(request, peer);
        }
      },
      close() {
        peer.isClosed = true;
        peer.end();
      },
    };
  };
  connect.peers = [];
  return connect;
}

export const greeting = (id, members = {}) => ({
  jsonrpc: "2.0",
  id,
  result: { protocol: 1, server: "scripted", epoch: "e", revision: 7, limits: {}, capabilities: {}, ...members },
});

export const bytesOf = (text) => new TextEncoder().encode(text);

// Vectors

/** The cases of a file of vectors, as nodes. */
export const cases = (name) => vectors(name).get("cases").items;
export const vectors = (name) => parse(readFileSync(new URL(`${name}.json`, VECTORS), "utf8"));

/** A JSON value with its text, without white space outside strings. */
class Node {
  constructor(text, { items = null, members = null } = {}) {
    Object.assign(this, { text, items, members });
  }

  get value() {
    return JSON.parse(this.text);
  }

  get(name) {
    return this.members.get(name);
  }
}

/** Reads JSON by its tokens, with code that the client does not share. */
export function parse(text) {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/gs);
  let at = 0;
  const value = () => {
    const token = tokens[at++];
    if (token === "[") return list("]", value);
    if (token === "{") return list("}", member);
    return new Node(token);
  };
  const member = () => {
    const name = tokens[at];
    at += 2;
    return [JSON.parse(name), value(), name];
  };
  const list = (closer, item) => {
    const found = [];
    while (tokens[at] !== closer) {
      found.push(item());
      if (tokens[at] === ",") at += 1;
    }
    at += 1;
    if (closer === "]") return new Node(`[${found.map(({ text }) => text).join(",")}]`, { items: found });
    const text = found.map(([, node, name]) => `${name}:${node.text}`).join(",");
    return new Node(`{${text}}`, { members: new Map(found) });
  };
  return value();
}
