/// Composed and segmented feeds.
extension TreeReference {
  mutating func insertChild(_ name: String, _ child: String, _ place: TreeOperation.Place) throws(Refusal) {
    var feed = try feed(name) { $0.children != nil }
    var children = feed.children ?? []
    try check(children + [child], of: name, others: [child])
    let index = try index(of: place, among: children)
    children.insert(child, at: index)
    var current = feed.current
    if children.count == 1 {
      current = 0
    } else if index <= current {
      current += 1
    }
    feed.adopt(children, current: current)
    feeds[name] = feed
    isStructural = true
  }

  mutating func removeChild(_ name: String, _ child: TreeOperation.Child) throws(Refusal) {
    var feed = try feed(name) { $0.children != nil }
    var children = feed.children ?? []
    let index: Int
    switch child {
    case .index(let given): index = given
    case .name(let child): index = try self.index(of: child, among: children)
    }
    guard children.indices.contains(index) else { throw Refusal(code: -32005) }
    children.remove(at: index)
    var current = feed.current
    if index < current || index == current && index == children.count { current -= 1 }
    feed.adopt(children, current: current)
    feeds[name] = feed
    isStructural = true
  }

  mutating func activate(_ name: String, _ child: TreeOperation.Child) throws(Refusal) {
    var feed = try feed(name) { if case .segmented = $0.definition.content { true } else { false } }
    let children = feed.children ?? []
    let index: Int
    switch child {
    case .index(let given): index = max(-1, min(given, children.count - 1))
    case .name(let child): index = try self.index(of: child, among: children)
    }
    if index == feed.current { return }
    feed.adopt(children, current: index)
    feeds[name] = feed
    isStructural = true
  }

  private func index(of place: TreeOperation.Place, among children: [String]) throws(Refusal) -> Int {
    switch place {
    case .end: return children.count
    case .before(let name): return try index(of: name, among: children)
    case .after(let name): return try index(of: name, among: children) + 1
    case .index(let index):
      guard (0...children.count).contains(index) else { throw Refusal(code: -32005) }
      return index
    }
  }

  private func index(of child: String, among children: [String]) throws(Refusal) -> Int {
    if let index = children.firstIndex(of: child) { return index }
    throw Refusal(code: exists(child) ? -32602 : -32000)
  }

  /// Refuses sources that are not there, stand twice or would close a cycle.
  func check(_ sources: [String], of name: String, others: [String]) throws(Refusal) {
    // A new feed that shows itself is a cycle, although it does not exist yet.
    if !exists(name) && sources.contains(name) { throw Refusal(code: -32001) }
    if others.contains(where: { !exists($0) }) { throw Refusal(code: -32000) }
    if Set(sources).count < sources.count || sources.contains(where: { shows($0, name) }) {
      throw Refusal(code: -32001)
    }
  }

  /// Whether `feed` is `other` or shows its rows through whatever other feeds.
  private func shows(_ feed: String, _ other: String) -> Bool {
    feed == other || (feeds[feed]?.definition.sources ?? []).contains { shows($0, other) }
  }
}
