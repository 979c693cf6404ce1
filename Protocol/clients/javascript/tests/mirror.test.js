/** The mirror, fed with the vectors of changes, compositions, snapshots and digests, and with messages that do not follow. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Connection, Counts, decode, JSONText, Mirror, Rows } from "../feedd.js";
import { cases, inBytes, scripted } from "./support.js";

const HEAD = { feed: "f", epoch: "e", revision: 7, resumed: false };
const raw = (node) => new JSONText(node.text);
const listed = (sections) =>
  sections.items.map((section) => [section.get("name").value, section.get("elements").items.map(({ text }) => text)]);
const shown = (mirror) => mirror.sections.map(({ name, rows }) => [name, Array.from(rows, ({ text }) => text)]);

/** Passes messages through a connection, whole or byte by byte, and returns what it makes of them. */
async function received(messages, cut) {
  const connect = scripted((_, peer) => {
    peer.send({ jsonrpc: "2.0", id: 1, result: {} });
    for (const message of messages) peer.send(message);
  });
  const connection = new Connection(await (cut ? inBytes(connect) : connect)());
  await connection.call("ping");
  const notifications = [];
  for (const _ of messages) notifications.push(await connection.next());
  connection.close();
  return notifications;
}

const message = (method, params) => `{"jsonrpc":"2.0","method":"${method}","params":${params}}`;

/** The message of a snapshot of one part. */
function snapshot(sections) {
  const first = sections.items.findIndex((section) => section.get("elements").items.length > 0);
  const elements = sections.items.flatMap((section) => section.get("elements").items.map(({ text }) => text));
  return message("snapshot", `{"revision":7,"at":[${Math.max(first, 0)},0],"elements":[${elements}],"last":true}`);
}

function delta(step, from, to) {
  const change = step.get("change").text.slice(1, -1);
  return message("delta", `{"from":${from},"revision":${to},${change},"elements":${step.get("elements").text}}`);
}

const head = (sections) => ({
  ...HEAD,
  sections: sections.items.map((section) => ({ name: section.get("name").value, count: section.get("elements").items.length })),
});

/** A mirror to which the messages were applied. */
async function mirrored(sections, messages, cut) {
  const mirror = new Mirror(head(sections));
  for (const notification of await received([snapshot(sections), ...messages], cut)) mirror.apply(notification);
  return mirror;
}

for (const [name, cut] of [["whole", false], ["byte by byte", true]]) {
  test(`vectors of change, ${name}`, async () => {
    for (const one of cases("change")) {
      const mirror = await mirrored(one.get("before"), [delta(one, 7, 8)], cut);
      assert.deepEqual(shown(mirror), listed(one.get("after")), one.get("name").value);
      assert.equal(mirror.revision, 8);
    }
  });

  test(`vectors of compose, ${name}`, async () => {
    for (const one of cases("compose")) {
      const before = one.get("before");
      const composed = await mirrored(before, [delta(one.get("composed"), 7, 9)], cut);
      const stepwise = await mirrored(before, [delta(one.get("first"), 7, 8), delta(one.get("second"), 8, 9)], cut);
      assert.deepEqual(shown(composed), listed(one.get("after")), one.get("name").value);
      assert.deepEqual(shown(stepwise), listed(one.get("after")), one.get("name").value);
    }
  });

  test(`vectors of snapshots, ${name}`, async () => {
    for (const one of cases("snapshots")) {
      const parts = one.get("parts").items;
      const mirror = new Mirror({ ...HEAD, revision: parts[0].get("revision").value, sections: one.get("sections").value });
      const notifications = await received(parts.map(({ text }) => message("snapshot", text)), cut);
      for (const [place, notification] of notifications.entries()) {
        if (one.get("fault")?.value === place) assert.throws(() => mirror.apply(notification), { code: "GAP" });
        else assert.equal(mirror.apply(notification) !== null, notification.params.last, one.get("name").value);
      }
      if (!one.get("after")) continue;
      assert.deepEqual(shown(mirror), listed(one.get("after")), one.get("name").value);
      const types = one.get("after").items.map((section) => section.get("types").value);
      assert.deepEqual(mirror.sections.map(({ rows }) => Array.from(rows, ({ type }) => type)), types);
    }
  });

  test(`vectors of digest, ${name}`, async () => {
    for (const one of cases("digest")) {
      const mirror = await mirrored(one.get("sections"), [], cut);
      assert.equal(mirror.digest(), one.get("digest").value, one.get("name").value);
    }
  });
}

