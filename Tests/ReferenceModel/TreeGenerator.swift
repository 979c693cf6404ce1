import TestSupport

/// Thinks up operations for a tree as it is: mostly ones that are possible, sometimes ones that must be refused.
struct TreeGenerator {
  var random: SeededRandom
  /// The present time in milliseconds since 1970, if elements may expire.
  var now: Int?

  static let names = [
    "a0", "a1", "a2", "s0", "s1", "c0", "c1", "p0", "p1", "p2", "p3", "g0", "g1", "g2", "m0", "m1", "m2",
    "v0", "v1", "v2",
  ]
  /// Managed feeds, which only the daemon's configuration defines.
  static let managedNames = ["q0", "q1", "q2"]
  /// Feeds that show more rows than this get no further children, for diamonds multiply.
  private static let mostRows = 120

  mutating func below(_ count: Int) -> Int { Int.random(in: 0..<max(1, count), using: &random) }
  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
  mutating func pick<Item>(_ items: [Item]) -> Item { items[below(items.count)] }

  mutating func element(id: Bool) -> TreeElement {
    var element = TreeElement(
      id: id ? below(12) : nil, v: chance(90) ? below(9) : nil, k: chance(85) ? pick(["A", "B", "C"]) : nil,
      n: below(4))
    if let now, chance(15) { element.x = max(0, now + pick([-500, 0, 1, 1000, 2500, 6000, 20_000])) }
    return element
  }

  mutating func elements(id: Bool, upTo most: Int) -> [TreeElement] {
    (0..<(1 + below(most))).map { _ in element(id: id && (most > 3 || !chance(1))) }
  }

  mutating func operation(on tree: TreeReference, _ views: [String: TreeView]) -> TreeOperation {
    if chance(4) { return definition(on: tree, views) }
    let known = tree.feeds.keys.sorted()
    guard !known.isEmpty, !chance(1) else { return .define(newDefinition(Self.names[below(7)], tree), replace: false) }
    let name = pick(known)
    guard let feed = tree.feeds[name] else { return .undefine(name) }
    if chance(2) { return misplaced(name, tree) }
    switch feed.definition.content {
    case .list(let list) where list.isSingle:
      if chance(25) { return .patch(name, [patch(.only)]) }
      return .put(name, chance(30) ? nil : element(id: false))
    case .list(let list): return edit(name, feed.items, list)
    case .collection: return push(name, feed)
    case .composed, .segmented: return restructure(name, feed, tree, views)
    case .slots, .view: return definition(on: tree, views)
    case .managed: return misplaced(name, tree)
    }
  }

  private mutating func edit(_ name: String, _ items: [TreeFeed.Item], _ list: TreeList) -> TreeOperation {
    let count = items.count
    let last = chance(3) ? count + 2 : count
    // Elements of two arrays have identities before the definition says so, or it could not say so.
    let hasID = list.hasID || name != "a0"
    if list.hasID && chance(50) { return editByIdentity(name, items) }
    if chance(10) { return .patch(name, (0..<(1 + below(3))).map { _ in patch(.row(below(last))) }) }
    switch below(count > 7 ? 5 : 10) {
    case 0: return .remove(name, at: chance(3) ? [0, 0] : rows(last))
    case 1, 2: return .move(name, from: below(last), to: below(last))
    case 3:
      var kept = items.map(\.element)
      for _ in 0..<below(3) where !kept.isEmpty { kept.remove(at: below(kept.count)) }
      for _ in 0..<below(3) { kept.insert(element(id: hasID), at: below(kept.count + 1)) }
      if chance(20) { kept.shuffle(using: &random) }
      if list.hasID && chance(80) {
        var seen: Set<Int?> = []
        kept.removeAll { !seen.insert($0.id).inserted }
        for row in kept.indices where chance(20) { kept[row].n = below(4) }
      }
      return .set(name, Array(kept.prefix(8)))
    case 4, 5:
      var elements = elements(id: hasID, upTo: 3)
      let rows = elements.map { _ in below(last) }
      // Mostly with the identity that is there.
      for (place, row) in rows.enumerated() where list.hasID && row < count && chance(60) {
        elements[place].id = items[row].element.id
      }
      return .replace(name, elements, at: rows)
    default:
      var elements = elements(id: hasID, upTo: 3)
      if list.hasID && chance(90) {
        var seen = Set(items.map(\.element.id))
        elements.removeAll { !seen.insert($0.id).inserted }
      }
      if chance(30) { return .insert(name, elements, at: nil) }
      return .insert(name, elements, at: elements.indices.map { below(last + $0 + 1) })
    }
  }

