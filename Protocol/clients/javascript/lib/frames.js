import { violation } from "./errors.js";

/** The first size of a buffer for a frame that arrives in pieces. A length alone makes nobody allocate more. */
const FIRST_BUFFER = 1 << 16;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A frame: the length in four bytes, big-endian, and the text in UTF-8. */
export function frame(text) {
  let bytes = new Uint8Array(4 + text.length);
  let { read, written } = encoder.encodeInto(text, bytes.subarray(4));
  if (read < text.length) {
    const body = encoder.encode(text);
    bytes = new Uint8Array(4 + body.length);
    bytes.set(body, 4);
    written = body.length;
  }
  new DataView(bytes.buffer).setUint32(0, written);
  return bytes;
}

/** The text of a frame. Throws a FeedError if it is not UTF-8. */
export function frameText(bytes) {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw violation("a frame that is not UTF-8", { cause });
  }
}

/** Finds the frames in a stream of bytes, however it is cut into chunks. Each byte is copied at most twice. */
export class FrameReader {
  #limit;
  #chunk = new Uint8Array(0);
  #at = 0;
  // The length so far, and how many of its bytes are known.
  #length = 0;
  #lengthBytes = 0;
  // The bytes of a frame that does not end in its first chunk.
  #body = null;
  #filled = 0;

  constructor(limit) {
    this.#limit = limit;
  }

  /** Takes the next chunk. Take all frames with `next` before, because they may share memory with the chunk. */
  push(chunk) {
    this.#chunk = chunk;
    this.#at = 0;
  }

  /** Whether a frame has begun and not ended. */
  get isInside() {
    return this.#lengthBytes > 0;
  }

  /** The bytes of the next frame, or null if it has not arrived. Throws a FeedError for a bad length. */
  next() {
    const chunk = this.#chunk;
    while (this.#lengthBytes < 4) {
      if (this.#at === chunk.length) return null;
      this.#length = this.#length * 256 + chunk[this.#at];
      this.#at += 1;
      this.#lengthBytes += 1;
      if (this.#lengthBytes === 4 && (this.#length === 0 || this.#length > this.#limit)) {
        throw violation(`a frame of ${this.#length} bytes; this client takes 1 to ${this.#limit}`);
      }
    }
    const available = chunk.length - this.#at;
    const taken = Math.min(available, this.#length - this.#filled);
    const part = chunk.subarray(this.#at, this.#at + taken);
    this.#at += taken;
    if (taken === this.#length) return this.#ended(part);
    this.#append(part);
    return this.#filled === this.#length ? this.#ended(this.#body.subarray(0, this.#filled)) : null;
  }

  #append(part) {
    const needed = this.#filled + part.length;
    if (this.#body === null || this.#body.length < needed) {
      const size = Math.min(this.#length, Math.max(needed, FIRST_BUFFER, 2 * (this.#body?.length ?? 0)));
      const body = new Uint8Array(size);
      if (this.#body !== null) body.set(this.#body.subarray(0, this.#filled));
      this.#body = body;
    }
    this.#body.set(part, this.#filled);
    this.#filled = needed;
  }

  #ended(frame) {
    this.#length = 0;
    this.#lengthBytes = 0;
    this.#body = null;
    this.#filled = 0;
    return frame;
  }
}
