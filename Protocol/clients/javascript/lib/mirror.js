import { digest } from "./digest.js";
import { FeedError } from "./errors.js";
import { insertItems, removeItems, Rows } from "./rows.js";
import { decode, encode, JSONText, NumberText } from "./text.js";

/** A row of a mirror. It stays the same object, with the same `key`, when it moves and when its element is replaced. */
export class Row {
  constructor(key, element, type) {
    /** A number that no other row of this mirror has or had: for lists that are drawn by key. */
    this.key = key;
    /** The element as `JSONText`. */
    this.element = element;
    /** The type of the element, or null. */
    this.type = type;
  }

  /** The exact text of the element. */
  get text() {
    return this.element.text;
  }

  /** The decoded element. */
  get value() {
    return this.element.value;
  }
}

/** Fails because a message does not follow from the messages before it, or is malformed. */
function gap(feed, what) {
  throw new FeedError("GAP", `the copy of ${feed} missed something: ${what}; watch again without since`, { feed });
}

const isNumber = (value) => Number.isSafeInteger(value) && value >= 0;
const isPath = (value) => Array.isArray(value) && value.length === 2 && isNumber(value[0]) && isNumber(value[1]);
/** A key that was too large for a double, such as 1e400, is an infinity, which only another such number decodes to. */
const savedKey = (key) => (key === Infinity || key === -Infinity ? new NumberText(`${Math.sign(key)}e999`) : key);
const isObject = (value) => value !== null && typeof value === "object";
const NONE = Object.freeze([]);

/** Checks the members of one message. */
class Members {
  constructor(params, feed) {
    if (!isObject(params)) gap(feed, "a message without parameters");
    this.params = params;
    this.feed = feed;
  }

  expect(truth, otherwise) {
    if (!truth) gap(this.feed, otherwise);
  }

  text(value, name) {
    if (typeof value !== "string") gap(this.feed, `${name} is not a text`);
    return value;
  }

  /** A revision, a count, or the number of a row or section. */
  number(value, name) {
    if (!isNumber(value)) gap(this.feed, `${name} is not a number from 0`);
    return value;
  }

  list(value, name) {
    if (!Array.isArray(value)) gap(this.feed, `${name} is not a list`);
    return value;
  }

  path(value, name) {
    if (!isPath(value)) gap(this.feed, `${name} is not an index path`);
    return value;
  }

  /** Index paths in ascending order. */
  paths(name) {
    const paths = this.list(this.params[name], name);
    let section = 0;
    let row = -1;
    for (const path of paths) {
      if (!isPath(path) || path[0] < section || (path[0] === section && path[1] <= row)) {
        gap(this.feed, `${name} is not a list of ascending index paths`);
      }
      [section, row] = path;
    }
    return paths;
  }

  /** Names, keys and counts of the sections of a watch or a reset. */
  sectionCounts() {
    return this.list(this.params.sections, "sections").map((section) => ({
      name: this.text(section?.name, "name"),
      key: section.key,
      count: this.number(section.count, "count"),
    }));
  }

  /** The sections that were deleted and added. */
  structure() {
    const { sections } = this.params;
    if (sections === undefined) return { deleted: NONE, added: NONE };
    if (!isObject(sections)) gap(this.feed, "sections is not an object");
    let before = -1;
    for (const at of this.list(sections.deleted, "sections.deleted")) {
      this.expect(this.number(at, "sections.deleted") > before, "sections.deleted is not ascending");
      before = at;
    }
    before = -1;
    for (const added of this.list(sections.added, "sections.added")) {
      this.text(added?.name, "sections.added");
      this.expect(this.number(added.at, "sections.added") > before, "sections.added is not ascending");
      before = added.at;
    }
    return sections;
  }

  /** Removes the sections at these places from a list. Returns them. */
  delete(places, list) {
    const fits = places.length === 0 || places[places.length - 1] < list.length;
    this.expect(fits, "a deleted section out of range");
    const gone = places.map((place) => list[place]);
    removeItems(list, places);
    return gone;
  }

  /** Inserts new sections into a list. */
  add(added, list, make) {
    const fits = added.length === 0 || added[added.length - 1].at < list.length + added.length;
    this.expect(fits, "a new section out of range");
    insertItems(list, added.map(({ at }) => at), added.map(make));
  }

  /** The elements, and their types or null. */
  content() {
    const elements = this.list(this.params.elements, "elements");
    for (const element of elements) this.expect(element instanceof JSONText, "elements are not JSONText: use decode");
    const types = this.params.types ?? null;
    if (types !== null) {
      this.expect(this.list(types, "types").length === elements.length, "another number of types than elements");
      this.expect(types.every((type) => type === null || typeof type === "string"), "a type that is not a text");
    }
    return { elements, types };
  }

