extension ScanPass {
  /// What ends the innermost container.
  @inline(__always)
  var closingByte: UInt8 { inObject ? UInt8(ascii: "}") : UInt8(ascii: "]") }

  /// The container that begins at `p`; leaves `p` at what is inside, or at its end when that is nothing.
  @inline(__always)
  mutating func open() -> Bool {
    guard depth < maxDepth else { return refuse(.tooDeep) }
    if depth > 0 { tape.start[container].length = children }
    inObject = p.pointee == UInt8(ascii: "{")
    let kind = inObject ? JSONKind.object : JSONKind.array
    next.initialize(
      to: JSONToken(
        offset: offset(p), length: 0, span: UInt32(truncatingIfNeeded: container), info: UInt32(kind.rawValue)))
    container = next - tape.start
    next += 1
    depth &+= 1
    children = 0
    return advance()
  }

  /// Completes the innermost container, whose last byte is at `p`, and goes back to its parent.
  @inline(__always)
  mutating func close() {
    p += 1
    let token = tape.start + container
    let start = token.pointee.offset
    let parent = Int(token.pointee.span)
    var info = token.pointee.info | (min(children, JSONToken.countLimit) &<< JSONToken.countShift)
    if offset(lastSpace) > start { info |= JSONToken.hasSpaces }
    token.initialize(
      to: JSONToken(
        offset: start, length: offset(p) &- start, span: UInt32(truncatingIfNeeded: next - token), info: info))
    depth &-= 1
    guard depth > 0 else { return }
    container = parent
    children = tape.start[parent].length
    inObject = tape.start[parent].info & JSONToken.kindMask == UInt32(JSONKind.object.rawValue)
  }
}
