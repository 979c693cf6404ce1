/** The most rows of a chunk. An edit of a long list moves one chunk, not the whole tail. */
const CAPACITY = 256;

/**
 * The rows of a section: a list in chunks. Finding a row sums the lengths of the chunks from the one that was found last, for a
 * million rows at most some thousand numbers. Iterate with `for … of`; `at` is for single rows.
 */
export class Rows {
  // No chunk is empty or longer than CAPACITY; `#counts` has their lengths.
  #chunks = [];
  #counts = [];
  #length = 0;
  // The chunk that was found last, and the place of its first row. Changes are lists of ascending places: the next one is near.
  #found = 0;
  #start = 0;

  get length() {
    return this.#length;
  }

  /** The row at that place, or undefined if there is none. */
  at(place) {
    if (!(place >= 0 && place < this.#length)) return undefined;
    const [chunk, start] = this.#find(place);
    return this.#chunks[chunk][place - start];
  }

  push(row) {
    this.insert(this.#length, row);
  }

  /** Inserts a row at a place from 0 to `length`. */
  insert(place, row) {
    if (place === this.#length) {
      const last = this.#chunks.length - 1;
      if (last >= 0 && this.#counts[last] < CAPACITY) {
        this.#chunks[last].push(row);
        this.#counts[last] += 1;
      } else {
        this.#chunks.push([row]);
        this.#counts.push(1);
      }
    } else {
      const [chunk, start] = this.#find(place);
      this.#chunks[chunk].splice(place - start, 0, row);
      this.#counts[chunk] += 1;
      if (this.#counts[chunk] > CAPACITY) this.#split(chunk);
    }
    this.#length += 1;
  }

  /** Removes the row at a place from 0 to before `length`, and returns it. */
  remove(place) {
    const [chunk, start] = this.#find(place);
    const [row] = this.#chunks[chunk].splice(place - start, 1);
    this.#counts[chunk] -= 1;
    this.#length -= 1;
    const next = this.#counts[chunk + 1] ?? (this.#counts[chunk] === 0 ? 0 : CAPACITY);
    if (this.#counts[chunk] + next <= CAPACITY / 4) this.#merge(chunk);
    return row;
  }

  /** The rows from `start` to before `end`. */
  slice(start = 0, end = this.#length) {
    const rows = [];
    if (start >= this.#length || start >= end) return rows;
    let [chunk, first] = this.#find(start);
    for (; first < end && chunk < this.#chunks.length; first += this.#counts[chunk], chunk += 1) {
      rows.push(...this.#chunks[chunk].slice(Math.max(0, start - first), end - first));
    }
    return rows;
  }

  *[Symbol.iterator]() {
    for (const chunk of this.#chunks) yield* chunk;
  }

  /** The chunk that has the row at that place, and the place of its first row. */
  #find(place) {
    const counts = this.#counts;
    let [chunk, start] = place < this.#start / 2 ? [0, 0] : [this.#found, this.#start];
    while (place < start) {
      chunk -= 1;
      start -= counts[chunk];
    }
    while (start + counts[chunk] <= place) {
      start += counts[chunk];
      chunk += 1;
    }
    this.#found = chunk;
    this.#start = start;
    return [chunk, start];
  }

  /** Puts the rows of a chunk into the next one, if there is one; otherwise the chunk must be empty. */
  #merge(chunk) {
    const [rows] = this.#chunks.splice(chunk, 1);
    const [count] = this.#counts.splice(chunk, 1);
    if (count === 0) return;
    this.#chunks[chunk].unshift(...rows);
    this.#counts[chunk] += count;
  }

  #split(chunk) {
    const half = this.#chunks[chunk].splice(CAPACITY / 2);
    this.#chunks.splice(chunk + 1, 0, half);
    this.#counts.splice(chunk, 1, CAPACITY / 2, half.length);
  }
}

/** Up to so many items are removed or inserted one by one, which moves those behind each time, but natively. */
const FEW = 16;

/** Removes the items at ascending places, which are in the list. O(items), however many are removed. */
export function removeItems(list, places) {
  if (places.length <= FEW) {
    for (let index = places.length - 1; index >= 0; index -= 1) list.splice(places[index], 1);
    return;
  }
  let next = 0;
  let kept = 0;
  list.forEach((item, place) => {
    if (place === places[next]) {
      next += 1;
    } else {
      list[kept] = item;
      kept += 1;
    }
  });
  list.length = kept;
}

/** Inserts items at ascending places, counted after the insertion; the last one is in the list then. O(items), however many. */
export function insertItems(list, places, items) {
  if (places.length <= FEW) {
    places.forEach((place, index) => list.splice(place, 0, items[index]));
    return;
  }
  let from = list.length - 1;
  for (const item of items) list.push(item);
  let to = list.length - 1;
  for (let index = places.length - 1; index >= 0; index -= 1) {
    for (; to > places[index]; to -= 1, from -= 1) list[to] = list[from];
    list[to] = items[index];
    to -= 1;
  }
}