  /** The identities of the rows of `deleted`, and of the rows of each deleted section; null if the daemon does not tell them. */
  identities(deleted, sections) {
    const { deletedIDs = null, deletedSectionIDs = NONE } = this.params;
    if (deletedIDs === null) return { deletedIDs, deletedSectionIDs: null };
    const fits =
      this.list(deletedIDs, "deletedIDs").length === deleted.length &&
      this.list(deletedSectionIDs, "deletedSectionIDs").length === sections.length &&
      deletedSectionIDs.every(Array.isArray);
    this.expect(fits, "another number of identities than of deleted rows");
    return { deletedIDs, deletedSectionIDs };
  }

  /** Pairs of positions in `deleted` and `added`, each in at most one pair. */
  moves(deleted, added) {
    const { moves } = this.params;
    if (moves === undefined) return NONE;
    const taken = new Set();
    let before = -1;
    for (const pair of this.list(moves, "moves")) {
      const [from, to] = this.path(pair, "moves");
      this.expect(from > before && from < deleted.length && to < added.length && !taken.has(to), "impossible moves");
      taken.add(to);
      before = from;
    }
    return moves;
  }
}

/** The revision of a delta, which leads on from `current`. */
function follows(members, current) {
  const { from, revision } = members.params;
  if (from !== current) gap(members.feed, `a delta from revision ${from}, not ${current}`);
  if (!(members.number(revision, "revision") > current)) gap(members.feed, `a delta back to revision ${revision}`);
  return revision;
}

/**
 * A copy of a watched feed. It is whole and correct at `revision`; while a new snapshot arrives, it stays what it was until the
 * last part. A message that does not follow throws a FeedError with code "GAP".
 */
export class Mirror {
  #keys = 0;
  /** The sections of the snapshot that arrives, with their counts; null if none does. */
  #incoming = null;

  /** `result` is the result of `watch`. Call `restart` to continue with that of a later one. */
  constructor(result) {
    this.feed = result?.feed;
    /** Objects with `name`, `key`, the value of a section by value, and `rows`, a `Rows`. */
    this.sections = [];
    /** The revision of the copy; null before the first snapshot is whole. */
    this.revision = null;
    /** What to pass to `watch` to receive only what was missed; null before the first snapshot is whole. */
    this.since = null;
    /** The selected rows as index paths. */
    this.selected = [];
    this.restart(result);
  }

  /** Makes a copy of what `save` returned, to continue with it: pass it as `mirror` to `watch`. */
  static load(text, options) {
    const saved = decode(text, options);
    const mirror = new Mirror({ ...saved, resumed: false });
    const first = saved.sections.findIndex(({ count }) => count > 0);
    const { revision, elements, types } = saved;
    mirror.apply({ method: "snapshot", params: { revision, at: [Math.max(first, 0), 0], elements, types, last: true } });
    return mirror;
  }

  get isWhole() {
    return this.revision !== null;
  }

  /** The copy as text, for `Mirror.load` in this program or another one. Elements keep their text. */
  save() {
    if (this.since === null) gap(this.feed, "it is not whole");
    const rows = this.sections.flatMap((section) => section.rows.slice());
    return encode({
      feed: this.feed,
      ...this.since,
      sections: this.sections.map(({ name, key, rows }) => ({ name, key: savedKey(key), count: rows.length })),
      elements: rows.map(({ element }) => element),
      types: rows.map(({ type }) => type),
    });
  }

  /** Continues with the result of another `watch` that was called with `since` of this mirror. */
  restart(result) {
    const members = new Members(result, this.feed);
    members.expect(members.text(result.feed, "feed") === this.feed, `a watch of ${result.feed}`);
    const epoch = members.text(result.epoch, "epoch");
    const revision = members.number(result.revision, "revision");
    if (result.resumed === true) {
      members.expect(this.since?.epoch === epoch, "resumed from a position that this mirror never had");
      this.#incoming = null;
      this.revision = this.since.revision;
      // Each watch begins with nothing selected. No selection follows if nothing is.
      this.selected = [];
    } else {
      members.expect(result.resumed === false, "resumed is not a boolean");
      this.#expectSnapshot(revision, epoch, members.sectionCounts(), []);
    }
  }

