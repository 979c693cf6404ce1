/** The shared to-do list: three terminals claim at the same time, and each item has exactly one owner. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { daemonFor, noDaemon, PATIENCE } from "./support.js";

const PROGRAM = fileURLToPath(new URL("../examples/todo/todo.js", import.meta.url));
const skip = { skip: noDaemon, timeout: PATIENCE };

/** Runs a command in a terminal of its own: its exit status and what it printed. */
async function run(daemon, name, ...words) {
  const environment = { ...process.env, FEEDD_SOCKET: daemon.path, TODO_NAME: name };
  const child = spawn(process.execPath, [PROGRAM, ...words], { env: environment });
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"]) child[stream].on("data", (data) => (output[stream] += data));
  const [status] = await once(child, "close");
  return { status, lines: output.stdout.split("\n").filter(Boolean), error: output.stderr };
}

test("three terminals claim 300 items, each once", skip, async (t) => {
  const daemon = await daemonFor(t);
  const first = await run(daemon, "ann", "add", "Water", "the ficus");
  assert.equal(first.status, 0, first.error);
  const client = await daemon.client().ready();
  t.after(() => client.close());
  await client.pushAll("todo", Array.from({ length: 299 }, (_, index) => ({ id: `i${index}`, text: `Item ${index}` })));
  const names = ["ann", "ben", "cyd"];
  const claims = await Promise.all(names.map((name) => run(daemon, name, "claim", "all")));
  assert.deepEqual(claims.map(({ status, error }) => [status, error]), names.map(() => [0, ""]));
  const owners = new Map(claims.flatMap(({ lines }, index) => lines.map((line) => [line.split(" ")[0], names[index]])));
  assert.equal(claims.reduce((sum, { lines }) => sum + lines.length, 0), 300);
  const { sections } = await client.call("snapshot", { feed: "todo" });
  assert.deepEqual(sections.map(({ count }) => count), [0, 300, 0]);
  assert.deepEqual(new Map(sections[1].elements.map(({ value }) => [value.id, value.owner])), owners);
  assert.deepEqual(await run(daemon, "ann", "claim"), { status: 1, lines: [], error: "" });
  assert.equal((await run(daemon, "ann", "done", first.lines[0])).status, 0);
  assert.deepEqual((await client.call("describe", { feed: "todo" })).counts, [0, 299, 1]);
  assert.match((await run(daemon, "ann", "done", "nothing")).error, /^todo\.js: .*nothing/);
  for (const words of [[], ["add"], ["done"], ["constructor"]]) assert.equal((await run(daemon, "ann", ...words)).status, 2);
});

test("the list that is watched has nothing that controls a terminal", skip, async (t) => {
  const daemon = await daemonFor(t);
  const { lines } = await run(daemon, "ann", "add", "\u001b[2JX\u202e\u009b31m");
  const child = spawn(process.execPath, [PROGRAM, "watch"], { env: { ...process.env, FEEDD_SOCKET: daemon.path } });
  t.after(() => child.kill());
  let output = "";
  for await (const data of child.stdout.setEncoding("utf8")) {
    output += data;
    if (output.includes("done (0)")) break;
  }
  assert.equal(output, `open (1)\n  ${lines[0]}  \ufffd[2JX\ufffd\ufffd31m\nclaimed (0)\ndone (0)\n`);
});