// What does not follow

const LIST = { ...HEAD, sections: [{ name: "one", count: 2 }, { name: "two", count: 1 }] };
const texts = (...values) => values.map((value) => new JSONText(JSON.stringify(value)));
const PART = { revision: 7, at: [0, 0], elements: texts("a", "b", "c"), last: true };
const DELTA = { from: 7, revision: 8, deleted: [], added: [], updated: [], elements: [] };

function whole() {
  const mirror = new Mirror(LIST);
  mirror.apply({ method: "snapshot", params: PART });
  return mirror;
}

test("deltas that do not follow, or are malformed, are gaps", () => {
  const x = texts("x");
  for (
    const change of [
      { from: 6 },
      { from: 8 },
      { revision: 7 },
      { revision: 6 },
      { revision: null },
      { revision: 2 ** 53 },
      { revision: 8n },
      { deleted: [[0, 2]] },
      { deleted: [[2, 0]] },
      { deleted: [[0, -1]] },
      { deleted: [[-1, 0]] },
      { deleted: [[0, 0], [0, 0]] },
      { deleted: [[0, 0.5]] },
      { deleted: [[0, true]] },
      { deleted: [7] },
      { deleted: null },
      { deleted: { length: 1 } },
      { added: [[0, 4]], elements: x },
      { added: [[2, 0]], elements: x },
      { added: [[0, 1], [0, 0]], elements: [...x, ...x] },
      { added: [[0, 0]] },
      { added: [[0, 0]], elements: ["x"] },
      { updated: [[1, 1]], elements: x },
      { updated: [[0, 0]], elements: [...x, ...x] },
      { updated: [[0, 0]], elements: x, types: ["a", "b"] },
      { updated: [[0, 0]], elements: x, types: [7] },
      { updated: [[0, 0]], elements: { a: 1 } },
      { deleted: [[0, 0]], moves: [[0, 0]] },
      { deleted: [[0, 0]], added: [[0, 0]], elements: x, moves: [[1, 0]] },
      { deleted: [[0, 0], [0, 1]], added: [[0, 0]], elements: x, moves: [[0, 0], [1, 0]] },
      { moves: 7 },
      { sections: { deleted: [2], added: [] } },
      { sections: { deleted: [-1], added: [] } },
      { sections: { deleted: [0, 0], added: [] } },
      { sections: { deleted: [] } },
      { sections: { deleted: [], added: [{ at: 3, name: "x" }] } },
      { sections: { deleted: [], added: [{ at: -1, name: "x" }] } },
      { sections: { deleted: [], added: [{ at: 0 }] } },
      { sections: { deleted: [], added: [null] } },
      { sections: 7 },
      { sections: null },
      { feed: "g" },
    ]
  ) {
    const mirror = whole();
    assert.throws(
      () => mirror.apply({ method: "delta", params: { ...DELTA, ...change } }),
      { name: "Gap", code: "GAP" },
      JSON.stringify(change, (_, v) => (typeof v === "bigint" ? `${v}` : v)),
    );
  }
  assert.throws(() => whole().apply({ method: "delta", params: null }), { code: "GAP" });
});