  /**
   * Applies a notification of the watch. Returns the change that it made, or null if there is nothing to show: for bookmarks,
   * and for parts of a snapshot before the last.
   */
  apply({ method, params }) {
    const members = new Members(params, this.feed);
    if (params.feed !== undefined && params.feed !== this.feed) gap(this.feed, `a message of ${params.feed}`);
    if (method === "delta") return this.#delta(members);
    if (method === "snapshot") return this.#part(members);
    if (method === "bookmark") return this.#bookmark(members);
    return method === "selection" ? this.#selection(members) : null;
  }

  /** The row at an index path, or undefined. */
  at(section, row) {
    return this.sections[section]?.rows.at(row);
  }

  /** The decoded elements, one list for each section. */
  values() {
    return this.sections.map(({ rows }) => Array.from(rows, (row) => row.value));
  }

  counts() {
    return this.sections.map(({ rows }) => rows.length);
  }

  /** The digest that `verify` returns at this revision. */
  digest() {
    return digest(this.sections);
  }

  /** `selected` is the selection when the snapshot is whole. */
  #expectSnapshot(revision, epoch, counts, selected) {
    const sections = counts.map(({ name, key }) => ({ name, key, rows: new Rows() }));
    this.#incoming = { revision, epoch, sections, counts: counts.map(({ count }) => count), section: 0, selected };
  }

  #part(members) {
    const { params } = members;
    const revision = members.number(params.revision, "revision");
    if (params.reset === true) {
      const epoch = this.#incoming?.epoch ?? this.since?.epoch;
      // A reset does not end the watch: a selection that it left as it was is not sent again.
      this.#expectSnapshot(revision, epoch, members.sectionCounts(), this.#incoming?.selected ?? this.selected);
    }
    const incoming = this.#incoming;
    members.expect(incoming !== null && incoming.revision === revision, "an unexpected part of a snapshot");
    const [at, row] = members.path(params.at, "at");
    const { elements, types } = members.content();
    const { sections, counts } = incoming;
    const skipFull = () => {
      while (incoming.section < counts.length && sections[incoming.section].rows.length === counts[incoming.section]) {
        incoming.section += 1;
      }
      return incoming.section;
    };
    if (elements.length > 0) {
      const section = skipFull();
      members.expect(at === section && row === sections[section]?.rows.length, "a missing part of a snapshot");
    }
    elements.forEach((element, index) => {
      const section = skipFull();
      members.expect(section < counts.length, "more rows than the counts of the sections");
      sections[section].rows.push(this.#row(element, types?.[index] ?? null));
    });
    members.expect(typeof params.last === "boolean", "last is not a boolean");
    if (!params.last) return null;
    members.expect(skipFull() === counts.length, "missing rows in a snapshot");
    this.#incoming = null;
    this.sections = sections;
    this.selected = incoming.selected;
    this.#arrive(revision, incoming.epoch);
    return { kind: "snapshot", feed: this.feed, revision, ended: params.ended === true, mirror: this };
  }

  #delta(members) {
    const { params } = members;
    members.expect(this.isWhole && this.#incoming === null, "a delta before the snapshot is whole");
    const revision = follows(members, this.revision);
    const deleted = members.paths("deleted");
    const added = members.paths("added");
    const updated = members.paths("updated");
    const structure = members.structure();
    const moves = members.moves(deleted, added);
    const { deletedIDs, deletedSectionIDs } = members.identities(deleted, structure.deleted);
    const { elements, types } = members.content();
    members.expect(elements.length === added.length + updated.length, "another number of elements than places");
    // From here on the copy changes. If that fails, it is of no revision.
    const { since } = this;
    this.since = null;
    this.revision = null;
    const { gone, removed } = this.#remove(members, deleted, structure.deleted);
    members.add(structure.added, this.sections, ({ name, key }) => ({ name, key, rows: new Rows() }));
    const moved = new Map(moves.map(([from, to]) => [to, gone[from]]));
    const rows = added.map(([section, place], index) => {
      const target = this.sections[section]?.rows;
      members.expect(target !== undefined && place <= target.length, "a new row out of range");
      const row = this.#fill(moved.get(index), elements[index], types?.[index] ?? null);
      target.insert(place, row);
      return row;
    });
    updated.forEach(([section, place], index) => {
      const row = this.at(section, place);
      members.expect(row !== undefined, "an updated row out of range");
      const at = added.length + index;
      rows.push(this.#fill(row, elements[at], types?.[at] ?? null));
    });
    const moving = new Set(moved.values());
    this.#arrive(revision, since.epoch);
    return {
      kind: "delta",
      feed: this.feed,
      from: params.from,
      revision,
      deleted,
      added,
      updated,
      moves,
      sections: structure,
      rows,
      removed: moving.size === 0 ? removed : removed.filter((row) => !moving.has(row)),
      deletedIDs,
      deletedSectionIDs,
      animation: params.animation ?? null,
      ended: params.ended === true,
      mirror: this,
    };
  }

  /** Removes rows and sections. Returns the rows of `deleted` in their order, and all rows that left. */
  #remove(members, deleted, sections) {
    for (const [section, place] of deleted) {
      members.expect(place < (this.sections[section]?.rows.length ?? 0), "a deleted row out of range");
    }
    const gone = [];
    for (let index = deleted.length - 1; index >= 0; index -= 1) {
      const [section, place] = deleted[index];
      gone.push(this.sections[section].rows.remove(place));
    }
    gone.reverse();
    const removed = [...gone];
    for (const { rows } of members.delete(sections, this.sections)) {
      for (const row of rows) removed.push(row);
    }
    return { gone, removed };
  }

  #row(element, type) {
    this.#keys += 1;
    return new Row(this.#keys, element, type);
  }

  #fill(row, element, type) {
    if (row === undefined) return this.#row(element, type);
    row.element = element;
    row.type = type;
    return row;
  }

  #bookmark(members) {
    const { params } = members;
    members.expect(this.isWhole && params.revision === this.revision, "a bookmark of another revision");
    this.since = {
      epoch: members.text(params.epoch, "epoch"),
      revision: members.number(params.current, "current"),
    };
    return null;
  }

  #selection(members) {
    // A copy that was resumed from the `current` of a bookmark is of a later revision than the last change of the feed.
    const revision = members.number(members.params.revision, "revision");
    members.expect(this.isWhole && revision <= this.revision, "a selection of a later revision");
    this.selected = members.paths("selected");
    return { kind: "selection", feed: this.feed, revision: this.revision, selected: this.selected, mirror: this };
  }

  #arrive(revision, epoch) {
    this.revision = revision;
    this.since = { epoch, revision };
  }
}

