/// A section that a change inserts.
///
/// A short name is held in place, so that most additions take no memory of their own.
@frozen public struct SectionAddition: Hashable, Sendable {
  /// The section's index after the change.
  public var at: UInt32
  /// The bytes of a name held in place; 0 for a longer one. The highest bit is set for a section by value.
  @usableFromInline let lengthAndKind: UInt32
  @usableFromInline let short: ShortText
  /// A name that is not held in place; empty otherwise.
  @usableFromInline let long: String

  @usableFromInline static var byValue: UInt32 {
    @inlinable get { 1 << 31 }
  }

  /// Creates the insertion of the section `name` at index `at`.
  ///
  /// - Parameters:
  ///   - name: UTF-8.
  ///   - isByValue: whether it is a section by value, whose name tells the value.
  @inlinable public init(at: UInt32, name: UnsafeRawBufferPointer, isByValue: Bool = false) {
    self.at = at
    let kind = isByValue ? Self.byValue : 0
    if name.count <= ShortText.capacity {
      (lengthAndKind, short, long) = (UInt32(truncatingIfNeeded: name.count) | kind, ShortText(name), "")
    } else {
      (lengthAndKind, short, long) = (kind, ShortText(), String(decoding: name, as: UTF8.self))
    }
  }

  /// Creates the insertion of the section `name` at index `at`.
  public init(at: UInt32, name: String, isByValue: Bool = false) {
    var name = name
    self = name.withUTF8 { SectionAddition(at: at, name: UnsafeRawBufferPointer($0), isByValue: isByValue) }
  }

  /// Whether it is a section by value.
  @inlinable public var isByValue: Bool { lengthAndKind & Self.byValue != 0 }

  @usableFromInline var shortLength: UInt32 {
    @inlinable get { lengthAndKind & ~Self.byValue }
  }

  /// The section's name: that of the feed or the bin whose rows it holds.
  public var name: String { long.isEmpty ? withNameBytes { String(decoding: $0, as: UTF8.self) } : long }

  /// The length of the name in bytes of UTF-8.
  @inlinable public var nameLength: Int { shortLength > 0 ? Int(shortLength) : long.utf8.count }

  /// Calls `body` with the name as UTF-8.
  @inlinable public func withNameBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    if shortLength > 0 || long.isEmpty {
      return withUnsafeBytes(of: short) { body(UnsafeRawBufferPointer(rebasing: $0[..<Int(shortLength)])) }
    }
    var name = long
    return name.withUTF8 { body(UnsafeRawBufferPointer($0)) }
  }

  /// The insertion of the same section at another index.
  @usableFromInline package func moved(to index: UInt32) -> SectionAddition {
    var result = self
    result.at = index
    return result
  }
}

/// A few bytes, padded with zeros.
@frozen @usableFromInline struct ShortText: Hashable, Sendable {
  @usableFromInline static var capacity: Int {
    @inlinable get { MemoryLayout<ShortText>.size }
  }

  @usableFromInline var words = (UInt64(0), UInt64(0), UInt64(0), UInt64(0))

  @inlinable init() {}

  /// - Precondition: there are at most `capacity` bytes.
  @inlinable init(_ bytes: UnsafeRawBufferPointer) {
    withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: bytes) }
  }

  @usableFromInline static func == (left: ShortText, right: ShortText) -> Bool { left.words == right.words }

  @usableFromInline func hash(into hasher: inout Hasher) { withUnsafeBytes(of: words) { hasher.combine(bytes: $0) } }
}
