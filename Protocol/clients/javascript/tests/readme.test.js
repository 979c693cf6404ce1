/** The example of the README does what it says. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { daemonFor, noDaemon } from "./support.js";

const folder = fileURLToPath(new URL("..", import.meta.url));

test("the first example runs", { skip: noDaemon }, async (t) => {
  const daemon = await daemonFor(t);
  const [, program] = readFileSync(`${folder}/README.md`, "utf8").match(/^```js\n(.*?)^```/ms);
  const environment = { ...process.env, FEEDD_SOCKET: daemon.path };
  const options = { cwd: folder, env: environment, stdio: ["ignore", "pipe", "inherit"] };
  const running = spawn(process.execPath, ["--input-type=module", "--eval", program], options);
  t.after(() => running.kill());
  const lines = createInterface({ input: running.stdout })[Symbol.asyncIterator]();
  assert.match((await lines.next()).value, /^snapshot 2 /);
  const client = await daemon.client().ready();
  t.after(() => client.close());
  for (let line = ""; !line.startsWith("delta 3 "); line = (await lines.next()).value) {
    if (line === "") await client.push("inbox", { id: 2, priority: 8 });
  }
});

test("the methods, options and codes that the README names exist", async () => {
  const text = readFileSync(`${folder}/README.md`, "utf8");
  const declarations = readFileSync(`${folder}/feedd.d.ts`, "utf8");
  for (const [, name] of text.matchAll(/`(?:client|mirror|watch|change)\.(\w+)/g)) {
    assert.match(declarations, new RegExp(`\\b${name}\\b`), name);
  }
  for (const [, code] of text.matchAll(/^\| `("\w+")`/gm)) assert.ok(declarations.includes(code), code);
});
