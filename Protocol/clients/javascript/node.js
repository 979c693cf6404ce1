/** The client for Node, over the Unix socket of the daemon. */
import { existsSync } from "node:fs";
import { connect as connectSocket } from "node:net";
import { join } from "node:path";

import { Client, FeedError } from "./feedd.js";

export * from "./feedd.js";

/** The most bytes of the path of a Unix socket. */
const LONGEST_PATH = 107;

/** The path of the socket: `path`, $FEEDD_SOCKET, $XDG_RUNTIME_DIR/feedd.sock if a daemon was ever there, or the system's. */
export function socketPath(path) {
  const { FEEDD_SOCKET, XDG_RUNTIME_DIR, XDG_STATE_HOME = "", HOME } = process.env;
  if (path || FEEDD_SOCKET) return path || FEEDD_SOCKET;
  if (!XDG_RUNTIME_DIR) return "/run/feedd/feedd.sock";
  const own = join(XDG_RUNTIME_DIR, "feedd.sock");
  const state = XDG_STATE_HOME.startsWith("/") ? XDG_STATE_HOME : HOME && join(HOME, ".local", "state");
  // A stopped daemon of one's own is not replaced by the system's.
  const traces = [own, `${own}.own`, ...(state ? [join(state, "feedd")] : [])];
  return traces.some((trace) => existsSync(trace)) ? own : "/run/feedd/feedd.sock";
}

/** Connects to the daemon. Resolves with a client, or rejects if there is no daemon. */
export function connect({ path, signal, ...options } = {}) {
  return new Client(unixSocket(path), options).ready({ signal });
}

/** What `new Client` takes to connect over the Unix socket. */
export function unixSocket(path) {
  return (signal) =>
    new Promise((resolve, reject) => {
      const at = socketPath(path);
      const length = Buffer.byteLength(at);
      if (length > LONGEST_PATH) {
        // Node would cut the path off, and connect to another socket if there is one.
        const message = `cannot connect to ${at}: ENAMETOOLONG; pass a path of at most ${LONGEST_PATH} bytes, not ${length}`;
        reject(new FeedError("UNREACHABLE", message, { cause: "ENAMETOOLONG" }));
        return;
      }
      const socket = connectSocket({ path: at, allowHalfOpen: true });
      const fail = (cause) => {
        const message = `cannot connect to ${at}: ${cause.code ?? cause.message}; start feedd or set FEEDD_SOCKET`;
        reject(new FeedError("UNREACHABLE", message, { cause: cause.code }, { cause }));
      };
      const abort = () => {
        socket.destroy();
        reject(signal.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      socket.once("error", fail);
      socket.once("connect", () => {
        socket.off("error", fail);
        signal?.removeEventListener("abort", abort);
        resolve(new SocketTransport(socket));
      });
    });
}

/** Reads a socket on demand: while nobody asks, the socket is paused, and the kernel's buffers fill. */
class SocketTransport {
  #socket;
  #chunks = [];
  #end = undefined;
  #waiting = null;

  constructor(socket) {
    this.#socket = socket;
    socket.pause();
    socket.on("data", (chunk) => {
      if (this.#waiting === null) {
        this.#chunks.push(chunk);
        socket.pause();
      } else {
        this.#settle(({ resolve }) => resolve(chunk));
      }
    });
    socket.on("end", () => this.#finish(null));
    socket.on("error", (error) => this.#finish(error));
    socket.on("close", () => this.#finish(null));
  }

  /** The next chunk, or null at the end of the stream. */
  read() {
    if (this.#chunks.length > 0) return Promise.resolve(this.#chunks.shift());
    if (this.#end === null) return Promise.resolve(null);
    if (this.#end !== undefined) return Promise.reject(this.#end);
    if (this.#socket.isPaused()) this.#socket.resume();
    return new Promise((resolve, reject) => (this.#waiting = { resolve, reject }));
  }

  /** Writes bytes. Resolves when the socket takes more. */
  async write(bytes) {
    if (this.#socket.write(bytes)) return;
    await new Promise((resolve) => {
      const done = () => {
        this.#socket.off("drain", done).off("close", done);
        resolve();
      };
      this.#socket.on("drain", done).on("close", done);
    });
  }

  close() {
    this.#socket.destroy();
  }

  #finish(error) {
    if (this.#end !== undefined) return;
    this.#end = error;
    this.#settle(({ resolve, reject }) => (error === null ? resolve(null) : reject(error)));
  }

  #settle(act) {
    const waiting = this.#waiting;
    this.#waiting = null;
    if (waiting !== null) act(waiting);
  }
}
