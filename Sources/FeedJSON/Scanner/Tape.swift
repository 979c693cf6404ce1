import Glibc

/// The memory of a tape, not owned. A text has at most a token for every two bytes and every open container, so that
/// indices fit in 32 bits.
struct Tape {
  /// The first token.
  let start: UnsafeMutablePointer<JSONToken>
  /// Where two more tokens fit, but no third.
  let lastPair: UnsafeMutablePointer<JSONToken>

  /// Tokens that fit.
  var capacity: Int { lastPair - start &+ 2 }

  /// Takes memory; nil when there is none.
  init?(capacity: Int) {
    self.init(resizing: nil, used: 0, capacity)
  }

  private init?(resizing old: UnsafeMutablePointer<JSONToken>?, used: Int, _ capacity: Int) {
    guard let block = realloc(old, capacity &* MemoryLayout<JSONToken>.stride) else { return nil }
    start = block.assumingMemoryBound(to: JSONToken.self)
    // What is there before the first text is read as well, as a prediction.
    (start + used).initialize(repeating: JSONToken(offset: 0, length: 0, span: 1, info: 0), count: capacity &- used)
    lastPair = start + (capacity &- 2)
  }

  /// The same tokens in twice the memory, which replaces this one; nil, and this one stays, when there is none.
  @inline(never)
  func doubled() -> Tape? {
    Tape(resizing: start, used: capacity, capacity &* 2)
  }

  /// Gives the memory back.
  func deallocate() {
    free(start)
  }
}
