/// Arrays and singles.
extension TreeReference {
  mutating func edit(_ operation: TreeOperation) throws(Refusal) {
    var isPut = false
    if case .put = operation { isPut = true }
    var feed = try feed(operation.feed) { $0.list?.isSingle == isPut }
    switch operation {
    case .insert(_, let elements, let rows):
      try checkEditable(feed)
      try insert(elements, at: rows, into: &feed)
    case .remove(_, let rows):
      try checkEditable(feed)
      if rows.contains(where: { !feed.items.indices.contains($0) }) { throw Refusal(code: -32005) }
      if Set(rows).count < rows.count { throw Refusal(code: -32602) }
      for row in rows.sorted().reversed() { feed.items.remove(at: row) }
    case .replace(_, let elements, let rows):
      try checkEditable(feed)
      if elements.count != rows.count { throw Refusal(code: -32602) }
      for (element, row) in zip(elements, rows) {
        guard feed.items.indices.contains(row) else { throw Refusal(code: -32005) }
        if feed.hasIdentity, feed.items[row].element.id != element.id {
          try checkIdentity(of: element, isNewIn: feed)
          feed.items[row] = newItem(element)
        } else {
          put(element, at: row, of: &feed)
        }
      }
    case .move(_, let from, let to):
      try check(feed.definition.movable)
      try move(from, to, &feed)
    case .moveByID(_, let id, let to):
      try check(feed.definition.movable)
      // An array without identities knows no `id`, and `from` is missing.
      if !feed.hasIdentity { throw Refusal(code: -32602) }
      guard let from = feed.row(of: id) else { throw Refusal(code: -32010) }
      try move(from, to, &feed)
    case .put(_, nil): feed.items = []
    case .put(_, let element?):
      if feed.items.isEmpty { feed.items = [newItem(element)] }
      put(element, at: 0, of: &feed)
    default: break
    }
    evictItems(of: &feed)
    feeds[operation.feed] = feed
  }

  private func move(_ from: Int, _ to: Int, _ feed: inout TreeFeed) throws(Refusal) {
    guard feed.items.indices.contains(from), feed.items.indices.contains(to) else { throw Refusal(code: -32005) }
    feed.items.insert(feed.items.remove(at: from), at: to)
  }

  mutating func updateArray(_ feed: inout TreeFeed, _ elements: [TreeElement]) throws(Refusal) {
    try checkEditable(feed)
    for element in elements {
      guard let id = element.id else { throw Refusal(code: -32003) }
      if let row = feed.row(of: id) { put(element, at: row, of: &feed) } else { feed.items.append(newItem(element)) }
    }
    evictItems(of: &feed)
    feeds[feed.definition.name] = feed
  }

  mutating func patch(_ name: String, _ patches: [TreeOperation.Patch]) throws(Refusal) {
    var feed = try feed(name) { $0.collection != nil || $0.list != nil }
    if feed.collection != nil { return try patchCollection(name, patches) }
    try checkEditable(feed)
    if feed.list?.isSingle == false && !feed.hasIdentity {
      // Parameters are judged before any element is looked for.
      let hasIDs = patches.contains { if case .id = $0.key { true } else { false } }
      if hasIDs { throw Refusal(code: -32602) }
    }
    // All are merged first; then each element changes once, in the order of the first patches.
    var merged: [(row: Int, element: TreeElement)] = []
    for patch in patches {
      var row = 0
      switch patch.key {
      case .row(let given): row = given
      case .id(let id):
        guard let found = feed.row(of: id) else { throw Refusal(code: -32010) }
        row = found
      case .only: break
      }
      guard feed.items.indices.contains(row) else { throw Refusal(code: -32005) }
      if let place = merged.firstIndex(where: { $0.row == row }) {
        merged[place].element = patch.merged(into: merged[place].element)
      } else {
        merged.append((row, patch.merged(into: feed.items[row].element)))
      }
    }
    for (row, element) in merged { put(element, at: row, of: &feed) }
    feeds[name] = feed
  }

  private func check(_ isAllowed: Bool) throws(Refusal) {
    if !isAllowed { throw Refusal(code: -32006) }
  }

  /// Refuses a change of an array that its definition forbids.
  func checkEditable(_ feed: TreeFeed) throws(Refusal) {
    if feed.list?.isSingle == false { try check(feed.definition.editable) }
  }

  private func checkIdentity(of element: TreeElement, isNewIn feed: TreeFeed) throws(Refusal) {
    guard let id = element.id else { throw Refusal(code: -32003) }
    if feed.row(of: id) != nil { throw Refusal(code: -32001) }
  }

  private mutating func newItem(_ element: TreeElement) -> TreeFeed.Item {
    TreeFeed.Item(token: token(), element: element, changed: tick(), at: moment)
  }

  private mutating func put(_ element: TreeElement, at row: Int, of feed: inout TreeFeed) {
    if feed.items[row].element == element { return }
    feed.items[row].element = element
    feed.items[row].changed = tick()
    feed.items[row].at = moment
  }

  /// Evicts the rows beyond the number that is retained.
  func evictItems(of feed: inout TreeFeed) {
    guard let most = feed.list?.retain?.count else { return }
    while feed.items.count > most, let oldest = feed.items.map(\.changed).min() {
      feed.items.removeAll { $0.changed == oldest }
    }
  }

