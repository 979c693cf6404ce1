extension JSONView {
  /// A member of an object.
  @frozen public struct Member {
    /// The name, a string.
    public let key: JSONView
    /// The value.
    public let value: JSONView

    @inlinable init(key: JSONView, value: JSONView) {
      self.key = key
      self.value = value
    }
  }

  /// A sequence of the members of an object in the order of the text, duplicate names included; empty for other kinds.
  @frozen public struct Members: Sequence, IteratorProtocol {
    @usableFromInline let base: UnsafePointer<UInt8>
    @usableFromInline var token: UnsafePointer<JSONToken>
    @usableFromInline let end: UnsafePointer<JSONToken>

    @inlinable init(_ view: JSONView) {
      base = view.base
      token = view.token + 1
      end = view.isKind(.object) ? view.tokenEnd : view.token + 1
    }

    /// The next member. O(1).
    @inlinable public mutating func next() -> Member? {
      guard token < end else { return nil }
      let key = token
      token = key + 1 + Int(key[1].span)
      return Member(key: JSONView(base: base, token: key), value: JSONView(base: base, token: key + 1))
    }
  }

  /// The members of an object in the order of the text, duplicate names included; empty for other kinds.
  @inlinable public var members: Members { Members(self) }

  /// The value of the last member `name`; nil if there is none and for other kinds. O(members).
  @inlinable public func member(_ name: StaticString) -> JSONView? {
    name.withUTF8Buffer { findMember($0) }
  }

  /// The value of the last member whose decoded name is `name`; nil if there is none and for other kinds. O(members).
  @inlinable public func member(utf8 name: UnsafeRawBufferPointer) -> JSONView? {
    name.withMemoryRebound(to: UInt8.self) { findMember($0) }
  }

  @usableFromInline func findMember(_ name: UnsafeBufferPointer<UInt8>) -> JSONView? {
    guard isKind(.object) else { return nil }
    // No text has a name of 4 GiB.
    guard let quoted = UInt32(exactly: name.count &+ 2) else { return nil }
    let end = tokenEnd
    var key = token + 1
    var found: UnsafePointer<JSONToken>?
    while key < end {
      let length = key.pointee.length
      if length == quoted {
        if key.pointee.info & JSONToken.hasEscapes == 0, hasName(key, name) { found = key + 1 }
      } else if length > quoted, key.pointee.info & JSONToken.hasEscapes != 0 {
        if JSONView(base: base, token: key).decodedEquals(name) { found = key + 1 }
      }
      key += 1 &+ Int(key[1].span)
    }
    return found.map { JSONView(base: base, token: $0) }
  }

  @inline(__always)
  private func hasName(_ key: UnsafePointer<JSONToken>, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let wanted = name.baseAddress else { return name.isEmpty }
    return Words.equal(base + (Int(key.pointee.offset) &+ 1), wanted, name.count)
  }
}

extension JSONView {
  /// A sequence of the elements of an array; empty for other kinds.
  @frozen public struct Elements: Sequence, IteratorProtocol {
    @usableFromInline let base: UnsafePointer<UInt8>
    @usableFromInline var token: UnsafePointer<JSONToken>
    @usableFromInline let end: UnsafePointer<JSONToken>

    @inlinable init(_ view: JSONView) {
      base = view.base
      token = view.token + 1
      end = view.isKind(.array) ? view.tokenEnd : view.token + 1
    }

    /// The next element. O(1).
    @inlinable public mutating func next() -> JSONView? {
      guard token < end else { return nil }
      let view = JSONView(base: base, token: token)
      token += Int(token.pointee.span)
      return view
    }
  }

  /// The elements of an array; empty for other kinds.
  @inlinable public var elements: Elements { Elements(self) }

  /// Whether all elements of an array are scalars, so that `element(at:)` is O(1).
  @inlinable public var hasOnlyScalars: Bool { Int(token.pointee.span) == count &+ 1 }

  /// The element at `index`; nil if it is out of range and for other kinds. O(1) if `hasOnlyScalars`, otherwise O(index).
  @inlinable public func element(at index: Int) -> JSONView? {
    guard index >= 0, index < count, isKind(.array) else { return nil }
    if hasOnlyScalars { return JSONView(base: base, token: token + (index &+ 1)) }
    var element = token + 1
    for _ in 0..<index { element += Int(element.pointee.span) }
    return JSONView(base: base, token: element)
  }
}