test("a copy that failed in the middle of a delta cannot be resumed", () => {
  const mirror = whole();
  const params = { ...DELTA, deleted: [[0, 0]], updated: [[0, 9]], elements: texts("x") };
  assert.throws(() => mirror.apply({ method: "delta", params }), { code: "GAP" });
  assert.deepEqual([mirror.since, mirror.isWhole], [null, false]);
  assert.throws(() => mirror.apply({ method: "delta", params: DELTA }), { code: "GAP" });
});

test("results of watch that are none are gaps", () => {
  for (
    const change of [
      { sections: [{ name: "s", count: -1 }] },
      { sections: [{ name: "s" }] },
      { sections: [{ name: 7, count: 1 }] },
      { sections: [null] },
      { sections: 7 },
      { revision: "x" },
      { epoch: 7 },
      { feed: null },
    ]
  ) {
    assert.throws(() => new Mirror({ ...LIST, ...change }), { code: "GAP" });
    assert.throws(() => new Counts({ ...LIST, ...change }), { code: "GAP" });
  }
  for (const result of [null, undefined, 7, {}]) assert.throws(() => new Mirror(result), { code: "GAP" });
  assert.throws(() => new Mirror({ ...LIST, resumed: 1 }), { code: "GAP" });
  assert.throws(() => new Mirror({ ...LIST, resumed: true }), { code: "GAP" });
});

test("parts that do not follow are gaps", () => {
  const [first] = texts("a");
  for (
    const change of [
      { revision: 8 },
      { revision: null },
      { at: [0] },
      { at: [-1, 0] },
      { at: [0, 1] },
      { at: [1, 0] },
      { at: null },
      { elements: 7 },
      { elements: [1, 2, 3] },
      { elements: [first] },
      { elements: [...PART.elements, first] },
      { types: ["a", "b"] },
      { last: 1 },
      { reset: true },
      { reset: true, sections: [{ name: "s", count: 1 }] },
    ]
  ) {
    const mirror = new Mirror(LIST);
    assert.throws(
      () => mirror.apply({ method: "snapshot", params: { ...PART, ...change } }),
      { code: "GAP" },
      JSON.stringify(change),
    );
  }
  assert.throws(() => whole().apply({ method: "snapshot", params: PART }), { code: "GAP" });
  assert.throws(() => new Mirror(LIST).apply({ method: "delta", params: DELTA }), { code: "GAP" });
});

test("bookmarks and selections of another revision are gaps", () => {
  for (
    const params of [{}, { epoch: "e", revision: 6, current: 9 }, { epoch: "e", revision: 7, current: -1 }, {
      epoch: 1,
      revision: 7,
      current: 9,
    }]
  ) {
    assert.throws(() => whole().apply({ method: "bookmark", params }), { code: "GAP" });
  }
  for (const params of [{ revision: 8, selected: [] }, { revision: 7, selected: [[1, 0], [0, 0]] }, { revision: 7 }]) {
    assert.throws(() => whole().apply({ method: "selection", params }), { code: "GAP" });
  }
});

test("a selection of a copy that was resumed from a bookmark is of the feed's last change", () => {
  const mirror = whole();
  mirror.apply({ method: "bookmark", params: { epoch: "e", revision: 7, current: 9 } });
  mirror.restart({ ...LIST, revision: 9, resumed: true });
  mirror.apply({ method: "selection", params: { revision: 7, selected: [[0, 1]] } });
  assert.deepEqual([mirror.selected, mirror.revision], [[[0, 1]], 9]);
});

