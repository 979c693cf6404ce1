/** The declarations name what the modules export, and compile where a compiler is installed. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const source = (name) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
const declared = (name) => [...source(name).matchAll(/^export (?:class|function|const) (\w+)/gm)].map(([, word]) => word);
const compiler = process.env.TSC ?? "tsc";
const hasCompiler = spawnSync(compiler, ["--version"]).status === 0;

test("what is declared is exported, and the other way round", async () => {
  const core = Object.keys(await import("../feedd.js"));
  const node = Object.keys(await import("../node.js"));
  assert.deepEqual(declared("feedd.d.ts").sort(), core.sort());
  assert.deepEqual([...declared("feedd.d.ts"), ...declared("node.d.ts")].sort(), node.sort());
});

test("the methods that have types are those of the protocol", () => {
  const methods = new Set([...source("../../README.md").matchAll(/^\| \[(\w+)\]\(methods\//gm)].map(([, method]) => method));
  const [, body] = source("feedd.d.ts").match(/export interface Methods \{(.*?)^\}/ms);
  const typed = [...body.matchAll(/^ {2}(\w+):/gm)].map(([, method]) => method);
  assert.ok(typed.length > 30);
  assert.deepEqual(typed.filter((method) => !methods.has(method)), []);
});

test("the interfaces have the members of the specification", () => {
  const { methods, components } = JSON.parse(source("../../openrpc.json"));
  const { schemas } = components;
  const result = (name) => methods.find((method) => method.name === name).result.schema;
  const specified = {
    Condition: schemas.condition,
    SectionCount: schemas.sectionCounts.items,
    ChangeLists: schemas.changeMembers,
    Hello: result("hello"),
    Selected: result("selected"),
    WatchResult: result("watch"),
  };
  for (const [name, { properties }] of Object.entries(specified)) {
    const [, body] = source("feedd.d.ts").match(new RegExp(`^export interface ${name} \\{(.*?)^\\}`, "ms"));
    const members = [...body.matchAll(/^ {2}(\w+)\??:/gm)].map(([, member]) => member);
    assert.deepEqual(members.sort(), Object.keys(properties).sort(), name);
  }
});

test("a program compiles with strict types", { skip: hasCompiler ? false : "tsc is not installed" }, () => {
  const options = [
    "--noEmit",
    "--strict",
    "--exactOptionalPropertyTypes",
    "--noUncheckedIndexedAccess",
    "--target",
    "es2022",
    "--module",
    "es2022",
    "--moduleResolution",
    "node",
    "--lib",
    "es2022,dom",
  ];
  const { status, stdout } = spawnSync(compiler, [...options, fileURLToPath(new URL("types.ts", import.meta.url))], {
    encoding: "utf8",
  });
  assert.equal(status, 0, stdout);
});
