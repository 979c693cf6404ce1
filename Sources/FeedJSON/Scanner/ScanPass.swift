/// One walk over one text. A value of local variables: everything hot is inlined into `run`, so that it stays in
/// registers.
///
/// Steps give false when the text is refused, with the reason in `fault` and the place in `p`: cheaper than throwing,
/// which is done once by the scanner. While a container is open its token holds what closing needs: `span` the tape
/// index of the parent, `length` the number of children so far whenever a child container is open. So the tape is the
/// stack.
struct ScanPass {
  let base: UnsafePointer<UInt8>
  let end: UnsafePointer<UInt8>
  /// Last place at which eight bytes can be read; before `base` in a short text.
  let lastWord: UnsafePointer<UInt8>
  let maxDepth: Int
  var p: UnsafePointer<UInt8>
  var fault = JSONError.Kind.truncated
  /// Where white space was seen last; a container is compact when that is before its first byte.
  var lastSpace: UnsafePointer<UInt8>
  var tape: Tape
  /// Where the next token is written.
  var next: UnsafeMutablePointer<JSONToken>
  var depth = 0
  /// Tape index of the innermost open container.
  var container = 0
  /// Children of that container so far.
  var children: UInt32 = 0
  /// Whether that container is an object.
  var inObject = false

  init(base: UnsafePointer<UInt8>, count: Int, tape: Tape, maxDepth: Int) {
    self.base = base
    self.tape = tape
    self.maxDepth = maxDepth
    end = base + count
    lastWord = end - 8
    p = base
    lastSpace = base
    next = tape.start
  }

  /// Walks the whole text. Its one value is at the tape's start.
  @inline(__always)
  mutating func run() -> Bool {
    skipSpaces()
    guard p < end else { return refuse(.empty) }
    // Here and at every turn `p` is at the first byte of a value, or of a name in an object.
    while true {
      // One name and one value are written until the next turn.
      if _slowPath(next > tape.lastPair) {
        guard growTape() else { return refuse(.tooLarge) }
      }
      if inObject {
        guard _fastPath(name()) else { return false }
      }
      let byte = p.pointee
      if byte == UInt8(ascii: "\"") {
        guard _fastPath(string()) else { return false }
      } else if byte <= UInt8(ascii: "9") {
        guard _fastPath(number()) else { return false }
      } else if byte | 0x20 == UInt8(ascii: "{") {
        guard _fastPath(open()) else { return false }
        guard _slowPath(p.pointee == closingByte) else { continue }
        close()
      } else {
        guard _fastPath(literal(byte)) else { return false }
      }
      if _fastPath(isFollowed(by: UInt8(ascii: ","))), depth > 0 {
        children &+= 1
        p += 1
        continue
      }
      guard closeContainers() else { return false }
      guard depth > 0 else { return true }
    }
  }

  /// Whether that byte stands at `p` and something that is not white space behind it.
  @inline(__always)
  func isFollowed(by byte: UInt8) -> Bool {
    p + 1 < end && p.pointee == byte && p[1] > 0x20
  }

  /// Leaves the byte at `p` behind; something has to follow.
  @inline(__always)
  mutating func advance() -> Bool {
    p += 1
    skipSpaces()
    return p < end || refuse(.truncated)
  }

  /// What follows a value: the ends of containers, then a comma, or nothing when the outermost value is complete.
  @inline(__always)
  private mutating func closeContainers() -> Bool {
    while depth > 0 {
      children &+= 1
      skipSpaces()
      guard p < end else { return refuse(.truncated) }
      if p.pointee == UInt8(ascii: ",") { return advance() }
      guard p.pointee == closingByte else { return refuse(.unexpectedByte) }
      close()
    }
    skipSpaces()
    return p == end || refuse(.trailingBytes)
  }
}
