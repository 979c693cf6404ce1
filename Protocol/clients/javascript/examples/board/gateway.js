#!/usr/bin/env node
/**
 * Shows a feed in a browser: a gateway between the daemon's socket and a page.
 *
 * usage: node gateway.js [FEED [PORT]]     (default: inbox 8080; prints the address of the page)
 *
 * GET /events sends snapshot and deltas as server-sent events, and resumes from `Last-Event-ID`. POST /push pushes one element.
 * Both need the token that is in the address of the page; it is kept in $BOARD_TOKEN_FILE, so that open pages go on after a
 * restart. The gateway listens on 127.0.0.1 only, and refuses requests that another site made a browser send.
 */
import { randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { homedir } from "node:os";
import { join } from "node:path";

import { Client, JSONText, unixSocket } from "../../node.js";

const MAX_ELEMENT = 64 * 1024;
const MAX_CONNECTIONS = 64;
const [feed = "inbox", port = "8080"] = process.argv.slice(2);
const folder = process.env.XDG_RUNTIME_DIR ?? homedir();
const token = Buffer.from(keptToken(process.env.BOARD_TOKEN_FILE ?? join(folder, "feedd-board.token")));
const modules = readdirSync(new URL("../../lib", import.meta.url)).map((name) => `lib/${name}`);
const files = new Map([
  ["/", served("page.html", "text/html")],
  ["/page.js", served("page.js", "text/javascript")],
  ["/cards.js", served("cards.js", "text/javascript")],
  ["/style.css", served("style.css", "text/css")],
  ...["feedd.js", ...modules].map((name) => [`/feedd/${name}`, served(`../../${name}`, "text/javascript")]),
]);
const HEADERS = {
  "Cache-Control": "no-store",
  "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
};
const client = new Client(unixSocket(), { client: "board", timeout: 5000 });
const server = createServer((request, response) => {
  handle(request, response).catch((error) => answer(response, 500, { error: error.message }));
});
server.maxConnections = MAX_CONNECTIONS;
server.on("error", ({ code }) => {
  console.error(`gateway.js: cannot listen at 127.0.0.1:${port}: ${code}; choose another port: node gateway.js ${feed} PORT`);
  process.exit(1);
});
server.listen(Number(port), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/#${token}`));

function served(name, type) {
  return { body: readFileSync(new URL(name, import.meta.url)), type: `${type}; charset=utf-8` };
}

/** The token in the file, which is made when it is absent. */
function keptToken(path) {
  try {
    writeFileSync(path, randomBytes(24).toString("hex"), { mode: 0o600, flag: "wx" });
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  const text = readFileSync(path, "utf8").trim();
  if (!/^\w{16,}$/.test(text)) throw new Error(`${path} has no token; remove it`);
  return text;
}

async function handle(request, response) {
  const [path, query = ""] = request.url.split("?");
  if (!isOurs(request)) return answer(response, 403, { error: "the request comes from another site" });
  const file = request.method === "GET" ? files.get(path) : undefined;
  if (file) {
    response.writeHead(200, { ...HEADERS, "Content-Type": file.type }).end(file.body);
    return undefined;
  }
  const given = request.headers.authorization?.replace(/^Bearer /, "") ?? new URLSearchParams(query).get("token") ?? "";
  if (!isToken(given)) return answer(response, 403, { error: "the address of the page has no valid token" });
  if (request.method === "GET" && path === "/events") return events(request, response);
  if (request.method === "POST" && path === "/push") return push(request, response);
  return answer(response, 404, { error: "there is no such page" });
}

/** Whether the browser believes to talk to this gateway, and no other site is behind the request. */
function isOurs({ headers: { host, origin } }) {
  const { port } = server.address();
  return [`127.0.0.1:${port}`, `localhost:${port}`].includes(host) && (origin === undefined || origin === `http://${host}`);
}

function isToken(text) {
  const given = Buffer.from(text);
  return given.length === token.length && timingSafeEqual(given, token);
}

function answer(response, status, value) {
  if (response.headersSent) return response.end();
  return response.writeHead(status, { ...HEADERS, "Content-Type": "application/json" }).end(JSON.stringify(value));
}

/** Sends the notifications of a watch as they are. An event that brings the page to a position has it as its id. */
async function events(request, response) {
  const [, epoch, revision] = /^(.+):(\d+)$/.exec(request.headers["last-event-id"] ?? "") ?? [];
  const since = epoch ? { [feed]: { epoch, revision: Number(revision) } } : {};
  const stop = new AbortController();
  const { signal } = stop;
  response.on("close", () => stop.abort());
  response.writeHead(200, { ...HEADERS, "Content-Type": "text/event-stream" }).write("retry: 500\n\n");
  try {
    let current;
    for await (const { method, params, text } of client.follow(feed, { since, signal })) {
      if (method === "watch") current = params.epoch;
      const isPosition = method === "delta" || (method === "snapshot" && params.last);
      let id = isPosition ? `id: ${current}:${params.revision}\n` : "";
      if (method === "bookmark") id = `id: ${params.epoch}:${params.current}\n`;
      const message = text ?? JSON.stringify({ method, params });
      // A page that does not read stops the watch here, and gets one delta for all that it missed.
      if (!response.write(`${id}data: ${message}\n\n`)) await once(response, "drain", { signal });
    }
  } catch (error) {
    if (!signal.aborted) response.write(`event: failure\ndata: ${JSON.stringify(error.message)}\n\n`);
  }
  response.end();
}

/** Pushes the element of the body with its text. */
async function push(request, response) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > MAX_ELEMENT) {
      response.setHeader("Connection", "close");
      return answer(response, 413, { error: `an element has at most ${MAX_ELEMENT} bytes here` });
    }
    chunks.push(chunk);
  }
  try {
    const element = new JSONText(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks)));
    return answer(response, 200, await client.call("update", { feed, element }));
  } catch (error) {
    const isRefused = typeof error.code === "number" || error instanceof SyntaxError || error instanceof TypeError;
    return answer(response, isRefused ? 400 : 503, { error: error.message });
  }
}
