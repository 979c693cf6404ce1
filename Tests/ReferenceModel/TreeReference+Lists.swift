import FeedChange
import FeedModel

/// Arrays and singles.
extension TreeReference {
  mutating func edit(_ operation: TreeOperation) throws(Refusal) {
    var isPut = false
    if case .put = operation { isPut = true }
    var feed = try feed(operation.feed) { $0.definition.content.isList(single: isPut) }
    switch operation {
    case .insert(_, let elements, let rows):
      try check(feed.definition.editable)
      try insert(elements, at: rows, into: &feed)
    case .remove(_, let rows):
      try check(feed.definition.editable)
      if rows.contains(where: { !feed.items.indices.contains($0) }) { throw Refusal(code: -32005) }
      if Set(rows).count < rows.count { throw Refusal(code: -32602) }
      for row in rows.sorted().reversed() { feed.items.remove(at: row) }
    case .replace(_, let elements, let rows):
      try check(feed.definition.editable)
      if elements.count != rows.count { throw Refusal(code: -32602) }
      for (element, row) in zip(elements, rows) {
        guard feed.items.indices.contains(row) else { throw Refusal(code: -32005) }
        feed.items[row].element = element
      }
    case .move(_, let from, let to):
      try check(feed.definition.movable)
      guard feed.items.indices.contains(from), feed.items.indices.contains(to) else { throw Refusal(code: -32005) }
      feed.items.insert(feed.items.remove(at: from), at: to)
    case .put(_, nil): feed.items = []
    case .put(_, let element?):
      if feed.items.isEmpty { feed.items = [.init(token: token(), element: element)] }
      feed.items[0].element = element
    default: break
    }
    feeds[operation.feed] = feed
  }

  mutating func patch(_ name: String, _ patches: [TreeOperation.Patch]) throws(Refusal) {
    var feed = try feed(name) {
      $0.collection != nil || $0.definition.content.isList(single: true) || $0.definition.content.isList(single: false)
    }
    if feed.collection != nil { return try patchCollection(name, patches) }
    if feed.definition.content.isList(single: false) { try check(feed.definition.editable) }
    for patch in patches {
      var row = 0
      if case .row(let given) = patch.key { row = given }
      guard feed.items.indices.contains(row) else { throw Refusal(code: -32005) }
      feed.items[row].element = patch.merged(into: feed.items[row].element)
    }
    feeds[name] = feed
  }

  private func check(_ isAllowed: Bool) throws(Refusal) {
    if !isAllowed { throw Refusal(code: -32006) }
  }

  private mutating func insert(_ elements: [TreeElement], at rows: [Int]?, into feed: inout TreeFeed) throws(Refusal) {
    if let rows, rows.count != elements.count { throw Refusal(code: -32602) }
    for (place, element) in elements.enumerated() {
      let row = rows?[place] ?? feed.items.count
      guard (0...feed.items.count).contains(row) else { throw Refusal(code: -32005) }
      feed.items.insert(.init(token: token(), element: element), at: row)
    }
  }

  /// `set`. For an array which rows stay is the daemon's choice, so their tokens follow its answer; what a good choice is, is
  /// checked by whoever compares.
  mutating func set(_ name: String, _ elements: [TreeElement], _ result: Change?) throws(Refusal) {
    var feed = try feed(name) { $0.collection != nil || $0.definition.content.isList(single: false) }
    if feed.collection != nil { return try setCollection(name, elements) }
    var tokens = [feed.items.map(\.token)]
    if let result {
      var kept = result
      kept.updated = []
      let news = result.added.map { _ in token() }
      try? FeedChange.apply(kept, to: &tokens, elements: news)
    }
    feed.items = elements.enumerated().map { row, element in
      TreeFeed.Item(token: row < tokens[0].count ? tokens[0][row] : token(), element: element)
    }
    feeds[name] = feed
  }
}

extension TreeDefinition.Content {
  fileprivate func isList(single: Bool) -> Bool {
    if case .list(single, _) = self { return true }
    return false
  }
}
