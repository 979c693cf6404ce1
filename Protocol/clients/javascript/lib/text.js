/**
 * JSON as text. Elements keep the text that another program pushed, digit for digit, until somebody asks for their value; and
 * numbers that a double cannot hold can be had as `bigint` or as text.
 */

/** Levels of nested arrays and objects in an element: more than any daemon allows. */
const MAX_DEPTH = 20_000;
/** Levels of a message around its elements. */
const MAX_LEVELS = 64;

/** What a message has that needs more than `JSON.parse`: elements, escapes in names, integers of many digits. */
const MARKS = /"element|"nodes"|"key"|\\|\d{16}/;
/** The characters of a message that an element may keep in memory besides its own. */
const SHARED = 512;
/** What the reader of messages proves with that a text was already checked. */
const CHECKED = Symbol("checked");

/** How numbers of an element become values: rounded to a double, large integers as `bigint`, or all as `NumberText`. */
export const NUMBERS = ["number", "bigint", "text"];

/** The exact text of one JSON value, which is sent unchanged. */
export class JSONText {
  #value;
  #numbers;

  /** Checks the text, which may have white space around it. Throws a SyntaxError if it is not one JSON value. */
  constructor(text, numbers = "number", proof = undefined) {
    this.text = proof === CHECKED ? text : checked(text);
    this.#numbers = numbers;
  }

  /** The decoded value; decoded once, when it is first asked for. */
  get value() {
    if (this.#value === undefined) this.#value = this.decode(this.#numbers);
    return this.#value;
  }

  /** Decodes the value with numbers as `"number"`, `"bigint"` or `"text"`. */
  decode(numbers) {
    return numbers === "number" ? JSON.parse(this.text) : parseExact(this.text, numberReader(numbers));
  }

  toString() {
    return this.text;
  }

  toJSON() {
    return JSON.parse(this.text);
  }
}

/** A number as it is written in JSON. `encode` writes it unchanged; arithmetic rounds it to a double. */
export class NumberText {
  constructor(text) {
    if (numberEnd(text, 0) !== text.length) throw new SyntaxError(`${JSON.stringify(text)} is not a number of JSON`);
    this.text = text;
  }

  valueOf() {
    return Number(this.text);
  }

  toString() {
    return this.text;
  }

  toJSON() {
    return Number(this.text);
  }
}

/**
 * Decodes a message. Values of members named `elements`, `nodes` (arrays) and `element` become `JSONText`, and the `key` of a
 * section is decoded like an element. Elsewhere, integers that a double cannot hold become `bigint`. Throws a SyntaxError if the
 * text is not JSON, and for too many levels.
 */
export function decode(text, { numbers = "number" } = {}) {
  if (!MARKS.test(text)) return JSON.parse(text);
  const reader = new MessageReader(text, numbers);
  const value = reader.value(0);
  if (spaceEnd(text, reader.at) !== text.length) throw unexpected(text, reader.at);
  return value;
}

/**
 * Encodes a value as JSON. `JSONText`, `NumberText` and `bigint` are written digit by digit; the rest as by `JSON.stringify`,
 * except that it throws a TypeError for what JSON has no text for: NaN, infinities, functions, cycles.
 */
export function encode(value) {
  try {
    return isPlain(value) ? JSON.stringify(value) : written(value);
  } catch (error) {
    // The stack is full.
    if (error instanceof RangeError) throw new TypeError("the value is a cycle, or nested too deeply");
    throw error;
  }
}

/** Whether it is a `String`, `Number`, `Boolean` or `BigInt`, which JSON has as the value in it. */
function isBox(value) {
  return value instanceof String || value instanceof Number || value instanceof Boolean || value instanceof BigInt;
}

/** Whether `JSON.stringify` writes the value as `written` does, which takes longer. */
function isPlain(value) {
  if (typeof value !== "object") return typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);
  if (value === null) return true;
  if (Array.isArray(value)) return value.every(isPlain);
  if (value instanceof JSONText || value instanceof NumberText || typeof value.toJSON === "function") return false;
  if (isBox(value)) return false;
  for (const name of Object.keys(value)) if (value[name] !== undefined && !isPlain(value[name])) return false;
  return true;
}

