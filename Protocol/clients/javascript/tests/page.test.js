/** The page of the board in a real browser: many rows, changes without end, restarts, and texts that look like HTML. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { digest } from "../lib/digest.js";
import { Browser, noChromium } from "./chromium.js";
import { Gateway } from "./gateway.js";
import { Daemon, noDaemon, PATIENCE } from "./support.js";

const ROWS = 10_000;
const SECONDS = 5;
const EACH = 10;

/** The text of an element by its id in the page. */
const shown = (id) => document.getElementById(id).textContent;
/** The titles of the cards of a column from the top. */
const column = (section) =>
  [...document.querySelectorAll(".card")]
    .map((card) => [...card.style.transform.matchAll(/[\d.]+/g)].map(Number).concat(card.querySelector(".title").textContent))
    .filter(([x]) => x === 24 + section * 348)
    .sort((one, other) => one[1] - other[1])
    .map(([, , title]) => title);

async function page(t, define) {
  const daemon = await new Daemon().start();
  t.after(() => daemon.stop());
  const client = await daemon.client().ready();
  t.after(() => client.close());
  await define(client);
  const gateway = await new Gateway(daemon, "inbox").start();
  t.after(() => gateway.stop());
  const browser = await Browser.start();
  t.after(() => browser.stop());
  const failures = [];
  browser.on("Runtime.exceptionThrown", ({ exceptionDetails }) => failures.push(exceptionDetails.exception?.description));
  t.after(() => assert.deepEqual(failures, []));
  await browser.open(gateway.url);
  const call = (act, ...given) => browser.evaluate(`(${act})(...${JSON.stringify(given)})`);
  /** Waits until the page has what the daemon has, and compares the digests and what is seen. */
  const agrees = async () => {
    const { revision, digest } = await client.call("verify", { feed: "inbox" });
    await browser.until(
      `document.querySelector("#revision").textContent === "${revision}" && document.querySelector("#digest").textContent.length === 8`,
    );
    assert.equal(await call(shown, "digest"), digest);
    const { sections } = await client.call("describe", { feed: "inbox" });
    for (const section of sections.keys()) {
      const { elements } = await client.call("range", { feed: "inbox", section, from: 0, count: 9 });
      const titles = elements.map(({ value }) => value.text);
      await browser.until(`JSON.stringify((${column})(${section}).slice(0, 9)) === ${JSON.stringify(JSON.stringify(titles))}`);
    }
  };
  return { daemon, client, gateway, browser, call, agrees };
}

