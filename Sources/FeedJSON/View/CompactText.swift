extension ByteBuffer {
  /// Appends the text of a value without white space outside strings. O(bytes); one copy if there is no such space.
  public mutating func append(compact view: JSONView) {
    guard !view.isCompact else { return append(view.text) }
    reserve(view.text.count)
    view.forEachCompactPiece { append($0) }
  }
}

extension JSONView {
  /// The number of bytes that `ByteBuffer.append(compact:)` appends. O(1) for a compact value, otherwise O(bytes).
  public var compactLength: Int {
    guard !isCompact else { return text.count }
    var length = 0
    forEachCompactPiece { length &+= $0.count }
    return length
  }

  /// Calls `body` with the pieces of the text between white space outside strings, in order.
  func forEachCompactPiece(_ body: (UnsafeRawBufferPointer) -> Void) {
    var p = start
    var token = token
    while token < tokenEnd {
      if token.pointee.info & JSONToken.kindMask == UInt32(JSONKind.string.rawValue) {
        // Spaces in strings are kept; all other text is split at spaces.
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
