import FeedChange
import FeedJSON

/// Reads the named parameters of a request. Errors name the parameter and the expected value.
///
///     let parameters = Parameters(object: request.params)
///     let feed = try parameters.string("feed", "the name of a feed")
///     let count = try parameters.count("count", default: 100)
///
/// All errors are `invalidParams` ("Errors" in `Protocol/README.md`). Reading a parameter is O(members).
public struct Parameters {
  /// The object of the parameters; nil if the request has none.
  public let object: JSONView?
  /// Bit n is set if a name may have n bytes, so that most absent parameters are found to be absent without a search.
  @usableFromInline let lengths: UInt64

  /// Creates a reader of the members of `object`. O(members).
  public init(object: JSONView?) {
    self.object = object
    if object?.values(named: "feed", "element") != nil {
      lengths = Self.bit(ofLength: 4) | Self.bit(ofLength: 7)
    } else {
      lengths = object.map(Self.lengths) ?? 0
    }
  }

  /// The values of `feed` and `element` if there are no other parameters, as in most updates; nil if there are, or if they are in
  /// another order. O(1).
  @inlinable @inline(__always)
  public var feedAndElement: (JSONView, JSONView)? { object?.values(named: "feed", "element") }

  /// Returns a parameter of any kind; nil if it is absent.
  @inlinable @inline(__always)
  public func member(_ name: StaticString) -> JSONView? {
    guard lengths & Self.bit(ofLength: name.utf8CodeUnitCount) != 0 else { return nil }
    return object?.member(name)
  }

  private static func lengths(of object: JSONView) -> UInt64 {
    var lengths: UInt64 = 0
    for member in object.members {
      // An escaped name is longer than what it stands for.
      lengths |= member.key.hasEscapes ? .max : bit(ofLength: member.key.text.count - 2)
    }
    return lengths
  }

  /// The bit of a length; all lengths from 63 on share one.
  @inlinable @inline(__always) static func bit(ofLength length: Int) -> UInt64 { 1 &<< UInt64(min(length, 63)) }

  /// Returns a parameter of any kind.
  /// - Parameter what: the expected value in words, for the error.
  /// - Throws: if it is absent.
  public func required(_ name: StaticString, _ what: StaticString) throws(FeedError) -> JSONView {
    guard let value = member(name) else { throw Self.refuse(name, "is missing: give \(what)") }
    return value
  }

  /// Returns a string. Escapes are decoded.
  public func string(_ name: StaticString, _ what: StaticString) throws(FeedError) -> String {
    guard let string = try required(name, what).string else { throw Self.refuse(name, "must be a string: \(what)") }
    return string
  }

  /// Returns the name of a feed or bin. A string that is too long for one is not decoded.
  public func name(_ name: StaticString, _ what: StaticString) throws(FeedError) -> String {
    guard let string = try required(name, what).truncatedName else {
      throw Self.refuse(name, "must be a string: \(what)")
    }
    return string
  }

  /// Throws if two parameters that exclude each other are both present.
  public func refuseBoth(_ one: StaticString, _ other: StaticString) throws(FeedError) {
    if member(other) != nil && member(one) != nil { throw Self.refuse(other, Self.exclusion(of: "\(one)")) }
  }

  /// The reason to refuse a parameter that is given together with another one.
  public static func exclusion(of other: String) -> String { "cannot be combined with \(other); give one of them" }

  /// Returns an array.
  public func array(_ name: StaticString, _ what: StaticString) throws(FeedError) -> JSONView {
    let value = try required(name, what)
    guard value.kind == .array else { throw Self.refuse(name, "must be \(what)") }
    return value
  }

  /// Returns an integer; `fallback` if it is absent, or an error if there is no fallback.
  public func integer(_ name: StaticString, default fallback: Int? = nil) throws(FeedError) -> Int {
    guard let value = member(name) else {
      if let fallback { return fallback }
      throw Self.refuse(name, "is missing: give an integer")
    }
    guard let number = value.int else { throw Self.refuse(name, "must be an integer") }
    return number
  }

  /// Returns a non-negative integer; `fallback` if it is absent.
  public func count(_ name: StaticString, default fallback: Int) throws(FeedError) -> Int {
    guard let value = member(name) else { return fallback }
    guard let number = value.int, number >= 0 else { throw Self.refuse(name, "must be a non-negative integer") }
    return number
  }

  /// Returns a boolean; `fallback` if it is absent.
  public func bool(_ name: StaticString, default fallback: Bool) throws(FeedError) -> Bool {
    guard let value = member(name) else { return fallback }
    guard let bool = value.bool else { throw Self.refuse(name, "must be true or false") }
    return bool
  }

  /// Returns the integers of an index path `[section, row]`. They can be negative or too large.
  public func path(_ name: StaticString) throws(FeedError) -> (section: Int, row: Int) {
    guard let path = try required(name, "an index path [section, row]").path else {
      throw Self.refuse(name, "must be an index path [section, row] of integers")
    }
    return path
  }

  /// Creates the error of a parameter; `reason` follows its name.
  public static func refuse(_ name: StaticString, _ reason: String) -> FeedError {
    .invalidParams(member: "\(name)", reason: reason)
  }
}

extension JSONView {
  /// The maximum length of the JSON text of a name of 257 characters, in bytes: each one is an escape. Names of feeds and
  /// bins are shorter.
  private static var longestName: Int { 2 + 6 * 257 }

  /// The string; nil for other kinds. A string that is too long for any name is truncated and not decoded, so that refusing
  /// it does not take time and memory for its whole length.
  public var truncatedName: String? {
    guard kind == .string, text.count > Self.longestName else { return string }
    return String(decoding: text.dropFirst().prefix(Self.longestName), as: UTF8.self) + "…"
  }

  /// The integers of `[section, row]`; nil for other values.
  public var path: (section: Int, row: Int)? {
    guard kind == .array, count == 2, let section = element(at: 0)?.int, let row = element(at: 1)?.int else {
      return nil
    }
    return (section, row)
  }
}

extension FeedError {
  /// The error as that of an operation of a transaction: with its index in `ops`, and with the feed of its parameters.
  public func ofOperation(at index: Int, _ params: JSONView?) -> FeedError {
    .operationFailed(index: index, naming(params?.member("feed")?.truncatedName))
  }
}
