import FeedJSON
import FeedModel

/// The named parameters of a request, read with errors that name the parameter and what it should hold.
struct Parameters {
  let object: JSONView?

  func member(_ name: StaticString) -> JSONView? {
    object?.member(name)
  }

  func required(_ name: StaticString, _ what: StaticString) throws(FeedError) -> JSONView {
    guard let value = member(name) else { throw Self.refuse(name, "is missing: give \(what)") }
    return value
  }

  func string(_ name: StaticString, _ what: StaticString) throws(FeedError) -> String {
    guard let string = try required(name, what).string else { throw Self.refuse(name, "must be a string: \(what)") }
    return string
  }

  /// Refuses a request that gives one thing in two ways.
  func refuseBoth(_ one: StaticString, _ other: StaticString) throws(FeedError) {
    if member(one) != nil && member(other) != nil {
      throw Self.refuse(other, "must not stand beside \(one); give one of them")
    }
  }

  func array(_ name: StaticString, _ what: StaticString) throws(FeedError) -> JSONView {
    let value = try required(name, what)
    guard value.kind == .array else { throw Self.refuse(name, "must be \(what)") }
    return value
  }

  /// A whole number.
  func integer(_ name: StaticString) throws(FeedError) -> Int {
    guard let number = try required(name, "a whole number").int else {
      throw Self.refuse(name, "must be a whole number")
    }
    return number
  }

  /// A whole number from 0 on; `fallback` when it is absent.
  func count(_ name: StaticString, default fallback: Int? = nil) throws(FeedError) -> Int {
    guard let value = member(name) else {
      if let fallback { return fallback }
      throw Self.refuse(name, "is missing: give a whole number from 0 on")
    }
    guard let number = value.int, number >= 0 else { throw Self.refuse(name, "must be a whole number from 0 on") }
    return number
  }

  func bool(_ name: StaticString, default fallback: Bool) throws(FeedError) -> Bool {
    guard let value = member(name) else { return fallback }
    guard let bool = value.bool else { throw Self.refuse(name, "must be true or false") }
    return bool
  }

  /// An index path `[section, row]`.
  func path(_ name: StaticString) throws(FeedError) -> (section: Int, row: Int) {
    let value = try required(name, "an index path [section, row]")
    guard value.kind == .array, value.count == 2, let section = value.element(at: 0)?.int,
      let row = value.element(at: 1)?.int, section >= 0, row >= 0
    else { throw Self.refuse(name, "must be an index path [section, row] of whole numbers from 0 on") }
    return (section, row)
  }

  static func refuse(_ name: StaticString, _ reason: String) -> FeedError {
    .invalidParams(member: "\(name)", reason: reason)
  }
}
