import FeedChange
import FeedJSON
import FeedQuery

/// Reads members of a definition, with errors that name the member and what it should hold.
struct DefinitionReader {
  let object: JSONView
  /// Where the object stands in the request, such as `bins[2].`; empty for the definition itself.
  let place: String

  func refuse(_ member: String, _ reason: String) -> FeedError {
    .invalidParams(member: place + member, reason: reason)
  }

  func string(_ member: StaticString) throws(FeedError) -> String? {
    guard let value = object.member(member) else { return nil }
    guard let string = value.string else { throw refuse("\(member)", "must be a string") }
    return string
  }

  func bool(_ member: StaticString, default fallback: Bool = false) throws(FeedError) -> Bool {
    guard let value = object.member(member) else { return fallback }
    guard let bool = value.bool else { throw refuse("\(member)", "must be true or false") }
    return bool
  }

  func array(_ member: StaticString) throws(FeedError) -> JSONView? {
    guard let value = object.member(member) else { return nil }
    guard value.kind == .array else { throw refuse("\(member)", "must be an array") }
    return value
  }

  /// A name by the rule of `FeedName`.
  func name(_ member: StaticString) throws(FeedError) -> String {
    guard let name = try string(member) else { throw refuse("\(member)", "is missing: give it a name") }
    guard FeedName.isValid(name) else {
      throw refuse("\(member)", "must be 1 to \(FeedName.maxLength) of the characters A-Z a-z 0-9 . _ -")
    }
    return name
  }

  func singularPath(_ member: StaticString) throws(FeedError) -> SingularPath? {
    guard let text = try string(member) else { return nil }
    do {
      return try SingularPath(parsing: text)
    } catch {
      throw .badQuery(member: place + "\(member)", text: text, offset: error.offset, reason: error.message)
    }
  }

  func filter(_ member: StaticString) throws(FeedError) -> Filter? {
    guard let text = try string(member) else { return nil }
    do {
      return try Filter(parsing: text)
    } catch {
      throw .badQuery(member: place + "\(member)", text: text, offset: error.offset, reason: error.message)
    }
  }
}
