import type { Client, ClientOptions, Connect } from "./feedd.js";

export * from "./feedd.js";

/** Connects to the daemon: at `path`, $FEEDD_SOCKET, $XDG_RUNTIME_DIR/feedd.sock if a daemon was ever there, or the system's socket. */
export function connect(options?: ClientOptions & { path?: string; signal?: AbortSignal }): Promise<Client>;

/** What `new Client` takes to connect over the Unix socket. */
export function unixSocket(path?: string): Connect;

/** The path of the socket that `connect` uses. */
export function socketPath(path?: string): string;
