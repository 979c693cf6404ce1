/** The gateway of the board: who may use it, what it sends, and where it goes on. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { statSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { decode } from "../feedd.js";
import { Gateway } from "./gateway.js";
import { daemonFor, noDaemon, PATIENCE } from "./support.js";

const skip = { skip: noDaemon, timeout: PATIENCE };

async function board(t, feed = "inbox") {
  const daemon = await daemonFor(t);
  const client = await daemon.client().ready();
  t.after(() => client.close());
  await client.call("define", { feed: "inbox", kind: "collection" });
  const gateway = await new Gateway(daemon, feed).start();
  t.after(() => gateway.stop());
  return { daemon, client, gateway };
}

test("only pages of its own that have the token may use it", skip, async (t) => {
  const { client, gateway, daemon } = await board(t);
  const { port, token } = gateway;
  const host = `127.0.0.1:${port}`;
  const authorization = `Bearer ${token}`;
  const body = '{"id":1}';
  for (
    const [expected, method, path, headers] of [
      [200, "GET", "/", {}],
      [200, "GET", "/page.js", { Host: `localhost:${port}` }],
      [200, "GET", "/feedd/lib/mirror.js", {}],
      [404, "GET", `/feedd/lib/../node.js?token=${token}`, {}],
      [404, "GET", `/gateway.js?token=${token}`, {}],
      [404, "POST", "/", { Authorization: authorization }],
      [404, "DELETE", "/push", { Authorization: authorization }],
      [403, "GET", "/", { Host: `attacker.example:${port}` }],
      [403, "GET", "/", { Host: "127.0.0.1" }],
      [403, "GET", "/", { Origin: "http://attacker.example" }],
      [403, "GET", "/", { Origin: "null" }],
      [403, "GET", "/", { Origin: `http://127.0.0.1:${port + 1}` }],
      [403, "GET", "/events", {}],
      [403, "GET", "/events?token=", {}],
      [403, "GET", `/events?token=${token.slice(1)}`, {}],
      [403, "GET", `/events?token=${token}`, { Host: "attacker.example" }],
      [403, "POST", "/push", {}],
      [403, "POST", "/push", { Authorization: `Bearer ${token}x` }],
      [403, "POST", "/push", { Authorization: authorization, Origin: "https://attacker.example" }],
      [403, "POST", "/push", { Authorization: authorization, Host: "attacker.example" }],
      [200, "POST", "/push", { Authorization: authorization, Origin: `http://${host}` }],
    ]
  ) {
    const [status] = await gateway.get(method, path, { headers, body: method === "POST" ? body : undefined });
    assert.equal(status, expected, `${method} ${path} ${JSON.stringify(headers)}`);
  }
  assert.equal((await client.call("describe", { feed: "inbox" })).count, 1);
  const [, , headers] = await gateway.get("GET", "/");
  assert.match(headers["content-security-policy"], /default-src 'none'; script-src 'self'/);
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.equal(statSync(join(daemon.folder, "token")).mode & 0o777, 0o600);
  for (const { address, internal } of Object.values(networkInterfaces()).flat()) {
    if (!internal && !address.includes(":")) {
      await assert.rejects(gateway.get("GET", "/", { host: address }), { code: "ECONNREFUSED" });
    }
  }
});

test("pushes keep the text, and bad ones say why", skip, async (t) => {
  const { client, gateway } = await board(t);
  const text = '{"id":1.0,"text":"</script><b>é\\u0000"}';
  assert.equal((await gateway.push(text))[0], 200);
  assert.equal((await client.call("get", { feed: "inbox", id: 1 })).element.text, text);
  for (
    const [status, body] of [
      [400, ""],
      [400, "{"],
      [400, Buffer.from([0xff])],
      [400, '{"id":1} {"id":2}'],
      [400, '{"no":"identity"}'],
      [400, "[".repeat(60_000)],
      [413, `"${"x".repeat(1 << 20)}"`],
    ]
  ) {
    const [found, answer] = await gateway.push(body).catch((
      error,
    ) => [status === 413 && error.code === "EPIPE" ? 413 : error, '{"error":"closed"}']);
    assert.equal(found, status, String(body).slice(0, 20));
    assert.ok(JSON.parse(answer).error.length > 0);
  }
  assert.equal((await client.call("describe", { feed: "inbox" })).count, 1);
});

test("events go on from the last one, also after a restart of the gateway", skip, async (t) => {
  const { client, gateway } = await board(t);
  await client.push("inbox", { id: 1 });
  let position;
  const events = gateway.events();
  const next = async (from) => {
    const { id, data } = (await from.next()).value;
    position = id ?? position;
    return decode(data);
  };
  assert.equal((await next(events)).method, "watch");
  assert.equal(position, undefined);
  assert.deepEqual((await next(events)).params.elements.map(({ text }) => text), ['{"id":1}']);
  await client.push("inbox", { id: 2 });
  assert.equal((await next(events)).params.revision, 3);
  assert.match(position, /^\w+:3$/);
  await gateway.stop();
  await events.return().catch(() => {});
  await client.push("inbox", { id: 3 });
  await client.push("inbox", { id: 4 });
  await gateway.start();
  const again = gateway.events(position);
  assert.deepEqual((({ method, params: { resumed } }) => [method, resumed])(await next(again)), ["watch", true]);
  const { method, params } = await next(again);
  assert.deepEqual([method, params.from, params.revision, params.elements.map(({ value }) => value.id)], ["delta", 3, 5, [3, 4]]);
  for (const unusable of ["another:3", "x", ":", "a:b:9", `${position.split(":")[0]}:99999999999999999999`]) {
    const fresh = gateway.events(unusable);
    const { value } = await fresh.next();
    assert.ok(value.event === "failure" || decode(value.data).params.resumed === false, unusable);
    await fresh.return();
  }
});

test("a feed that is not defined is said, and its page is asked to come again", skip, async (t) => {
  const { gateway } = await board(t, "nothing");
  const { value } = await gateway.events().next();
  assert.equal(value.event, "failure");
  assert.match(value.data, /unknown feed/);
});

test("a page that does not read gets one delta for many commits", skip, async (t) => {
  const { client, gateway } = await board(t);
  const response = await gateway.send("GET", `/events?token=${gateway.token}`);
  t.after(() => response.destroy());
  response.setEncoding("utf8");
  await once(response, "readable");
  const text = "x".repeat(20_000);
  for (let round = 0; round < 150; round += 1) {
    await client.pushAll("inbox", Array.from({ length: 10 }, (_, id) => ({ id, round, text })));
  }
  const { revision } = await client.call("sync");
  let rest = "";
  let count = 0;
  for await (const chunk of response) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    count += lines.filter((line) => line.startsWith("data: ")).length;
    if (lines.some((line) => line.startsWith("id: ") && line.endsWith(`:${revision}`))) break;
  }
  assert.ok(count < 1000, `${count} events for 1500 commits`);
});