test("deltas of few and of many sections", () => {
  for (const [count, step] of [[20, 3], [100, 3], [100, 1]]) {
    const names = Array.from({ length: count }, (_, place) => `s${place}`);
    const sections = names.map((name) => ({ name, count: 1 }));
    const mirror = new Mirror({ ...LIST, sections });
    mirror.apply({ method: "snapshot", params: { ...PART, elements: texts(...names) } });
    const counts = new Counts({ ...LIST, sections });
    const deleted = names.map((_, place) => place).filter((place) => place % step === 0);
    const added = deleted.map((_, place) => ({ at: step * place, name: `new${place}` }));
    const expected = names.map((name) => [name, [JSON.stringify(name)]]);
    for (const place of [...deleted].reverse()) expected.splice(place, 1);
    for (const { at, name } of added) expected.splice(at, 0, [name, []]);
    const change = { from: 7, revision: 8, sections: { deleted, added } };
    const { removed } = mirror.apply({ method: "delta", params: { ...DELTA, ...change } });
    counts.apply({ method: "delta", params: { ...change, counts: expected.map(([, rows]) => rows.length) } });
    assert.deepEqual(shown(mirror), expected);
    assert.deepEqual(counts.names, expected.map(([name]) => name));
    assert.deepEqual(removed.map(({ value }) => value), deleted.map((place) => names[place]));
    for (
      const wrong of [
        { deleted: [...deleted, count], added: [] },
        { deleted: [], added: [...added, { at: count + added.length + 1, name: "x" }] },
      ]
    ) {
      const beyond = { ...DELTA, from: 8, revision: 9, sections: wrong };
      assert.throws(() => Mirror.load(mirror.save()).apply({ method: "delta", params: beyond }), { code: "GAP" });
    }
  }
});

test("a watch begins with nothing selected, and a reset keeps the selection", () => {
  const selected = [[0, 1]];
  const selecting = () => {
    const mirror = whole();
    mirror.apply({ method: "selection", params: { revision: 7, selected } });
    return mirror;
  };
  const reset = (mirror, last = true) => {
    const revision = 9;
    const params = { ...PART, revision, reset: true, sections: LIST.sections, last };
    if (!last) params.elements = params.elements.slice(0, 1);
    return mirror.apply({ method: "snapshot", params });
  };

  const resumed = selecting();
  resumed.restart({ ...LIST, resumed: true });
  assert.deepEqual(resumed.selected, []);

  const anew = selecting();
  anew.restart(LIST);
  assert.deepEqual(anew.selected, selected, "the copy stays what it was");
  anew.apply({ method: "snapshot", params: PART });
  assert.deepEqual(anew.selected, []);

  const kept = selecting();
  assert.equal(reset(kept, false), null);
  assert.equal(reset(kept).kind, "snapshot");
  assert.deepEqual([kept.revision, kept.selected], [9, selected]);

  const both = selecting();
  both.restart(LIST);
  reset(both);
  assert.deepEqual([both.revision, both.selected], [9, []]);
});

test("counts that do not follow are gaps, and change nothing", () => {
  for (
    const change of [
      { counts: [-1, 1] },
      { counts: [1] },
      { counts: null },
      { counts: [2, 1], from: 6 },
      { counts: [1], sections: { deleted: [-1], added: [] } },
      { counts: [1, 1, 1], sections: { deleted: [], added: [{ at: 3, name: "x" }] } },
      { counts: [2, 1], revision: null },
    ]
  ) {
    const counts = new Counts(LIST);
    assert.throws(() => counts.apply({ method: "delta", params: { from: 7, revision: 8, ...change } }), { code: "GAP" });
    assert.deepEqual([counts.names, counts.counts, counts.revision], [["one", "two"], [2, 1], 7]);
  }
});

// Courses

test("the copy stays whole while a new snapshot arrives", () => {
  const mirror = whole();
  mirror.restart({ ...LIST, epoch: "other", revision: 3 });
  const [first, second] = texts("x", "y");
  assert.equal(mirror.apply({ method: "snapshot", params: { revision: 3, at: [0, 0], elements: [first], last: false } }), null);
  assert.deepEqual(mirror.values(), [["a", "b"], ["c"]]);
  assert.deepEqual(mirror.since, { epoch: "e", revision: 7 });
  const change = mirror.apply({ method: "snapshot", params: { revision: 3, at: [0, 1], elements: [first, second], last: true } });
  assert.equal(change.kind, "snapshot");
  assert.deepEqual(mirror.values(), [["x", "x"], ["y"]]);
  assert.deepEqual(mirror.since, { epoch: "other", revision: 3 });
});

