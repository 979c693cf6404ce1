/** The example of the README does what it says. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { daemonFor, noDaemon, PATIENCE } from "./support.js";

const folder = fileURLToPath(new URL("..", import.meta.url));
const root = fileURLToPath(new URL("../../../..", import.meta.url));

/** Runs the first program of a page in its folder. Returns an iterator over the lines that it prints. */
function run(t, page, daemon) {
  const [, program] = readFileSync(join(page, "README.md"), "utf8").match(/^```js\n(.*?)^```/ms);
  const environment = { ...process.env, FEEDD_SOCKET: daemon.path };
  const options = { cwd: page, env: environment, stdio: ["ignore", "pipe", "inherit"] };
  const running = spawn(process.execPath, ["--input-type=module", "--eval", program], options);
  t.after(() => running.kill());
  return createInterface({ input: running.stdout })[Symbol.asyncIterator]();
}

test("the first example runs", { skip: noDaemon, timeout: PATIENCE }, async (t) => {
  const daemon = await daemonFor(t);
  const lines = run(t, folder, daemon);
  assert.match((await lines.next()).value, /^snapshot 2 /);
  const client = await daemon.client().ready();
  t.after(() => client.close());
  await client.push("inbox", { id: 2, priority: 8 });
  for (let line = ""; !line.startsWith("delta 3 ");) line = (await lines.next()).value;
});

test("the example of the project's README runs", { skip: noDaemon, timeout: PATIENCE }, async (t) => {
  const daemon = await daemonFor(t);
  const client = await daemon.client().ready();
  t.after(() => client.close());
  await client.call("define", { feed: "inbox", kind: "collection" });
  const lines = run(t, root, daemon);
  for (const kind of ["snapshot", "delta"]) {
    const line = (await lines.next()).value;
    assert.ok(line.startsWith(`${kind} [`) && line.endsWith((await client.call("verify", { feed: "inbox" })).digest), line);
    await client.push("inbox", { id: kind });
  }
});

test("the README names the lines of the gateway", () => {
  const [, lines] = readFileSync(join(root, "README.md"), "utf8").match(/behind a gateway of (\d+) lines/);
  const gateway = readFileSync(join(folder, "examples/board/gateway.js"), "utf8");
  assert.equal(Number(lines), gateway.split("\n").length - 1);
  assert.ok(Number(lines) <= 150);
});

test("the methods, options and codes that the README names exist", async () => {
  const text = readFileSync(`${folder}/README.md`, "utf8");
  const declarations = readFileSync(`${folder}/feedd.d.ts`, "utf8");
  for (const [, name] of text.matchAll(/`(?:client|mirror|watch|change)\.(\w+)/g)) {
    assert.match(declarations, new RegExp(`\\b${name}\\b`), name);
  }
  for (const [, code] of text.matchAll(/^\| `("\w+")`/gm)) assert.ok(declarations.includes(code), code);
});