  private mutating func editByIdentity(_ name: String, _ items: [TreeFeed.Item]) -> TreeOperation {
    let known = items.compactMap(\.element.id)
    func id(_ generator: inout TreeGenerator) -> Int {
      known.isEmpty || generator.chance(3) ? generator.below(12) : generator.pick(known)
    }
    switch below(12) {
    case 0: return .delete(name, (0..<(1 + below(3))).map { _ in below(12) })
    case 1: return .deleteWhere(name, v: below(9))
    case 2, 3: return .moveByID(name, id(&self), to: below(items.count))
    case 4:
      return .patch(
        name, (0..<(1 + below(3))).map { _ in patch(chance(70) ? .id(id(&self)) : .row(below(items.count))) })
    case 5, 6:
      guard !items.isEmpty else { return .update(name, [element(id: true)]) }
      var element = pick(items).element
      if chance(80) { element.v = below(9) } else { element.n = below(4) }
      return .update(name, [element])
    default: return .update(name, elements(id: !chance(1), upTo: 3))
    }
  }

  private mutating func patch(_ key: TreeOperation.Patch.Key) -> TreeOperation.Patch {
    TreeOperation.Patch(key: key, n: below(4), removesV: chance(20))
  }

  /// Some different rows, in any order.
  private mutating func rows(_ count: Int) -> [Int] {
    Array((0..<max(1, count)).shuffled(using: &random).prefix(1 + below(3)))
  }

  private mutating func push(_ name: String, _ feed: TreeFeed) -> TreeOperation {
    if chance(3) { return .deleteWhere(name, v: below(9)) }
    if chance(12) {
      let known = feed.elements.keys.sorted()
      let ids = (0..<(1 + below(3))).map { _ in known.isEmpty || chance(3) ? below(12) : pick(known) }
      return .patch(name, ids.map { patch(.id($0)) })
    }
    switch below(12) {
    case 0, 1: return .delete(name, (0..<(1 + below(3))).map { _ in below(12) })
    case 2: return .set(name, elements(id: true, upTo: 8))
    case 3: return .update(name, elements(id: true, upTo: 3))
    case 4...6:
      // A known one, a little different.
      guard
        var element = feed.elements.sorted(by: { $0.key < $1.key }).map(\.value.element).randomElement(using: &random)
      else { return .update(name, elements(id: true, upTo: 2)) }
      if chance(80) { element.v = below(9) } else { element.n = below(4) }
      return .update(name, [element])
    default: return .update(name, [element(id: !chance(1))])
    }
  }

  /// An operation that the feed is of the wrong kind for, or that names what is not there.
  private mutating func misplaced(_ name: String, _ tree: TreeReference) -> TreeOperation {
    let name = chance(30) ? pick(tree.names) : chance(30) ? "nobody" : name
    switch below(tree.feeds[name]?.managed == nil ? 8 : 12) {
    case 0: return .insert(name, [element(id: false)], at: nil)
    case 1: return .put(name, nil)
    case 2: return .update(name, [element(id: true)])
    case 3: return .set(name, [element(id: true)])
    case 4: return .insertChild(name, pick(tree.names + ["nobody"]), .end)
    case 5: return .activate(name, .name("nobody"))
    case 6: return .removeChild(name, .index(-1))
    case 8: return .patch(name, [patch(.id(below(12)))])
    case 9: return .deleteWhere(name, v: below(9))
    case 10: return .undefine(name)
    case 11: return .define(newDefinition("c0", tree, as: name), replace: chance(50))
    default: return .move(name, from: 0, to: 0)
    }
  }

  private mutating func restructure(
    _ name: String, _ feed: TreeFeed, _ tree: TreeReference, _ views: [String: TreeView]
  ) -> TreeOperation {
    let children = feed.children ?? []
    let isLarge = children.count > 3 || (views[name]?.rows.count ?? 0) > Self.mostRows
    if case .segmented = feed.definition.content, chance(40) {
      let isIndex = children.isEmpty || chance(60)
      return .activate(name, isIndex ? .index(below(children.count + 3) - 2) : .name(pick(children)))
    }
    if isLarge || !children.isEmpty && chance(35) {
      let isIndex = children.isEmpty || chance(50)
      return .removeChild(name, isIndex ? .index(below(children.count)) : .name(pick(children)))
    }
    let child = chance(3) ? "nobody" : smallSource(tree, views)
    switch below(5) {
    case 0: return .insertChild(name, child, .end)
    case 1: return .insertChild(name, child, .index(below(children.count + (chance(5) ? 3 : 1))))
    case 2: return .insertChild(name, child, .before(children.isEmpty ? "nobody" : pick(children)))
    default:
      return .insertChild(name, child, .after(children.isEmpty || chance(4) ? pick(tree.names) : pick(children)))
    }
  }

  /// A feed that is not too large to be a child.
  mutating func smallSource(_ tree: TreeReference, _ views: [String: TreeView]) -> String {
    let names = tree.names.filter { (views[$0]?.rows.count ?? 0) < Self.mostRows }
    return names.isEmpty ? "nobody" : pick(names)
  }
}