/** The names of the sections of a feed and their numbers of rows: the copy of a watch with `elements: false`. */
export class Counts {
  constructor(result) {
    this.feed = result?.feed;
    this.since = null;
    this.restart(result);
  }

  /** Continues with the result of another `watch`. One that was resumed continues with a delta from `since`. */
  restart(result) {
    const members = new Members(result, this.feed);
    members.expect(members.text(result.feed, "feed") === this.feed, `a watch of ${result.feed}`);
    const epoch = members.text(result.epoch, "epoch");
    const revision = members.number(result.revision, "revision");
    if (result.resumed === true && this.since !== null) {
      members.expect(this.since.epoch === epoch, "resumed from a position that these counts never had");
      this.revision = this.since.revision;
    } else {
      this.#arrive(members.sectionCounts(), revision, epoch);
    }
  }

  /** Applies a notification. Returns the change, or null if the counts are those of before. */
  apply({ method, params }) {
    const members = new Members(params, this.feed);
    if (params.feed !== undefined && params.feed !== this.feed) gap(this.feed, `a message of ${params.feed}`);
    if (method === "bookmark") {
      this.since = { epoch: members.text(params.epoch, "epoch"), revision: members.number(params.current, "current") };
      return null;
    }
    if (method === "snapshot" && params.reset === true) {
      this.#arrive(members.sectionCounts(), members.number(params.revision, "revision"), this.since.epoch);
      return this.change(params.ended === true);
    }
    return method === "delta" ? this.#delta(members) : null;
  }

  /** The counts as a change, to start with. */
  change(ended = false, animation = null) {
    const { feed, revision, names, counts } = this;
    return { kind: "counts", feed, revision, names, counts, ended, animation, mirror: this };
  }

  #delta(members) {
    const { params } = members;
    const revision = follows(members, this.revision);
    const names = [...this.names];
    const structure = members.structure();
    members.delete(structure.deleted, names);
    members.add(structure.added, names, ({ name }) => name);
    const counts = members.list(params.counts, "counts").map((count) => members.number(count, "counts"));
    members.expect(counts.length === names.length, "another number of counts than sections");
    this.#arrive(names.map((name, index) => ({ name, count: counts[index] })), revision, this.since.epoch);
    return this.change(params.ended === true, params.animation ?? null);
  }

  #arrive(sections, revision, epoch) {
    this.names = sections.map(({ name }) => name);
    this.counts = sections.map(({ count }) => count);
    this.revision = revision;
    this.since = { epoch, revision };
  }
}
