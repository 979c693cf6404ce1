/// Definitions, new ones and other ones for feeds that are there.
extension TreeGenerator {
  mutating func definition(on tree: TreeReference, _ views: [String: TreeView]) -> TreeOperation {
    let name = pick(Self.names)
    guard let known = tree.feeds[name] else { return .define(newDefinition(name, tree, views), replace: chance(10)) }
    switch below(20) {
    case 0...2: return .undefine(name)
    case 3: return .define(known.definition, replace: chance(50))
    case 4: return .define(known.given, replace: chance(30))
    case 5: return .define(newDefinition(pick(Self.names), tree, views, as: name), replace: true)
    case 6: return .define(newDefinition(name, tree, views), replace: false)
    case 7, 8:
      var definition = known.definition
      behave(&definition)
      return .define(definition, replace: true)
    default: return .define(newDefinition(name, tree, views), replace: true)
    }
  }

  /// A definition of the kind that the first letter of `name` stands for.
  mutating func newDefinition(
    _ name: String, _ tree: TreeReference, _ views: [String: TreeView] = [:], as given: String? = nil
  ) -> TreeDefinition {
    let content: TreeDefinition.Content
    switch name.first {
    case "a": content = .list(array(name))
    case "s": content = .list(TreeList(isSingle: true, type: pick([nil, "$.k"])))
    case "c": content = .collection(collection())
    case "p": content = .composed(sources(tree, views))
    case "g":
      let children = sources(tree, views)
      content = .segmented(children, current: below(children.count + 1) - 1)
    case "v": content = .view(window(tree, views))
    default: content = .slots(slots(tree, views))
    }
    var definition = TreeDefinition(name: given ?? name, content: content)
    if chance(30) { behave(&definition) }
    return definition
  }

  private mutating func retention() -> TreeRetention {
    guard now != nil && chance(60) else { return TreeRetention(count: 2 + below(6)) }
    let retention = TreeRetention(
      count: chance(20) ? 3 + below(5) : nil, seconds: chance(50) ? 2 + below(20) : nil, hasTimes: chance(70))
    return retention.isTimed ? retention : TreeRetention(hasTimes: true)
  }

  private mutating func array(_ name: String) -> TreeList {
    var list = TreeList(type: pick([nil, "$.k", "$.n"]))
    list.hasID = chance(name == "a0" ? 10 : 70)
    if chance(35) { list.retain = retention() }
    return list
  }

  /// Another definition of a managed feed.
  mutating func managed(_ name: String) -> TreeDefinition {
    let managed = TreeManaged(
      query: "SELECT \(below(3))", id: chance(70) ? "id" : "v", section: pick([nil, "k", "n"]),
      type: pick([nil, "$.k", "$.n"]))
    var definition = TreeDefinition(name: name, content: .managed(managed))
    if chance(30) { behave(&definition) }
    return definition
  }

  /// Other rows for a managed feed: mostly the ones that it has, some of them deleted, added, changed or moved.
  mutating func rows(of feed: TreeFeed) -> [TreeElement] {
    var rows = feed.sets.flatMap(\.rows).compactMap(\.row.element)
    for _ in 0..<below(3) where !rows.isEmpty { rows.remove(at: below(rows.count)) }
    for _ in 0..<below(4) { rows.insert(element(id: true), at: below(rows.count + 1)) }
    for row in rows.indices where chance(15) {
      if chance(50) { rows[row].n = below(4) } else { rows[row].k = pick([nil, "A", "B", "C"]) }
    }
    if chance(20) { rows.shuffle(using: &random) }
    if chance(5) { rows = [] }
    guard let managed = feed.managed, chance(95) else { return Array(rows.prefix(10)) }
    var seen: Set<Int> = []
    rows.removeAll { row in managed.identity(row).map { !seen.insert($0).inserted } ?? true }
    return Array(rows.prefix(10))
  }

  private mutating func behave(_ definition: inout TreeDefinition) {
    definition.multiple = chance(70)
    definition.selectable = !chance(5)
    definition.editable = !chance(5)
    definition.movable = !chance(5)
  }

  private mutating func collection() -> TreeCollection {
    let names = ["x", "y", "z", "w"].shuffled(using: &random).prefix(1 + below(4))
    let bins = names.map { name in
      TreeCollection.Bin(
        name: name, filter: pick(TreeFilter.allCases),
        sort: chance(50) ? .init(member: pick(["v", "n"]), isDescending: chance(50)) : nil)
    }
    let section = TreeCollection.Section(member: pick(["v", "n", "k"]), isDescending: chance(40))
    if chance(40) {
      return TreeCollection(
        bins: Array(bins.prefix(1)), section: section, isExclusive: chance(10), type: pick([nil, "$.k"]),
        retain: chance(35) ? retention() : nil)
    }
    return TreeCollection(
      bins: bins, isExclusive: chance(30), type: pick([nil, "$.k"]), retain: chance(35) ? retention() : nil)
  }

  private mutating func sources(_ tree: TreeReference, _ views: [String: TreeView]) -> [String] {
    var sources: [String] = []
    for _ in 0..<below(4) {
      let child = smallSource(tree, views)
      if child != "nobody" && (!sources.contains(child) || chance(3)) { sources.append(child) }
    }
    if chance(1) { sources.append("nobody") }
    return sources
  }

  private mutating func window(_ tree: TreeReference, _ views: [String: TreeView]) -> TreeWindow {
    var window = TreeWindow(of: chance(2) ? "nobody" : smallSource(tree, views))
    if chance(50) { window.filter = pick(TreeFilter.allCases) }
    if chance(50) { window.sort = .init(member: pick(["v", "n"]), isDescending: chance(50)) }
    if chance(30) { window.offset = below(4) }
    if chance(60) { window.limit = 1 + below(6) }
    return window
  }

  private mutating func slots(_ tree: TreeReference, _ views: [String: TreeView]) -> TreeSlots {
    let types = ["A", "B", "C", "D"]
    var contents: [TreeSlots.Content] = []
    for feed in sources(tree, views) { contents.append(.init(type: types[contents.count], feed: feed)) }
    var slots = TreeSlots(contents: contents, pattern: list(of: types, 1 + below(4)))
    if chance(40) { slots.repeatables = list(of: types, 1 + below(2)) }
    if chance(30) { slots.header = list(of: types, 1 + below(3)) }
    if chance(25) { slots.defaultType = pick(types) }
    slots.showsOwnTypes = chance(30)
    if chance(35) { for _ in 0..<(1 + below(3)) { slots.fixed[below(9)] = pick(types) } }
    return slots
  }

  private mutating func list(of types: [String], _ count: Int) -> [String] {
    (0..<count).map { _ in pick(types) }
  }
}
