/** The gateway of the board as a process, and requests to it. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("../examples/board/gateway.js", import.meta.url));

export class Gateway {
  constructor(daemon, feed) {
    Object.assign(this, { daemon, feed, port: 0 });
  }

  /** Starts it, at the port that it had before. */
  async start() {
    const { daemon, feed, port } = this;
    const environment = { ...process.env, FEEDD_SOCKET: daemon.path, BOARD_TOKEN_FILE: join(daemon.folder, "token") };
    this.process = spawn(process.execPath, [PROGRAM, feed, String(port)], {
      env: environment,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(createInterface({ input: this.process.stdout }), "line");
    this.url = line;
    this.port = Number(new URL(line).port);
    this.token = new URL(line).hash.slice(1);
    return this;
  }

  async stop() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.kill("SIGKILL");
    await once(this.process, "exit");
  }

  /** Sends a request, and resolves with its answer before the body. */
  send(method, path, { headers = {}, body, host = "127.0.0.1" } = {}) {
    return new Promise((resolve, reject) => {
      const options = { host, port: this.port, method, path, headers, agent: false };
      request(options, resolve).on("error", reject).end(body);
    });
  }

  /** The status and the decoded body of an answer. */
  async get(method, path, options) {
    const response = await this.send(method, path, options);
    const chunks = [];
    for await (const chunk of response) chunks.push(chunk);
    return [response.statusCode, Buffer.concat(chunks).toString(), response.headers];
  }

  push(body, headers = { Authorization: `Bearer ${this.token}` }) {
    return this.get("POST", "/push", { headers, body });
  }

  /** The events of the feed, from a position if one is given. */
  async *events(position) {
    const headers = position ? { "Last-Event-ID": position } : {};
    const response = await this.send("GET", `/events?token=${this.token}`, { headers });
    let event = {};
    try {
      for await (const line of lines(response)) {
        const [, name, value] = /^(\w+): (.*)$/.exec(line) ?? [];
        if (name) event[name] = value;
        else if (event.data) yield event;
        if (line === "") event = {};
      }
    } catch (error) {
      // The gateway ended.
      if (error.code !== "ECONNRESET") throw error;
    }
  }
}

async function* lines(stream) {
  let rest = "";
  for await (const chunk of stream.setEncoding("utf8")) {
    const found = (rest + chunk).split("\n");
    rest = found.pop();
    yield* found;
  }
}
