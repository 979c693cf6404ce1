import FeedJSON

/// The definition of a slots feed, with the feeds of its types.
///
/// Types are numbered in the order of first appearance in the definition. Plans are compared by identity: rows of
/// different plans are different rows.
final class SlotsPlan {
  let definition: SlotsDefinition
  let rule: SlotsRule
  /// The content of each type; nil for a type without content.
  let contents: [Feed?]
  /// Whether rows have their own types instead of those of `contents`.
  var showsOwnTypes: Bool { definition.types == .element }
  /// The names of the types as JSON strings, by number.
  let typeNames: [QuotedName]

  init(_ definition: SlotsDefinition, contents feeds: [String: Feed]) {
    var numbers: [String: Int] = [:]
    var names: [String] = []
    func number(_ type: String) -> Int {
      if let known = numbers[type] { return known }
      numbers[type] = names.count
      names.append(type)
      return names.count - 1
    }
    for content in definition.contents { _ = number(content.type) }
    let fixed = definition.fixed.map { ($0.position, number($0.type)) }
    rule = SlotsRule(
      pattern: definition.pattern.map(number), header: definition.header.map(number),
      repeatables: Set(definition.repeatables.map(number)), defaultType: definition.defaultType.map(number),
      fixed: Dictionary(fixed, uniquingKeysWith: { _, last in last }))
    self.definition = definition
    typeNames = names.map(QuotedName.init)
    contents = names.map { feeds[$0] }
  }
}

/// A name as a JSON string, at an address that is stable while this object exists.
final class QuotedName {
  private var buffer = ByteBuffer()

  init(_ name: String) {
    buffer.appendJSONString(name)
  }

  var bytes: UnsafeRawBufferPointer { buffer.bytes }
}
