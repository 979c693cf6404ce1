import FeedChange
import FeedJSON

/// Members that hold numbers and lists.
extension DefinitionReader {
  func positiveInteger(_ member: StaticString) throws(FeedError) -> Int? {
    guard let value = object.member(member) else { return nil }
    guard let number = value.int, number > 0 else { throw refuse("\(member)", "must be a whole number above 0") }
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
    guard let number = value.int else { throw refuse("\(member)", "must be a whole number") }
    return number
  }

  /// Strings, such as type names.
  func strings(_ member: StaticString) throws(FeedError) -> [String]? {
    guard let array = try array(member) else { return nil }
    var strings: [String] = []
    for (index, element) in array.elements.enumerated() {
      guard let string = element.string else { throw refuse("\(member)[\(index)]", "must be a string") }
      strings.append(string)
    }
    return strings
  }

  /// Names of feeds or bins.
  func feedNames(_ member: StaticString) throws(FeedError) -> [String]? {
    guard let names = try strings(member) else { return nil }
    for (index, name) in names.enumerated() where !FeedName.isValidReference(name) {
      throw refuse("\(member)[\(index)]", "must name a feed, or a bin as collection/bin")
    }
    return names
  }
}