test("a snapshot that was cut off by a lost connection leaves the copy that it had", () => {
  const mirror = whole();
  mirror.restart({ ...LIST, revision: 9 });
  mirror.apply({ method: "snapshot", params: { revision: 9, at: [0, 0], elements: texts("x"), last: false } });
  mirror.restart({ ...LIST, revision: 10, resumed: true });
  mirror.apply({ method: "delta", params: { ...DELTA, revision: 10, deleted: [[0, 0]] } });
  assert.deepEqual([mirror.values(), mirror.revision], [[["b"], ["c"]], 10]);
});

test("a reset replaces everything", () => {
  const mirror = whole();
  const params = { revision: 20, at: [0, 0], elements: texts(1), last: true, reset: true, sections: [{ name: "new", count: 1 }] };
  mirror.apply({ method: "snapshot", params });
  assert.deepEqual([shown(mirror), mirror.since], [[["new", ["1"]]], { epoch: "e", revision: 20 }]);
});

test("a bookmark moves the position to resume from", () => {
  const mirror = whole();
  assert.equal(mirror.apply({ method: "bookmark", params: { epoch: "e", revision: 7, current: 12 } }), null);
  assert.deepEqual([mirror.since, mirror.revision], [{ epoch: "e", revision: 12 }, 7]);
  mirror.restart({ ...LIST, revision: 15, resumed: true });
  mirror.apply({ method: "delta", params: { ...DELTA, from: 12, revision: 15, deleted: [[0, 0]] } });
  assert.deepEqual(mirror.counts(), [1, 1]);
  assert.throws(() => mirror.restart({ ...LIST, epoch: "x", resumed: true }), { code: "GAP" });
});

test("rows keep their keys when they move and are updated", () => {
  const mirror = whole();
  const [a, b, c] = [mirror.at(0, 0), mirror.at(0, 1), mirror.at(1, 0)];
  const keys = [a.key, b.key, c.key];
  const [moved, updated] = texts("A", "C");
  const params = {
    ...DELTA,
    deleted: [[0, 0], [0, 1]],
    added: [[1, 0]],
    updated: [[1, 1]],
    moves: [[0, 0]],
    elements: [moved, updated],
  };
  const change = mirror.apply({ method: "delta", params });
  assert.deepEqual([mirror.at(1, 0), mirror.at(1, 1)], [a, c]);
  assert.deepEqual([a.key, b.key, c.key], keys);
  assert.deepEqual([a.value, c.value], ["A", "C"]);
  assert.deepEqual([change.rows, change.removed], [[a, c], [b]]);
});

test("identities of the rows that left fit them", () => {
  const sections = { deleted: [1], added: [] };
  const params = { ...DELTA, deleted: [[0, 1]], sections, deletedIDs: ["b"], deletedSectionIDs: [[7]] };
  const change = whole().apply({ method: "delta", params });
  assert.deepEqual([change.deletedIDs, change.deletedSectionIDs], [["b"], [[7]]]);
  for (const known of [{ deletedIDs: null }, {}]) {
    const unknown = whole().apply({ method: "delta", params: { ...DELTA, deleted: [[0, 1]], ...known } });
    assert.deepEqual([unknown.deletedIDs, unknown.deletedSectionIDs], [null, null]);
  }
  for (const wrong of [{ deletedIDs: [] }, { deletedIDs: 7 }, { deletedSectionIDs: [] }, { deletedSectionIDs: [7] }]) {
    assert.throws(() => whole().apply({ method: "delta", params: { ...params, ...wrong } }), { code: "GAP" });
  }
});

