/// A value of a scanned text: two pointers, not owned, cheap to copy.
///
/// It is valid until the next scan by the scanner that made it, and while the scanned bytes stay in place.
@frozen public struct JSONView {
  /// The first byte of the scanned text.
  @usableFromInline let base: UnsafePointer<UInt8>
  /// The token of this value.
  @usableFromInline let token: UnsafePointer<JSONToken>

  @inlinable init(base: UnsafePointer<UInt8>, token: UnsafePointer<JSONToken>) {
    self.base = base
    self.token = token
  }

  /// The kind of the value.
  @inlinable public var kind: JSONKind {
    // The scanner writes only the seven kinds. A debug build checks that.
    JSONKind(rawValue: UInt8(truncatingIfNeeded: token.pointee.info & JSONToken.kindMask)).unsafelyUnwrapped
  }

  /// Whether the value is of `kind`.
  @inlinable func isKind(_ kind: JSONKind) -> Bool { token.pointee.info & JSONToken.kindMask == UInt32(kind.rawValue) }

  /// The source text of the value, including quotes or brackets and white space in it.
  @inlinable public var text: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: start, count: Int(token.pointee.length))
  }

  /// The offset of `text` in the scanned text, in bytes.
  @inlinable public var byteOffset: Int { Int(token.pointee.offset) }

  @inlinable var start: UnsafePointer<UInt8> { base + Int(token.pointee.offset) }
  /// The position after the last token of this value.
  @inlinable var tokenEnd: UnsafePointer<JSONToken> { token + Int(token.pointee.span) }
  /// Whether the value has no white space outside strings.
  @inlinable public var isCompact: Bool { token.pointee.info & JSONToken.hasSpaces == 0 }
  /// The value of `true` or `false`; nil for other kinds.
  @inlinable public var bool: Bool? { isKind(.true) ? true : isKind(.false) ? false : nil }
  /// Whether this is `null`.
  @inlinable public var isNull: Bool { isKind(.null) }

  /// The number of elements, or of members, duplicate names included; 0 for scalars. O(1) below 16 million, otherwise
  /// O(count).
  @inlinable public var count: Int {
    let stored = token.pointee.info &>> JSONToken.countShift
    return stored < JSONToken.countLimit ? Int(stored) : walkedCount
  }

  /// The count of a container whose count does not fit in its token. O(count).
  @usableFromInline var walkedCount: Int {
    var count = 0
    for _ in elements { count &+= 1 }
    if count == 0 { for _ in members { count &+= 1 } }
    return count
  }
}

extension JSONView {
  /// The value of a number that is an integer in the range of `Int`, however it is written, such as `1e2` or `1.0`; nil for
  /// other numbers and kinds.
  public var int: Int? {
    guard isKind(.number) else { return nil }
    let bytes = UnsafeBufferPointer(start: start, count: Int(token.pointee.length))
    if token.pointee.info & JSONToken.isPlainInteger != 0, bytes.count <= 18 { return JSONNumber.shortInteger(bytes) }
    return JSONNumber(bytes).int
  }

  /// Whether the value is a number of at most 18 bytes, all of them digits or the sign.
  @inline(__always)
  public var isShortInteger: Bool {
    isKind(.number) && token.pointee.info & JSONToken.isPlainInteger != 0 && token.pointee.length <= 18
  }
}

extension ByteBuffer {
  /// Appends the text of a value without white space outside strings. O(bytes); one copy if there is no such space.
  public mutating func append(compact view: JSONView) {
    guard !view.isCompact else { return append(view.text) }
    reserve(view.text.count)
    view.forEachCompactPiece { append($0) }
  }
}

extension JSONView {
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

extension JSONView {
  /// Whether two values are equal by RFC 9535, section 2.3.5.2.2: numbers by exact value, strings by code points, arrays
  /// by their elements in order, objects as maps, where the last member of a name counts.
  ///
  /// O(n log n) in the length of the texts; O(n) if they are the same bytes.
  /// - Parameter pause: called now and then by a long comparison.
  public func equals(_ other: JSONView, pause: () -> Void = {}) -> Bool {
    // Not repeated for nested containers: that would cost a pass over the text for each level.
    if sameText(other) { return true }
    switch shallow(other) {
    case .equal: return true
    case .different: return false
    case .containers: break
    }
    guard var pairs = ChildPairs(self, other, pause) else { return false }
    var outer: [ChildPairs] = []
    while true {
      pause()
      guard let (a, b) = pairs.next() else {
        guard let last = outer.popLast() else { return true }
        pairs = last
        continue
      }
      switch a.shallow(b) {
      case .equal: continue
      case .different: return false
      case .containers:
        guard let inner = ChildPairs(a, b, pause) else { return false }
        outer.append(pairs)
        pairs = inner
      }
    }
  }

  fileprivate enum Shallow { case equal, different, containers }

  /// Compares as far as possible without looking into containers.
  fileprivate func shallow(_ other: JSONView) -> Shallow {
    guard kind == other.kind else { return .different }
    switch kind {
    case .null, .false, .true: return .equal
    case .number: return JSONNumber.compare(text, other.text) == 0 ? .equal : .different
    case .string: return stringEquals(other) ? .equal : .different
    case .array, .object: return .containers
    }
  }

  private func sameText(_ other: JSONView) -> Bool {
    token.pointee.length == other.token.pointee.length && Words.equal(start, other.start, text.count)
  }

  fileprivate func stringEquals(_ other: JSONView) -> Bool {
    if hasEscapes == other.hasEscapes && sameText(other) { return true }
    return (hasEscapes || other.hasEscapes) && compareString(other) == 0
  }

  /// The last member of each name, sorted by name.
  fileprivate func sortedMembers(_ pause: () -> Void) -> [Member] {
    var sorted = Array(members)
    sorted.sort { a, b in
      pause()
      let order = a.key.compareString(b.key)
      return order != 0 ? order < 0 : a.value.byteOffset > b.value.byteOffset
    }
    var kept: [Member] = []
    kept.reserveCapacity(sorted.count)
    for member in sorted {
      if let last = kept.last, last.key.stringEquals(member.key) { continue }
      kept.append(member)
    }
    return kept
  }
}

/// The pairs of children that must be equal for two containers to be equal, one after another.
private enum ChildPairs: IteratorProtocol {
  case elements(JSONView.Elements, JSONView.Elements)
  case members([JSONView.Member], [JSONView.Member], next: Int)

  /// The pairs of two containers of one kind; nil if these cannot be equal.
  init?(_ left: JSONView, _ right: JSONView, _ pause: () -> Void) {
    if left.isKind(.array) {
      guard left.count == right.count else { return nil }
      self = .elements(left.elements, right.elements)
      return
    }
    let (mine, theirs) = (left.sortedMembers(pause), right.sortedMembers(pause))
    guard mine.count == theirs.count else { return nil }
    self = .members(mine, theirs, next: 0)
  }

  /// Returns the values of the next pair, or two different names.
  mutating func next() -> (JSONView, JSONView)? {
    switch self {
    case .elements(var left, var right):
      guard let a = left.next(), let b = right.next() else { return nil }
      self = .elements(left, right)
      return (a, b)
    case .members(let left, let right, let place):
      guard place < left.count else { return nil }
      self = .members(left, right, next: place + 1)
      guard left[place].key.stringEquals(right[place].key) else { return (left[place].key, right[place].key) }
      return (left[place].value, right[place].value)
    }
  }
}
