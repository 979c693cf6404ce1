import FeedChange
import FeedJSON

/// The named parameters of a request, read with errors that name the parameter and what it should hold.
public struct Parameters {
  public let object: JSONView?

  public init(object: JSONView?) {
    self.object = object
  }

  public func member(_ name: StaticString) -> JSONView? {
    object?.member(name)
  }

  public func required(_ name: StaticString, _ what: StaticString) throws(FeedError) -> JSONView {
    guard let value = member(name) else { throw Self.refuse(name, "is missing: give \(what)") }
    return value
  }

  public func string(_ name: StaticString, _ what: StaticString) throws(FeedError) -> String {
    guard let string = try required(name, what).string else { throw Self.refuse(name, "must be a string: \(what)") }
    return string
  }

  /// Refuses a request that gives one thing in two ways.
  public func refuseBoth(_ one: StaticString, _ other: StaticString) throws(FeedError) {
    if member(one) != nil && member(other) != nil {
      throw Self.refuse(other, "must not stand beside \(one); give one of them")
    }
  }

  public func array(_ name: StaticString, _ what: StaticString) throws(FeedError) -> JSONView {
    let value = try required(name, what)
    guard value.kind == .array else { throw Self.refuse(name, "must be \(what)") }
    return value
  }

  /// A whole number; `fallback` when it is absent.
  public func integer(_ name: StaticString, default fallback: Int? = nil) throws(FeedError) -> Int {
    guard let value = member(name) else {
      if let fallback { return fallback }
      throw Self.refuse(name, "is missing: give a whole number")
    }
    guard let number = value.int else { throw Self.refuse(name, "must be a whole number") }
    return number
  }

  /// A whole number from 0 on; `fallback` when it is absent.
  public func count(_ name: StaticString, default fallback: Int) throws(FeedError) -> Int {
    guard let value = member(name) else { return fallback }
    guard let number = value.int, number >= 0 else { throw Self.refuse(name, "must be a whole number from 0 on") }
    return number
  }

  public func bool(_ name: StaticString, default fallback: Bool) throws(FeedError) -> Bool {
    guard let value = member(name) else { return fallback }
    guard let bool = value.bool else { throw Self.refuse(name, "must be true or false") }
    return bool
  }

  /// An index path `[section, row]`, of any whole numbers.
  public func path(_ name: StaticString) throws(FeedError) -> (section: Int, row: Int) {
    guard let path = try required(name, "an index path [section, row]").path else {
      throw Self.refuse(name, "must be an index path [section, row] of whole numbers")
    }
    return path
  }

  public static func refuse(_ name: StaticString, _ reason: String) -> FeedError {
    .invalidParams(member: "\(name)", reason: reason)
  }
}

extension JSONView {
  /// Bytes of JSON text that the name of a feed or bin takes at most: 257 characters, each of them an escape.
  private static var longestName: Int { 2 + 6 * 257 }

  /// The string, cut short and not decoded when it is longer than any name can be.
  ///
  /// A name of megabytes is so judged by its length. nil when the value is no string.
  public var nameOrItsBeginning: String? {
    guard kind == .string, text.count > Self.longestName else { return string }
    return String(decoding: text.dropFirst().prefix(Self.longestName), as: UTF8.self) + "…"
  }

  /// The whole numbers of `[section, row]`; nil when the value is no such pair.
  public var path: (section: Int, row: Int)? {
    guard kind == .array, count == 2, let section = element(at: 0)?.int, let row = element(at: 1)?.int else {
      return nil
    }
    return (section, row)
  }
}