  private mutating func insert(_ elements: [TreeElement], at rows: [Int]?, into feed: inout TreeFeed) throws(Refusal) {
    if let rows, rows.count != elements.count { throw Refusal(code: -32602) }
    for (place, element) in elements.enumerated() {
      let row = rows?[place] ?? feed.items.count
      guard (0...feed.items.count).contains(row) else { throw Refusal(code: -32005) }
      if feed.hasIdentity { try checkIdentity(of: element, isNewIn: feed) }
      feed.items.insert(newItem(element), at: row)
    }
  }

  mutating func set(_ name: String, _ elements: [TreeElement]) throws(Refusal) {
    var feed = try feed(name) { $0.collection != nil || $0.list?.isSingle == false }
    if feed.collection != nil { return try setCollection(name, elements) }
    if feed.hasIdentity { return try setByIdentity(&feed, elements) }
    let old = feed.items
    let pairs = Self.rowsThatStay(old.map(\.element), elements)
    var items = elements.map { TreeFeed.Item(token: 0, element: $0) }
    for (before, after) in pairs {
      items[after] = old[before]
      if old[before].element == elements[after] { continue }
      items[after].element = elements[after]
      items[after].changed = tick()
      items[after].at = moment
    }
    // Rows are replaced before any is added.
    for row in items.indices where !pairs.contains(where: { $0.after == row }) { items[row] = newItem(elements[row]) }
    feed.items = items
    evictItems(of: &feed)
    feeds[name] = feed
  }

  /// The rows that `set` of an array without identity keeps, with their new places, both ascending (`Protocol/methods/set.md`).
  private static func rowsThatStay(_ old: [TreeElement], _ new: [TreeElement]) -> [(before: Int, after: Int)] {
    let shorter = min(old.count, new.count)
    let start = (0..<shorter).first { old[$0] != new[$0] } ?? shorter
    let end = (0..<shorter - start).first { old[old.count - 1 - $0] != new[new.count - 1 - $0] } ?? shorter - start
    let (oldEnd, newEnd) = (old.count - end, new.count - end)

    // Between them, the nth row with an element is paired with the nth one that has it now.
    var equal: [(before: Int, after: Int)] = []
    for after in start..<newEnd {
      let ordinal = new[start..<after].count { $0 == new[after] }
      let rows = (start..<oldEnd).filter { old[$0] == new[after] }
      if ordinal < rows.count { equal.append((rows[ordinal], after)) }
    }
    let rising = equal.map(\.before).rising
    let kept = equal.filter { rising.contains($0.before) }

    // In each gap, the first rows are replaced.
    let fixed = (0..<start).map { ($0, $0) } + kept + (0..<end).map { (oldEnd + $0, newEnd + $0) }
    var (pairs, before, after) = ([(before: Int, after: Int)](), 0, 0)
    for (nextBefore, nextAfter) in fixed + [(old.count, new.count)] {
      while before < nextBefore && after < nextAfter {
        pairs.append((before, after))
        (before, after) = (before + 1, after + 1)
      }
      pairs.append((nextBefore, nextAfter))
      (before, after) = (nextBefore + 1, nextAfter + 1)
    }
    return pairs.dropLast()
  }

  private mutating func setByIdentity(_ feed: inout TreeFeed, _ elements: [TreeElement]) throws(Refusal) {
    var seen: Set<Int> = []
    for element in elements {
      guard let id = element.id else { throw Refusal(code: -32003) }
      if !seen.insert(id).inserted { throw Refusal(code: -32001) }
    }
    let old = feed.items
    feed.items = []
    for (row, element) in elements.enumerated() {
      if let known = old.first(where: { $0.element.id == element.id }) {
        feed.items.append(known)
        put(element, at: row, of: &feed)
      } else {
        feed.items.append(newItem(element))
      }
    }
    evictItems(of: &feed)
    feeds[feed.definition.name] = feed
  }

  /// Checks that every element has an identity of its own.
  func checkIdentities(of feed: TreeFeed) throws(Refusal) {
    var seen: Set<Int> = []
    for item in feed.items {
      guard let id = item.element.id else { throw Refusal(code: -32003) }
      if !seen.insert(id).inserted { throw Refusal(code: -32001) }
    }
  }
}

extension TreeFeed {
  /// The row of the element with an identity.
  fileprivate func row(of id: Int) -> Int? { items.firstIndex { $0.element.id == id } }
}

extension [Int] {
  /// As many of these different numbers as ascend. If there is a choice, the last of them is the least possible, then the one
  /// before it, and so on.
  fileprivate var rising: [Int] {
    // How many ascend up to each, that one included.
    var lengths: [Int] = []
    for (place, number) in enumerated() {
      lengths.append(1 + (indices.prefix(place).filter { self[$0] < number }.map { lengths[$0] }.max() ?? 0))
    }
    var (result, end) = ([Int](), count)
    for length in stride(from: lengths.max() ?? 0, to: 0, by: -1) {
      let candidates = indices.prefix(end).filter { lengths[$0] == length }
      guard let place = candidates.min(by: { self[$0] < self[$1] }) else { break }
      result.insert(self[place], at: 0)
      end = place
    }
    return result
  }
}
