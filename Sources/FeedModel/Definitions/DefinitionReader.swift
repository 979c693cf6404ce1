import FeedChange
import FeedJSON
import FeedQuery

/// Reads the members of a definition. An error names the member and the expected value.
///
/// Each method returns nil, or its default, if the member is absent. Strings whose length is limited are refused without
/// being decoded.
struct DefinitionReader {
  let object: JSONView
  /// The prefix of the members' names in errors, such as `bins[2].`; empty for the definition itself.
  let place: String

  func refuse(_ member: String, _ reason: String) -> FeedError {
    .invalidParams(member: place + member, reason: reason)
  }

  func string(_ member: StaticString) throws(FeedError) -> String? {
    guard let value = object.member(member) else { return nil }
    guard let string = value.string else { throw refuse("\(member)", "must be a string") }
    return string
  }

  /// Reads a string of at most `limit` bytes of UTF-8.
  /// - Throws: `invalidParams` with `reason` for a longer string, which is not decoded.
  func string(
    _ member: StaticString, atMost limit: Int, else reason: @autoclosure () -> String
  ) throws(FeedError) -> String? {
    guard let value = object.member(member) else { return nil }
    guard value.kind == .string else { throw refuse("\(member)", "must be a string") }
    guard let string = value.string(atMost: limit) else { throw refuse("\(member)", reason()) }
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

  /// Reads the name of a feed or a bin, which is required; see `FeedName`.
  func name(_ member: StaticString) throws(FeedError) -> String {
    let rule = "must be 1 to \(FeedName.maxLength) of the characters A-Z a-z 0-9 . _ -"
    guard let name = try string(member, atMost: FeedName.maxLength, else: rule) else {
      throw refuse("\(member)", "is missing; give it a name")
    }
    guard FeedName.isValid(name) else { throw refuse("\(member)", rule) }
    return name
  }

  /// Reads the text of a path or a filter, of at most `QueryLimits.textLength` bytes.
  private func query(_ member: StaticString) throws(FeedError) -> String? {
    guard let value = object.member(member), value.kind == .string else { return try string(member) }
    let limit = QueryLimits.textLength
    guard let text = value.string(atMost: limit) else {
      throw .badQuery(
        member: place + "\(member)", text: "", offset: limit,
        reason: "the text is longer than \(grouped(limit)) bytes; shorten it")
    }
    return text
  }

  /// Reads a singular path.
  /// - Throws: `badQuery` with the offset of the error.
  func singularPath(_ member: StaticString) throws(FeedError) -> SingularPath? {
    guard let text = try query(member) else { return nil }
    do {
      return try SingularPath(parsing: text)
    } catch {
      throw .badQuery(member: place + "\(member)", text: text, offset: error.offset, reason: error.message)
    }
  }

  /// Reads a filter.
  /// - Parameter size: the bytes that the filters before it in the definition take.
  /// - Throws: `badQuery` with the offset of the error, or `limitExceeded`.
  func filter(_ member: StaticString, besides size: Int = 0, _ limits: Limits) throws(FeedError) -> Filter? {
    guard let text = try query(member) else { return nil }
    do {
      return try Filter(parsing: text, atMost: limits.maxFilterBytes - size)
    } catch {
      if error.isTooLarge { throw limits.tooLargeFilter("the filters of the definition take") }
      throw .badQuery(member: place + "\(member)", text: text, offset: error.offset, reason: error.message)
    }
  }

  func positiveInteger(_ member: StaticString) throws(FeedError) -> Int? {
    guard let value = object.member(member) else { return nil }
    guard let number = value.int, number > 0 else { throw refuse("\(member)", "must be an integer above 0") }
    return number
  }

  func positiveNumber(_ member: StaticString) throws(FeedError) -> Double? {
    guard let value = object.member(member) else { return nil }
    guard value.kind == .number, let number = Double(String(decoding: value.text, as: UTF8.self)), number > 0,
      number.isFinite
    else { throw refuse("\(member)", "must be a number above 0") }
    return number
  }

  func integer(_ member: StaticString) throws(FeedError) -> Int? {
    guard let value = object.member(member) else { return nil }
    guard let number = value.int else { throw refuse("\(member)", "must be an integer") }
    return number
  }

  /// Reads an array of strings, such as names of types.
  func strings(_ member: StaticString) throws(FeedError) -> [String]? {
    guard let array = try array(member) else { return nil }
    var strings: [String] = []
    for (index, element) in array.elements.enumerated() {
      guard let string = try unambiguous(element, at: "\(member)[\(index)]") else {
        throw refuse("\(member)[\(index)]", "must be a string")
      }
      strings.append(string)
    }
    return strings
  }

  /// The string of a value; nil for other kinds.
  /// - Throws: `invalidParams` for a lone surrogate. It would become U+FFFD, so different strings would become the same.
  func unambiguous(_ value: JSONView, at member: String) throws(FeedError) -> String? {
    let hasSurrogate = value.withDecodedUTF8 { zip($0, $0.dropFirst()).contains { $0 == 0xED && $1 >= 0xA0 } }
    if hasSurrogate == true { throw refuse(member, "has a lone surrogate; give a string of Unicode characters") }
    return value.string
  }

  func unambiguousString(_ member: StaticString) throws(FeedError) -> String? {
    guard let value = object.member(member) else { return nil }
    guard let string = try unambiguous(value, at: "\(member)") else { throw refuse("\(member)", "must be a string") }
    return string
  }

  /// Reads an array of names of feeds or bins; see `FeedName.isValidReference`.
  func feedNames(_ member: StaticString) throws(FeedError) -> [String]? {
    guard let array = try array(member) else { return nil }
    var names: [String] = []
    for (index, element) in array.elements.enumerated() {
      guard element.kind == .string else { throw refuse("\(member)[\(index)]", "must be a string") }
      guard let name = element.string(atMost: FeedName.maxReferenceLength), FeedName.isValidReference(name) else {
        throw refuse("\(member)[\(index)]", "must name a feed, or a bin as collection/bin")
      }
      names.append(name)
    }
    return names
  }
}
