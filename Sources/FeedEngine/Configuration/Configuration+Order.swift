import FeedModel

extension Configuration {
  /// Puts definitions in an order in which each follows those it shows, and otherwise in the order of the file.
  static func sorted(_ entries: [Entry]) throws(ConfigurationError) -> [Entry] {
    var order = DependencyOrder(entries)
    for index in entries.indices { try order.visit(index) }
    return order.result
  }
}

/// A walk from definitions to what they show, which puts the shown first.
private struct DependencyOrder {
  private enum Mark {
    case new, open, done
  }

  private let entries: [Configuration.Entry]
  private let places: [String: Int]
  private var marks: [Mark]
  /// The definitions being visited, each shown by the one before.
  private var path: [Int] = []
  private(set) var result: [Configuration.Entry] = []

  init(_ entries: [Configuration.Entry]) {
    self.entries = entries
    places = Dictionary(uniqueKeysWithValues: entries.enumerated().map { ($1.definition.name, $0) })
    marks = Array(repeating: .new, count: entries.count)
  }

  /// Adds a definition after all that it shows. Without recursion: a chain of definitions may be as long as the file.
  mutating func visit(_ start: Int) throws(ConfigurationError) {
    guard marks[start] == .new else { return }
    var stack: [(index: Int, shown: [Int])] = [(start, shown(by: start))]
    marks[start] = .open
    while let top = stack.last {
      guard let next = top.shown.last else {
        marks[top.index] = .done
        result.append(entries[top.index])
        stack.removeLast()
        continue
      }
      stack[stack.count - 1].shown.removeLast()
      switch marks[next] {
      case .done: break
      case .new:
        marks[next] = .open
        stack.append((next, shown(by: next)))
      case .open: throw circle(stack.map(\.index), closedBy: next)
      }
    }
  }

  /// What a definition shows, the first last.
  private func shown(by index: Int) -> [Int] {
    entries[index].definition.shownFeeds.reversed().compactMap { name in
      places[String(name.prefix { $0 != "/" })]
    }
  }

  private func circle(_ stack: [Int], closedBy next: Int) -> ConfigurationError {
    let members = stack.drop { $0 != next } + [next]
    let names = members.map { "\"\(entries[$0].definition.name)\"" }
    return ConfigurationError(
      entries[next].place,
      "\(names.joined(separator: " shows ")), which is a circle; take one of them out of the other")
  }
}

extension FeedDefinition {
  /// The feeds and bins whose rows it shows, by name.
  public var shownFeeds: [String] {
    switch content {
    case .composed(let children), .segmented(let children, _): children
    case .slots(let slots): slots.contents.map(\.feed)
    case .collection, .list, .managed: []
    }
  }
}
