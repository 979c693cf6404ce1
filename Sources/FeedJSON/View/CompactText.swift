extension ByteBuffer {
  /// The text of a value without the white space outside strings. O(bytes); one copy when there is none.
  public mutating func append(compact view: JSONView) {
    guard !view.isCompact else { return append(view.text) }
    reserve(view.text.count)
    view.forEachCompactPiece { append($0) }
  }
}

extension JSONView {
  /// Number of bytes that `ByteBuffer.append(compact:)` writes. O(1) for a compact value, else O(bytes).
  public var compactLength: Int {
    guard !isCompact else { return text.count }
    var length = 0
    forEachCompactPiece { length &+= $0.count }
    return length
  }

  /// Gives the text in pieces, in order, leaving out white space between tokens.
  func forEachCompactPiece(_ body: (UnsafeRawBufferPointer) -> Void) {
    var p = start
    var token = token
    while token < tokenEnd {
      if token.pointee.info & JSONToken.kindMask == UInt32(JSONKind.string.rawValue) {
        // Only strings may hold bytes that look like white space; all else is looked at byte by byte.
        let string = base + Int(token.pointee.offset)
        Self.splitAtSpaces(p, string, body)
        body(UnsafeRawBufferPointer(start: string, count: Int(token.pointee.length)))
        p = string + Int(token.pointee.length)
      }
      token += 1
    }
    Self.splitAtSpaces(p, start + text.count, body)
  }

  private static func splitAtSpaces(
    _ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>, _ body: (UnsafeRawBufferPointer) -> Void
  ) {
    var (piece, p) = (start, start)
    while p < end {
      if p.pointee <= 0x20 {
        if p > piece { body(UnsafeRawBufferPointer(start: piece, count: p - piece)) }
        piece = p + 1
      }
      p += 1
    }
    if p > piece { body(UnsafeRawBufferPointer(start: piece, count: p - piece)) }
  }
}