function written(value) {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`JSON has no text for ${value}`);
      return String(value);
    case "boolean":
    case "bigint":
      return String(value);
    case "object":
      break;
    default:
      throw new TypeError(`JSON has no text for a value of type ${typeof value}`);
  }
  if (value === null) return "null";
  if (value instanceof JSONText || value instanceof NumberText) return value.text;
  if (Array.isArray(value)) {
    let text = "[";
    for (let index = 0; index < value.length; index += 1) {
      if (index > 0) text += ",";
      text += written(value[index]);
    }
    return `${text}]`;
  }
  if (typeof value.toJSON === "function") return written(value.toJSON());
  if (isBox(value)) return written(value.valueOf());
  let text = "";
  for (const name of Object.keys(value)) {
    if (value[name] === undefined) continue;
    text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${written(value[name])}`;
  }
  return `{${text}}`;
}

// Reading

const QUOTE = 34;
const COMMA = 44;
const MINUS = 45;
const COLON = 58;
const OPEN_ARRAY = 91;
const BACKSLASH = 92;
const CLOSE_ARRAY = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

const LITERALS = new Map([
  [102, ["false", false]],
  [110, ["null", null]],
  [116, ["true", true]],
]);

function unexpected(text, at) {
  return new SyntaxError(at < text.length ? `unexpected character at ${at}` : `unexpected end at ${at}`);
}

/** A surrogate without its other half, which a frame cannot have: UTF-8 would make another character of it. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** One JSON value, without the white space around it. */
function checked(text) {
  if (typeof text !== "string") throw new TypeError("JSON text must be a string");
  const lone = text.search(LONE_SURROGATE);
  if (lone >= 0) throw new SyntaxError(`a lone surrogate at ${lone}; write it as an escape`);
  const start = spaceEnd(text, 0);
  const end = valueEnd(text, start);
  if (spaceEnd(text, end) !== text.length) throw unexpected(text, end);
  return text.slice(start, end);
}

function spaceEnd(text, at) {
  for (;;) {
    const character = text.charCodeAt(at);
    if (character !== 32 && character !== 10 && character !== 13 && character !== 9) return at;
    at += 1;
  }
}

/** The index after the string whose quote is at `at`. */
function stringEnd(text, at) {
  for (at += 1;; at += 1) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) return at + 1;
    if (character === BACKSLASH) {
      at += 1;
      const escaped = text.charCodeAt(at);
      if (escaped === 117) {
        if (!/^[0-9A-Fa-f]{4}$/.test(text.slice(at + 1, at + 5))) throw unexpected(text, at);
        at += 4;
      } else if (!'"\\/bfnrt'.includes(text[at] ?? "-")) {
        throw unexpected(text, at);
      }
    } else if (!(character >= 32)) {
      throw unexpected(text, at);
    }
  }
}

function digitsEnd(text, at) {
  const start = at;
  for (let digit = text.charCodeAt(at); digit >= 48 && digit <= 57; digit = text.charCodeAt(at)) at += 1;
  if (at === start) throw unexpected(text, at);
  return at;
}

function numberEnd(text, at) {
  if (text.charCodeAt(at) === MINUS) at += 1;
  at = text.charCodeAt(at) === 48 ? at + 1 : digitsEnd(text, at);
  if (text.charCodeAt(at) === 46) at = digitsEnd(text, at + 1);
  if ((text.charCodeAt(at) | 32) === 101) {
    const sign = text.charCodeAt(at + 1);
    at = digitsEnd(text, sign === 43 || sign === MINUS ? at + 2 : at + 1);
  }
  return at;
}

function literalEnd(text, at) {
  const [word] = LITERALS.get(text.charCodeAt(at)) ?? [];
  if (word === undefined || !text.startsWith(word, at)) throw unexpected(text, at);
  return at + word.length;
}

/** The index after a string, a number or a literal. */
function scalarEnd(text, at) {
  const character = text.charCodeAt(at);
  if (character === QUOTE) return stringEnd(text, at);
  return character === MINUS || (character >= 48 && character <= 57) ? numberEnd(text, at) : literalEnd(text, at);
}

/** The index of the value of the member whose name is at `at`. */
function memberValue(text, at) {
  if (text.charCodeAt(at) !== QUOTE) throw unexpected(text, at);
  at = spaceEnd(text, stringEnd(text, at));
  if (text.charCodeAt(at) !== COLON) throw unexpected(text, at);
  return spaceEnd(text, at + 1);
}

/** The index after the value at `at`, all of which is checked. Needs no stack, however deep the value is. */
function valueEnd(text, at) {
  const closers = [];
  for (;;) {
    const opener = text.charCodeAt(at);
    if (opener === OPEN_OBJECT || opener === OPEN_ARRAY) {
      if (closers.push(opener + 2) > MAX_DEPTH) throw new SyntaxError("an element with too many levels");
      at = spaceEnd(text, at + 1);
      if (text.charCodeAt(at) !== opener + 2) {
        if (opener === OPEN_OBJECT) at = memberValue(text, at);
        continue;
      }
    } else {
      at = scalarEnd(text, at);
      if (closers.length === 0) return at;
    }
    for (;;) {
      const closer = closers[closers.length - 1];
      at = spaceEnd(text, at);
      const character = text.charCodeAt(at);
      at += 1;
      if (character === COMMA) {
        at = spaceEnd(text, at);
        if (closer === CLOSE_OBJECT) at = memberValue(text, at);
        break;
      }
      if (character !== closer) throw unexpected(text, at - 1);
      closers.pop();
      if (closers.length === 0) return at;
    }
  }
}

/** Sets a member, also one named `__proto__`. */
function setMember(object, name, value) {
  if (name === "__proto__") {
    Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
  } else {
    object[name] = value;
  }
}

function stringAt(text, at, end) {
  const inner = text.slice(at + 1, end - 1);
  return inner.includes("\\") ? JSON.parse(text.slice(at, end)) : inner;
}

function scalarAt(text, at, end, number) {
  const character = text.charCodeAt(at);
  if (character === QUOTE) return stringAt(text, at, end);
  return LITERALS.has(character) ? LITERALS.get(character)[1] : number(text.slice(at, end));
}

function numberReader(numbers) {
  if (numbers === "text") return (text) => new NumberText(text);
  if (numbers === "bigint") return wholeNumber;
  throw new TypeError(`numbers must be one of ${NUMBERS.join(", ")}`);
}

/** A number, or a `bigint` for an integer that a double may not hold. */
function wholeNumber(text) {
  const number = Number(text);
  return Number.isSafeInteger(number) || !/^-?\d+$/.test(text) ? number : BigInt(text);
}

/** The value of a text that was checked, with its numbers read by `number`. Needs no stack. */
function parseExact(text, number) {
  const outer = [];
  let holder = null;
  let name = null;
  let at = 0;
  for (;;) {
    const opener = text.charCodeAt(at);
    let value;
    if (opener === OPEN_OBJECT || opener === OPEN_ARRAY) {
      value = opener === OPEN_ARRAY ? [] : {};
      at += 1;
    } else {
      const end = scalarEnd(text, at);
      value = scalarAt(text, at, end, number);
      at = end;
    }
    if (Array.isArray(holder)) holder.push(value);
    else if (holder !== null) setMember(holder, name, value);
    if (opener === OPEN_OBJECT || opener === OPEN_ARRAY) {
      outer.push(holder);
      holder = value;
    } else if (holder === null) {
      return value;
    }
    // To the next value; leaves the arrays and objects that end before it.
    for (;;) {
      at = spaceEnd(text, at);
      const character = text.charCodeAt(at);
      if (character === CLOSE_ARRAY || character === CLOSE_OBJECT) {
        const left = holder;
        holder = outer.pop();
        if (holder === null) return left;
        at += 1;
        continue;
      }
      if (character === COMMA) at = spaceEnd(text, at + 1);
      break;
    }
    if (!Array.isArray(holder)) {
      const end = stringEnd(text, at);
      name = stringAt(text, at, end);
      at = memberValue(text, at);
    }
  }
}

/**
 * Members that are decoded as a whole: values of elements, or lists of such, whose numbers are decoded as those of elements are,
 * and the `contents` of a slots feed, whose members are types, which may be named `element`.
 */
const VALUES = new Set(["key", "deletedIDs", "deletedSectionIDs", "contents"]);

/** Reads the levels of a message around its elements. */
class MessageReader {
  constructor(text, numbers) {
    this.text = text;
    this.at = spaceEnd(text, 0);
    this.numbers = numbers;
  }

  value(level) {
    const { text, at } = this;
    const opener = text.charCodeAt(at);
    if (opener === OPEN_OBJECT || opener === OPEN_ARRAY) {
      if (level === MAX_LEVELS) throw new SyntaxError("a message with too many levels");
      return opener === OPEN_OBJECT ? this.object(level + 1) : this.array(() => this.value(level + 1));
    }
    this.at = scalarEnd(text, at);
    return scalarAt(text, at, this.at, wholeNumber);
  }

  object(level) {
    const { text } = this;
    const result = {};
    for (let more = this.opens(CLOSE_OBJECT); more; more = this.continues(CLOSE_OBJECT)) {
      const start = this.at;
      this.at = memberValue(text, start);
      const name = stringAt(text, start, stringEnd(text, start));
      const isList = (name === "elements" || name === "nodes") && text.charCodeAt(this.at) === OPEN_ARRAY;
      let value;
      if (isList) value = this.array(() => this.element());
      else if (name === "element") value = this.element();
      else value = VALUES.has(name) ? this.element().value : this.value(level);
      setMember(result, name, value);
    }
    return result;
  }

  array(item) {
    const result = [];
    for (let more = this.opens(CLOSE_ARRAY); more; more = this.continues(CLOSE_ARRAY)) result.push(item());
    return result;
  }

  element() {
    const { text, at } = this;
    this.at = valueEnd(text, at);
    const part = text.slice(at, this.at);
    return new JSONText(text.length - part.length > SHARED ? detached(part) : part, this.numbers, CHECKED);
  }

  /** Enters an array or object; whether anything is in it. */
  opens(closer) {
    this.at = spaceEnd(this.text, this.at + 1);
    if (this.text.charCodeAt(this.at) !== closer) return true;
    this.at += 1;
    return false;
  }

  /** Steps over what follows an item; whether another one follows. */
  continues(closer) {
    this.at = spaceEnd(this.text, this.at);
    const character = this.text.charCodeAt(this.at);
    if (character !== COMMA && character !== closer) throw unexpected(this.text, this.at);
    this.at += 1;
    if (character === COMMA) this.at = spaceEnd(this.text, this.at);
    return character === COMMA;
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A copy of a part of a long text: a slice would keep all of the text in memory. */
function detached(part) {
  return decoder.decode(encoder.encode(part));
}
