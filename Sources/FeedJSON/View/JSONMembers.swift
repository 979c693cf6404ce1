/// A position among the children of a container. In an object, names and values alternate.
@frozen @usableFromInline struct ChildCursor {
  @usableFromInline let base: UnsafePointer<UInt8>
  /// The token of the next child, or of its name.
  @usableFromInline var token: UnsafePointer<JSONToken>
  @usableFromInline let end: UnsafePointer<JSONToken>

  /// Creates a cursor at the first child. It is at the end if `view` is not a container of `kind`.
  @inlinable @inline(__always) init(_ view: JSONView, of kind: JSONKind) {
    base = view.base
    token = view.token + 1
    end = view.isKind(kind) ? view.tokenEnd : view.token + 1
  }

  /// Returns the token of the next child, or of its name, and advances past the child. Nil at the end.
  /// - Parameter names: the number of tokens before the value of a child: 1 in an object, 0 in an array.
  @inlinable @inline(__always) mutating func next(names: Int) -> JSONView? {
    guard token < end else { return nil }
    let first = token
    token = first + names + Int(first[names].span)
    return JSONView(base: base, token: first)
  }
}

extension JSONView {
  /// A member of an object.
  @frozen public struct Member {
    /// The name, a string.
    public let key: JSONView
    public let value: JSONView

    @inlinable init(key: JSONView, value: JSONView) {
      self.key = key
      self.value = value
    }
  }

  /// A sequence of the members of an object in the order of the text, duplicate names included; empty for other kinds.
  @frozen public struct Members: Sequence, IteratorProtocol {
    @usableFromInline var cursor: ChildCursor

    @inlinable init(_ view: JSONView) { cursor = ChildCursor(view, of: .object) }

    /// Returns the next member. O(1).
    @inlinable public mutating func next() -> Member? {
      guard let key = cursor.next(names: 1) else { return nil }
      return Member(key: key, value: JSONView(base: key.base, token: key.token + 1))
    }
  }

  /// The members of an object in the order of the text, duplicate names included; empty for other kinds.
  @inlinable public var members: Members { Members(self) }

  /// Returns the value of the last member `name`; nil if there is none and for other kinds. O(members).
  @inlinable public func member(_ name: StaticString) -> JSONView? { name.withUTF8Buffer { findMember($0) } }

  /// Returns the value of the last member whose decoded name is `name`; nil if there is none and for other kinds.
  /// O(members).
  @inlinable public func member(utf8 name: UnsafeRawBufferPointer) -> JSONView? {
    name.withMemoryRebound(to: UInt8.self) { findMember($0) }
  }

  /// Returns the member ``member(utf8:)`` of a name that is no literal.
  public func member(named name: String) -> JSONView? {
    var name = name
    return name.withUTF8 { findMember($0) }
  }

  /// The values of an object that has exactly two members with these names, in this order and without escapes; nil for all
  /// others. O(1).
  @inlinable @inline(__always)
  public func values(named first: StaticString, _ second: StaticString) -> (JSONView, JSONView)? {
    guard isKind(.object), count == 2, isPlain(token + 1, first) else { return nil }
    let next = token + (2 &+ Int(token[2].span))
    guard isPlain(next, second) else { return nil }
    return (JSONView(base: base, token: token + 2), JSONView(base: base, token: next + 1))
  }

  /// Whether the string of a token is `text`, without escapes.
  @inlinable @inline(__always)
  func isPlain(_ token: UnsafePointer<JSONToken>, _ text: StaticString) -> Bool {
    let length = text.utf8CodeUnitCount
    return Int(token.pointee.length) == length &+ 2
      && Words.equal(base + (Int(token.pointee.offset) &+ 1), text.utf8Start, length)
  }

  @usableFromInline func findMember(_ name: UnsafeBufferPointer<UInt8>) -> JSONView? {
    guard isKind(.object) else { return nil }
    // A longer name cannot occur: texts are shorter than 4 GiB.
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
    @usableFromInline var cursor: ChildCursor

    @inlinable init(_ view: JSONView) { cursor = ChildCursor(view, of: .array) }

    /// Returns the next element. O(1).
    @inlinable public mutating func next() -> JSONView? { cursor.next(names: 0) }

    /// The place of the first element.
    public static let start = 1

    /// The place of the next element, in the array whose elements these are.
    public func place(in array: JSONView) -> Int { cursor.token - array.token }
  }

  /// The elements of an array; empty for other kinds.
  @inlinable public var elements: Elements { Elements(self) }

  /// The elements of an array from a place on; empty for other kinds. O(1).
  /// - Parameter place: ``Elements/start``, or what ``Elements/place(in:)`` returned for this array or a copy of it.
  public func elements(from place: Int) -> Elements {
    var elements = Elements(self)
    if elements.cursor.token < elements.cursor.end { elements.cursor.token = token + place }
    return elements
  }

  /// Whether all elements of an array are scalars, so that `element(at:)` is O(1).
  @inlinable public var hasOnlyScalars: Bool { Int(token.pointee.span) == count &+ 1 }

  /// Returns the element at `index`; nil if it is out of range and for other kinds. O(1) if `hasOnlyScalars`, otherwise
  /// O(index).
  @inlinable public func element(at index: Int) -> JSONView? {
    guard index >= 0, index < count, isKind(.array) else { return nil }
    if hasOnlyScalars { return JSONView(base: base, token: token + (index &+ 1)) }
    var element = token + 1
    for _ in 0..<index { element += Int(element.pointee.span) }
    return JSONView(base: base, token: element)
  }
}