test("10,000 rows and 100 changes a second, through restarts of gateway and daemon", {
  skip: noDaemon || noChromium,
  timeout: PATIENCE,
}, async (t) => {
  const { daemon, client, gateway, browser, call, agrees } = await page(t, async (client) => {
    const sort = [{ by: "$.priority", order: "descending" }];
    const bins = [{ name: "urgent", filter: "@.priority >= 8", sort }, { name: "today", filter: "@.priority >= 4", sort }, {
      name: "later",
    }];
    await client.call("define", { feed: "inbox", kind: "collection", exclusive: true, bins });
    const elements = Array.from({ length: ROWS }, (_, id) => ({ id, priority: id % 11, text: `Element ${id}`, from: "test" }));
    await client.call("update", { feed: "inbox", elements });
  });
  await agrees();
  assert.equal(await call(shown, "count"), "10,000");

  await t.test("100 changes a second", async () => {
    let step = 0;
    let open = Promise.resolve();
    const start = performance.now();
    await new Promise((resolve) => {
      const timer = setInterval(() => {
        // Pushed, moved to another place or section, updated in place, deleted: by position at the top, and anywhere.
        for (; step < (performance.now() - start) / EACH; step += 1) {
          const id = step % 4 === 0 ? ROWS + step : (step * 7919) % ROWS;
          const change = step % 5 === 4
            ? ["delete", { ids: [id] }]
            : ["update", { element: { id, priority: (step * 3) % 11, text: `Changed ${step}` } }];
          open = client.call(change[0], { feed: "inbox", ...change[1] });
        }
        if (step < (SECONDS * 1000) / EACH) return;
        clearInterval(timer);
        resolve();
      }, EACH);
    });
    await open;
    await agrees();
    const rate = step / ((performance.now() - start) / 1000);
    t.diagnostic(`${step} changes, ${rate.toFixed(0)} a second until the page showed the last one`);
  });

  await t.test("cards move, come and leave by position", async () => {
    await browser.evaluate(`void (globalThis.seen = [], Element.prototype.animate = new Proxy(Element.prototype.animate, {
      apply(animate, card, given) {
        seen.push([card.querySelector(".title").textContent, ...given[0].map(({ opacity }) => opacity)].join(" "));
        return Reflect.apply(animate, card, given);
      },
    }))`);
    const card = `[...document.querySelectorAll(".card")].find((card) => card.textContent.includes("Mover"))`;
    await client.push("inbox", { id: "mover", priority: 10.5, text: "Mover" });
    await browser.until(`seen.includes("Mover 0 1")`);
    await agrees();
    await browser.evaluate(
      `void (globalThis.mover = ${card}, globalThis.before = mover.getBoundingClientRect().x, globalThis.key = mover.dataset.key,
      mover.addEventListener("transitionend", ({ propertyName }) => seen.push(propertyName)))`,
    );
    await client.push("inbox", { id: "mover", priority: 7.5, text: "Mover" });
    await browser.until(`seen.includes("transform") && mover.getBoundingClientRect().x === before + 348`);
    assert.equal(await browser.evaluate(`${card} === mover && mover.dataset.key === key`), true);
    await client.call("delete", { feed: "inbox", ids: ["mover"] });
    await browser.until(`seen.includes("Mover 1 0") && !mover.isConnected`);
    await agrees();
  });

  await t.test("only what is near the visible part has cards", async () => {
    const { elements } = await client.call("range", { feed: "inbox", section: 2, from: Math.floor(100_000 / 72) - 6, count: 5 });
    const titles = JSON.stringify(elements.map(({ value }) => value.text));
    await browser.evaluate(`document.querySelector("#board").scrollTop = 100_000`);
    await browser.until(`JSON.stringify((${column})(2).slice(0, 5)) === ${JSON.stringify(titles)}`);
    assert.ok((await browser.evaluate(`document.querySelectorAll(".card").length`)) < 120);
    await browser.evaluate(`document.querySelector("#board").scrollTop = 0`);
  });

  await t.test("the page goes on after restarts, with the same rows", async () => {
    await client.push("inbox", { id: "kept", priority: 12, text: "Kept" });
    await agrees();
    const card = `[...document.querySelectorAll(".card")].find((card) => card.textContent.includes("Kept"))`;
    await browser.evaluate(`void (globalThis.kept = ${card})`);
    await gateway.stop();
    await browser.until(`document.querySelector("#state").dataset.state !== "live"`);
    await client.push("inbox", { id: "while the gateway was down", priority: 13, text: "Gateway" });
    await gateway.start();
    await agrees();
    await daemon.end("SIGKILL");
    await daemon.start();
    await client.push("inbox", { id: "after the daemon was killed", priority: 14, text: "Daemon" });
    await agrees();
    await Promise.all([daemon.end(), gateway.stop()]);
    await daemon.start();
    await client.push("inbox", { id: "while both were down", priority: 15, text: "Both" });
    await gateway.start();
    await agrees();
    assert.equal(await browser.evaluate(`kept === ${card}`), true);
    assert.equal(await call(shown, "state"), "live");
  });

  await t.test("the form pushes", async () => {
    await browser.evaluate(
      `void (document.querySelector("#text").value = "<b>Typed</b>", document.querySelector("#priority").value = 10, document.querySelector("button").click())`,
    );
    await browser.until(`document.querySelector("#text").value === ""`);
    const { nodes } = await client.call("query", { feed: "inbox", path: "$[?@.text == '<b>Typed</b>'].priority" });
    assert.deepEqual(nodes.map(({ value }) => value), [10]);
    await agrees();
  });
});