test("a copy that was saved is the same copy", () => {
  const delta = { ...DELTA, added: [[2, 0]], elements: [new JSONText("1.0")], types: ["t"] };
  const sections = { deleted: [], added: [{ at: 0, name: "empty" }, { at: 2, name: "f/2", key: 2 }] };
  const mirror = whole();
  mirror.apply({ method: "delta", params: { ...delta, sections } });
  mirror.apply({ method: "bookmark", params: { epoch: "e", revision: 8, current: 30 } });
  const loaded = Mirror.load(mirror.save());
  assert.deepEqual(shown(loaded), [["empty", []], ["one", ['"a"', '"b"']], ["f/2", ["1.0"]], ["two", ['"c"']]]);
  assert.deepEqual([loaded.since, loaded.revision, loaded.digest()], [{ epoch: "e", revision: 30 }, 30, mirror.digest()]);
  assert.deepEqual([loaded.at(2, 0).type, loaded.sections[2].key, loaded.save()], ["t", 2, mirror.save()]);
  for (const key of [Infinity, -Infinity]) {
    mirror.sections[2].key = key;
    assert.equal(Mirror.load(mirror.save()).sections[2].key, key);
  }
  const empty = Mirror.load('{"feed":"f","epoch":"e","revision":1,"sections":[],"elements":[],"types":[]}');
  assert.deepEqual([empty.isWhole, empty.save()], [
    true,
    '{"feed":"f","epoch":"e","revision":1,"sections":[],"elements":[],"types":[]}',
  ]);
  assert.throws(() => new Mirror(LIST).save(), { code: "GAP" });
  assert.throws(() => Mirror.load("{"), SyntaxError);
  for (
    const text of [
      "7",
      "null",
      "{}",
      '{"feed":"f","epoch":"e","revision":1,"sections":[]}',
      mirror.save().replace("1.0", "1.0,2"),
    ]
  ) {
    assert.throws(() => Mirror.load(text), { code: "GAP" }, text);
  }
});

test("sections keep their keys", () => {
  const result =
    '{"feed":"f","epoch":"e","revision":7,"resumed":false,"sections":[{"name":"f/1","key":1,"count":1},{"name":"f","count":0}]}';
  const mirror = new Mirror(decode(result, { numbers: "text" }));
  mirror.apply({ method: "snapshot", params: { ...PART, elements: texts("a") } });
  const delta =
    '{"from":7,"revision":8,"deleted":[],"added":[],"updated":[],"elements":[],"sections":{"deleted":[1],"added":[{"at":0,"name":"f/0.1","key":0.10}]}}';
  mirror.apply({ method: "delta", params: decode(delta, { numbers: "text" }) });
  assert.deepEqual(mirror.sections.map(({ name, key }) => [name, String(key)]), [["f/0.1", "0.10"], ["f/1", "1"]]);
});

test("a list of rows does what an array does", () => {
  const rows = new Rows();
  const array = [];
  let random = 1;
  const next = (limit) => (random = (random * 48271) % 0x7fffffff) % limit;
  for (let step = 0; step < 20_000; step += 1) {
    if (array.length > 0 && next(step < 8000 ? 4 : 7) < (step < 8000 ? 1 : 4)) {
      const place = next(array.length);
      assert.equal(rows.remove(place), array.splice(place, 1)[0]);
    } else {
      const place = next(3) === 0 ? array.length : next(array.length + 1);
      rows.insert(place, step);
      array.splice(place, 0, step);
    }
    if (array.length > 0) assert.equal(rows.at(step % array.length), array[step % array.length]);
  }
  assert.deepEqual([...rows], array);
  for (const [start, end] of [[0, 10], [array.length - 3, array.length + 9], [5, 5], [9, 2], [250, 700]]) {
    assert.deepEqual(rows.slice(start, end), array.slice(start, end));
  }
  assert.deepEqual([rows.length, rows.at(-1), rows.at(array.length), rows.at(0.5)], [
    array.length,
    undefined,
    undefined,
    undefined,
  ]);
});
