#!/usr/bin/env node
/**
 * A to-do list that several terminals share. Each item is claimed by exactly one of them, however many try at the same moment.
 *
 * usage: node todo.js add TEXT...        adds an item
 *        node todo.js claim [all]        claims the oldest open item, or one after another until none is left
 *        node todo.js done ID            finishes an item
 *        node todo.js watch              shows the list, and every change of it
 *
 * $TODO_NAME says who claims (default: $USER). The board shows the list too: node ../board/gateway.js todo
 */
import { randomUUID } from "node:crypto";

import { connect } from "../../node.js";

const me = process.env.TODO_NAME ?? process.env.USER ?? "somebody";
const definition = {
  feed: "todo",
  kind: "collection",
  exclusive: true,
  bins: [
    { name: "open", filter: "!@.owner && !@.done" },
    { name: "claimed", filter: "!@.done" },
    { name: "done", sort: [{ by: "$.done", order: "descending" }] },
  ],
  retain: { count: 10_000 },
};

const commands = {
  async add(client, ...words) {
    const id = randomUUID().slice(0, 8);
    await client.push("todo", { id, text: words.join(" ") });
    console.log(id);
  },

  async claim(client, all) {
    for (;;) {
      const { nodes } = await client.call("query", { feed: "todo/open", path: "$[0]" });
      if (nodes.length === 0) return all ? 0 : 1;
      const { id, text } = nodes[0].value;
      try {
        // The daemon judges the condition when it makes the change. Of several that claim this item, one succeeds.
        await client.call("patch", { feed: "todo", id, patch: { owner: me }, where: "!@.owner && !@.done" });
        console.log(`${id} ${text}`);
        if (!all) return 0;
      } catch (error) {
        if (error.name !== "ConditionFailed" && error.name !== "UnknownIdentity") throw error;
      }
    }
  },

  async done(client, id) {
    await client.call("patch", { feed: "todo", id, patch: { done: new Date().toISOString() } });
  },

  async watch(client) {
    for await (const { mirror, kind } of client.watch("todo")) {
      if (kind === "selection") continue;
      if (process.stdout.isTTY) console.clear();
      for (const { name, rows } of mirror.sections) {
        console.log(`${name.slice("todo/".length)} (${rows.length})`);
        for (const { value } of rows) {
          const owner = value.owner ? `  — ${printable(value.owner)}` : "";
          console.log(`  ${printable(value.id)}  ${printable(value.text)}${owner}`);
        }
      }
    }
  },
};

/** A text of another program, without what could control the terminal. */
function printable(text) {
  return String(text).replace(/\p{C}/gu, "\ufffd");
}

const [name, ...words] = process.argv.slice(2);
const command = Object.hasOwn(commands, name ?? "") ? commands[name] : null;
if (command === null || (["add", "done"].includes(name) && words.length === 0)) {
  console.error("usage: node todo.js add TEXT... | claim [all] | done ID | watch");
  process.exit(2);
}
let client;
try {
  client = await connect({ client: "todo" });
  await client.call("define", definition);
  process.exitCode = await command(client, ...words);
} catch (error) {
  console.error(`todo.js: ${error.message}`);
  process.exitCode = 1;
} finally {
  client?.close();
}
