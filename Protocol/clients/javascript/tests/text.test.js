/** Elements stay text: reading them out of messages, writing them into messages, and numbers that a double cannot hold. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { decode, encode, JSONText, NumberText } from "../feedd.js";

const textsOf = (elements) => elements.map(({ text }) => text);

test("elements of a message are their source", () => {
  const source = [
    "1.10",
    '"a]\\"}"',
    '{"b":[1,{}],"a":"\\u0061"}',
    "[]",
    "{}",
    "-0",
    "1e400",
    "null",
    '"\\ud800"',
    '{"a":1,"a":2}',
    '"é😀"',
  ];
  const { params } = decode(`{"params":{"elements":[${source}],"types":[null]}}`);
  assert.deepEqual(textsOf(params.elements), source);
  assert.deepEqual(params.types, [null]);
});

test("elements are found at every level, and not within elements", () => {
  const text =
    '{"result":{"sections":[{"name":"a","elements":[{"elements":[1.0],"element":2.0}]}],"nodes":[3.0],"element":4.0,"\\u0065lement":5.0}}';
  const { result } = decode(text);
  assert.deepEqual(textsOf(result.sections[0].elements), ['{"elements":[1.0],"element":2.0}']);
  assert.deepEqual(textsOf(result.nodes), ["3.0"]);
  assert.equal(result.element.text, "5.0");
});

test("types of a slots feed may be named like elements", () => {
  const definition = { contents: { element: "a", elements: "b", nodes: "c", key: "d" }, pattern: ["element", "nodes"] };
  for (const result of [definition, { feeds: [definition] }]) {
    assert.deepEqual(decode(JSON.stringify({ id: 1, result }), { numbers: "text" }), { id: 1, result });
  }
});

test("white space is between values", () => {
  const { elements } = decode(' { "elements" : [ 1 ,\n{ "a" : [ 2 ] }\t] , "x" : [ ] } ');
  assert.deepEqual(elements.map(({ value }) => value), [1, { a: [2] }]);
  assert.deepEqual(decode(' { "elements" : [ ] } '), { elements: [] });
});

test("the elements of a long message do not keep it in memory, and are the same", () => {
  const elements = Array.from({ length: 300 }, (_, index) => `{"id":${index},"text":"ä€😀${"x".repeat(100)}"}`);
  assert.deepEqual(textsOf(decode(`{"elements":[${elements}]}`).elements), elements);
});

test("values are decoded as asked", () => {
  const source =
    '{"big":12345678901234567890,"small":1.10,"e":1e400,"n":[7,-0,-12345678901234567890],"s":"12345678901234567890"}';
  const value = (numbers) => decode(`{"element":${source}}`, { numbers }).element.value;
  assert.deepEqual(value("number"), {
    big: 12345678901234567890,
    small: 1.1,
    e: Infinity,
    n: [7, -0, -12345678901234567890],
    s: "12345678901234567890",
  });
  assert.deepEqual(value("bigint"), {
    big: 12345678901234567890n,
    small: 1.1,
    e: Infinity,
    n: [7, -0, -12345678901234567890n],
    s: "12345678901234567890",
  });
  const exact = value("text");
  assert.deepEqual([exact.big, exact.small, exact.n[0]].map(String), ["12345678901234567890", "1.10", "7"]);
  assert.ok(exact.big instanceof NumberText && exact.n[0] + 1 === 8);
  assert.equal(encode(exact), source);
  assert.equal(encode(value("bigint").n), "[7,0,-12345678901234567890]");
  assert.equal(new JSONText(source).decode("bigint").big, 12345678901234567890n);
});

test("every kind of value survives exact decoding", () => {
  for (
    const text of [
      '{"a":{"b":[[],{},[{}],null,true,false,"\\n\\u00e9"]},"__proto__":{"x":1},"":0}',
      "[]",
      "{}",
      "7",
      '"x"',
      "null",
      "[[[1],2],3]",
      '{"a":[{"b":1},{"c":[2]}],"d":4}',
    ]
  ) {
    for (const numbers of ["bigint", "text"]) {
      assert.equal(encode(new JSONText(text, numbers).value), encode(JSON.parse(text)), text);
    }
  }
  const value = new JSONText('{"__proto__":{"x":1}}', "bigint").value;
  assert.deepEqual(Object.keys(value), ["__proto__"]);
  assert.equal(value.x, undefined);
});

test("integers around elements are exact", () => {
  assert.deepEqual(decode('{"id":12345678901234567890,"revision":9007199254740991}'), {
    id: 12345678901234567890n,
    revision: 9007199254740991,
  });
});

test("depth needs no stack in elements, and is limited around them", () => {
  const deep = (levels) => "[".repeat(levels) + "]".repeat(levels);
  assert.equal(decode(`{"elements":[${deep(10_000)}]}`).elements[0].text, deep(10_000));
  for (const numbers of ["number", "bigint"]) {
    let levels = 0;
    for (let value = new JSONText(deep(10_000), numbers).value; value; value = value[0]) levels += 1;
    assert.equal(levels, 10_000);
  }
  for (
    const text of [
      `{"elements":[${deep(100_000)}]}`,
      `{"a":${deep(100)},"element":1}`,
      "[".repeat(1_000_000),
      '{"a":'.repeat(1_000_000),
    ]
  ) {
    assert.throws(() => decode(text), SyntaxError);
  }
});

test("what is not JSON is refused, in elements too", () => {
  const texts = [
    "",
    " ",
    "{",
    "[",
    "}",
    "[1,]",
    "[,1]",
    "[1 2]",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    "{a:1}",
    "{1:2}",
    '{"a" 1}',
    "01",
    "-",
    "1.",
    ".5",
    "1e",
    "1e+",
    "+1",
    "0x1",
    "NaN",
    "Infinity",
    "tru",
    "truex",
    "nul",
    '"',
    '"\\',
    '"\\x"',
    '"\\u12g4"',
    '"\\u12"',
    '"\n"',
    '"\u0000"',
    "'a'",
    "1 1",
    "[1}",
    '{"a":1]',
    "\uFEFF1",
    "\u00a01",
    "undefined",
  ];
  for (const text of texts) {
    assert.throws(() => decode(text), SyntaxError, text);
    assert.throws(() => decode(`{"element":${text}}`), SyntaxError, text);
    assert.throws(() => new JSONText(text), SyntaxError, text);
    assert.throws(() => JSON.parse(text), SyntaxError, text);
  }
  for (const text of [7, null, undefined, {}]) assert.throws(() => new JSONText(text), TypeError);
  for (const text of ['"\ud83d"', '"\ude00"', '{"\ude00\ud83d":1}']) assert.throws(() => new JSONText(text), SyntaxError);
  assert.equal(new JSONText('["\u{1f600}","\\ud83d"]').text, '["\u{1f600}","\\ud83d"]');
  assert.throws(() => new NumberText("1 "), SyntaxError);
  assert.throws(() => new JSONText("1").decode("decimal"), TypeError);
});

test("encoding writes texts digit by digit, and the rest as JSON.stringify", () => {
  assert.equal(encode({ elements: [new JSONText(' {"v":1.0} '), { v: 1 }] }), '{"elements":[{"v":1.0},{"v":1}]}');
  assert.equal(encode([10n ** 30n, new NumberText("1.10")]), `[1${"0".repeat(30)},1.10]`);
  for (
    const value of [null, true, "é\n\u2028\ud800", 1e21, -0, 0.1, [], {}, { a: undefined, b: [1] }, new Date(0), {
      toJSON: () => [1],
    }, [[["x"]]], new String("a"), new Number(-1.5), new Boolean(false)]
  ) {
    assert.equal(encode(value), JSON.stringify(value));
    assert.equal(encode([value, 1n]), `[${JSON.stringify(value)},1]`);
  }
  assert.equal(encode(Object(10n ** 20n)), `1${"0".repeat(20)}`);
});

test("what JSON has no text for is refused", () => {
  const cycle = {};
  cycle.cycle = cycle;
  for (const value of [NaN, Infinity, undefined, () => {}, Symbol("x"), [undefined], { a: NaN }, cycle, new Number(NaN)]) {
    assert.throws(() => encode(value), TypeError);
  }
});
