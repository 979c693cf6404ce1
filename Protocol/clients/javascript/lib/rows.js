/** The most rows of a chunk. An edit of a long list moves one chunk, not the whole tail. */
const CAPACITY = 256;

/**
 * The rows of a section: a list in chunks. Finding a row sums the lengths of chunks, for a million rows some thousand numbers.
 * Iterate with `for … of`; `at` is for single rows.
 */
export class Rows {
  // No chunk is empty or longer than CAPACITY; `#counts` has their lengths.
  #chunks = [];
  #counts = [];
  #length = 0;

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
    let chunk = 0;
    let start = 0;
    while (start + counts[chunk] <= place) {
      start += counts[chunk];
      chunk += 1;
    }
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
