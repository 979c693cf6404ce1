extension SlotsFeed.Plan {
  /// The plan of a definition: types numbered in the order in which the definition names them first.
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
    typeNames = names
    contents = names.map { feeds[$0] }
  }
}
