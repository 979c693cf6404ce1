extension JSONView {
  /// The elements of an array in order; none for other kinds.
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

  /// The elements of an array in order; none for other kinds.
  @inlinable public var elements: Elements { Elements(self) }

  /// The element with that index, from 0; nil past the ends and for other kinds. O(1) among scalars, else O(index).
  @inlinable public func element(at index: Int) -> JSONView? {
    guard index >= 0, index < count, isKind(.array) else { return nil }
    if Int(token.pointee.span) == count &+ 1 { return JSONView(base: base, token: token + (index &+ 1)) }
    var element = token + 1
    for _ in 0..<index { element += Int(element.pointee.span) }
    return JSONView(base: base, token: element)
  }
}