test("texts that look like HTML are texts", { skip: noDaemon || noChromium, timeout: PATIENCE }, async (t) => {
  const hostile = `<img src=x onerror="globalThis.broken=1"><script>globalThis.broken=2</script>&lt;"'\u202e\ud83d\ude00`;
  const { client, browser, agrees } = await page(t, async (client) => {
    await client.call("define", { feed: "inbox", kind: "collection", section: "$.list" });
    await client.push("inbox", { id: 1, list: hostile, text: hostile, priority: 3, [hostile]: hostile });
    await client.push("inbox", { id: 2, list: hostile, text: `${hostile}2`, __proto__: null, toString: hostile });
  });
  await agrees();
  await client.push("inbox", { id: hostile, list: hostile, text: "", "\u0000": "\u001b[31m" }, {
    id: 4,
    list: "javascript:alert(1)",
    text: "4",
  });
  await agrees();
  assert.deepEqual(
    await browser.evaluate(
      `[globalThis.broken ?? null, document.querySelectorAll("main :not(div)").length, document.querySelectorAll("script").length]`,
    ),
    [null, 0, 1],
  );
  assert.equal(await browser.evaluate(`document.querySelector(".head .name").textContent`), hostile);
  assert.ok((await browser.evaluate(`document.querySelector(".facts").textContent`)).includes(`${hostile} ${hostile}`));
});

/** Runs in the page: the whole client over a transport that is handed in, whose other end answers like a daemon. */
async function inPage() {
  const { Client, FeedError, streamTransport } = await import("/feedd/feedd.js");
  const { frame } = await import("/feedd/lib/frames.js");
  const [there, back] = [new TransformStream(), new TransformStream()];
  const writer = back.writable.getWriter();
  const send = (message) => writer.write(frame(JSON.stringify({ jsonrpc: "2.0", ...message }))).catch(() => {});
  const results = {
    hello: { protocol: 1, epoch: "e", revision: 7, limits: {} },
    watch: { feed: "f", epoch: "e", revision: 7, resumed: false, sections: [{ name: "f", count: 1 }] },
  };
  (async () => {
    for (const reader = there.readable.getReader();;) {
      const { value, done } = await reader.read();
      if (done) return;
      const { id, method } = JSON.parse(new TextDecoder().decode(value.subarray(4)));
      await send({ id, result: results[method] });
      if (method !== "watch") continue;
      await send({
        method: "snapshot",
        params: { feed: "f", revision: 7, at: [0, 0], elements: [{ n: 12345678901234567890 }], last: true },
      });
      await send({
        method: "delta",
        params: { feed: "f", from: 7, revision: 8, deleted: [], added: [[0, 0]], updated: [], elements: ["é"] },
      });
    }
  })().catch(() => {});
  const client = new Client(() => streamTransport({ readable: back.readable, writable: there.writable }));
  const controller = new AbortController();
  const seen = [];
  try {
    for await (const { kind, mirror } of client.watch("f", { signal: controller.signal })) {
      seen.push(kind, mirror.digest());
      if (kind === "delta") controller.abort(new FeedError("CLOSED", "enough"));
    }
  } catch (error) {
    seen.push(error.message);
  }
  return seen;
}

test(
  "the client runs in a browser over a transport that is handed in",
  { skip: noDaemon || noChromium, timeout: PATIENCE },
  async (t) => {
    const { browser } = await page(t, (client) => client.call("define", { feed: "inbox", kind: "collection" }));
    const sum = (...texts) => digest([{ rows: texts.map((text) => ({ text })) }]);
    const element = JSON.stringify({ n: 12345678901234567890 });
    const expected = ["snapshot", sum(element), "delta", sum('"é"', element), "enough"];
    assert.deepEqual(await browser.evaluate(`(${inPage})()`), expected);
  },
);
