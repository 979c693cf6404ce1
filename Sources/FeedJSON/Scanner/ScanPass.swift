import Glibc

/// One walk over one text. A value of local variables: everything hot is inlined into `run`, so that it stays in registers.
///
/// While a container is open its token holds what closing needs: `span` the tape index of the parent, `length` the number of
/// children so far whenever a child container is open. So the tape is the stack.
struct ScanPass {
  let base: UnsafePointer<UInt8>
  let end: UnsafePointer<UInt8>
  let maxDepth: Int
  var p: UnsafePointer<UInt8>
  /// Where white space was seen last; a container is compact when that is before its first byte.
  var lastSpace: UnsafePointer<UInt8>
  var tape: UnsafeMutablePointer<JSONToken>?
  var capacity: Int
  var used = 0
  var depth = 0
  var container = 0
  var children: UInt32 = 0
  var inObject = false

  init(
    base: UnsafePointer<UInt8>, count: Int, tape: UnsafeMutablePointer<JSONToken>?, capacity: Int, maxDepth: Int
  ) {
    self.base = base
    self.tape = tape
    self.capacity = capacity
    self.maxDepth = maxDepth
    end = base + count
    p = base
    lastSpace = base
  }

  /// Walks the whole text; gives the token of its one value.
  @inline(__always)
  mutating func run() throws(JSONError) -> UnsafeMutablePointer<JSONToken> {
    skipSpaces()
    guard p < end else { throw failure(.empty) }
    while true {
      // A name and a value at most until the next look.
      if capacity &- used < 2 { try growTape() }
      if inObject { try name() }
      guard p < end else { throw failure(.truncated) }
      if try value(), try afterValue() { break }
    }
    skipSpaces()
    guard p == end else { throw failure(.trailingBytes) }
    return slot(0)
  }

  /// The value at `p`. False when a container was opened that has something inside, which comes next.
  @inline(__always)
  private mutating func value() throws(JSONError) -> Bool {
    switch p.pointee {
    case UInt8(ascii: "\""): try string()
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): try number()
    case UInt8(ascii: "{"): return try open(.object, closing: UInt8(ascii: "}"))
    case UInt8(ascii: "["): return try open(.array, closing: UInt8(ascii: "]"))
    case UInt8(ascii: "t"): try literal(0x6575_7274, 4, .true)
    case UInt8(ascii: "f"): try literal(0x65_736C_6166, 5, .false)
    case UInt8(ascii: "n"): try literal(0x6C6C_756E, 4, .null)
    default: throw failure(.unexpectedByte)
    }
    return true
  }

  /// A member's name and the colon; leaves `p` at the value.
  @inline(__always)
  private mutating func name() throws(JSONError) {
    guard p < end else { throw failure(.truncated) }
    guard p.pointee == UInt8(ascii: "\"") else { throw failure(.unexpectedByte) }
    try string()
    skipSpaces()
    guard p < end else { throw failure(.truncated) }
    guard p.pointee == UInt8(ascii: ":") else { throw failure(.unexpectedByte) }
    p += 1
    skipSpaces()
  }

  /// What follows a value: ends of containers, then a comma. True when the outermost value is complete.
  @inline(__always)
  private mutating func afterValue() throws(JSONError) -> Bool {
    while depth > 0 {
      children &+= 1
      skipSpaces()
      guard p < end else { throw failure(.truncated) }
      let byte = p.pointee
      if byte == UInt8(ascii: ",") {
        p += 1
        skipSpaces()
        return false
      }
      guard byte == (inObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else { throw failure(.unexpectedByte) }
      close()
    }
    return true
  }

  /// The container that begins at `p`. True when it is empty and so complete.
  @inline(__always)
  private mutating func open(_ kind: JSONKind, closing: UInt8) throws(JSONError) -> Bool {
    guard depth < maxDepth else { throw failure(.tooDeep) }
    if depth > 0 { slot(container).pointee.length = children }
    slot(used).initialize(
      to: JSONToken(
        offset: offset(p), length: 0, span: UInt32(truncatingIfNeeded: container), info: UInt32(kind.rawValue)))
    container = used
    used &+= 1
    depth &+= 1
    children = 0
    inObject = kind == .object
    p += 1
    skipSpaces()
    guard p < end else { throw failure(.truncated) }
    guard p.pointee == closing else { return false }
    close()
    return true
  }

  /// Completes the innermost container, whose last byte is at `p`, and goes back to its parent.
  @inline(__always)
  private mutating func close() {
    p += 1
    let token = slot(container)
    let start = token.pointee.offset
    let parent = Int(token.pointee.span)
    var info = token.pointee.info | (min(children, JSONToken.countLimit) &<< JSONToken.countShift)
    if offset(lastSpace) > start { info |= JSONToken.hasSpaces }
    token.initialize(
      to: JSONToken(
        offset: start, length: offset(p) &- start, span: UInt32(truncatingIfNeeded: used &- container), info: info))
    depth &-= 1
    guard depth > 0 else { return }
    container = parent
    children = slot(parent).pointee.length
    inObject = slot(parent).pointee.info & JSONToken.kindMask == UInt32(JSONKind.object.rawValue)
  }
}
