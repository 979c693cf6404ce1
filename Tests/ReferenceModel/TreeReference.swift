import FeedChange
import FeedModel

/// All feeds of a daemon, rebuilt from scratch whenever they are looked at: what the random trees are compared with.
///
/// A value: a transaction works on a copy and throws it away when it is refused.
struct TreeReference {
  /// The code of the error that an operation is refused with.
  struct Refusal: Error {
    let code: Int
  }

  var feeds: [String: TreeFeed] = [:]
  /// What `$feeds` shows in place of the feeds there are; nil for these.
  var list: [TreeRow]?
  private var lastToken: UInt64 = 0
  private(set) var clock: UInt64 = 0
  /// The time of operations, in milliseconds since 1970.
  var moment = 0
  /// Whether an operation changed a definition, which makes a commit even if no row changed.
  var isStructural = false
  /// The collections that got other bins.
  var rebinned: Set<String> = []

  mutating func token() -> UInt64 {
    lastToken += 1
    return lastToken
  }

  mutating func tick() -> UInt64 {
    clock += 1
    return clock
  }

  /// Carries out an operation.
  mutating func apply(_ operation: TreeOperation) throws(Refusal) {
    let before = feeds[operation.feed]
    try carryOut(operation)
    if case .define = operation { return }
    if let before, before.hasIdentity { reunite(operation.feed, since: before) }
  }

  private mutating func carryOut(_ operation: TreeOperation) throws(Refusal) {
    switch operation {
    case .insert, .remove, .replace, .move, .moveByID, .put: try edit(operation)
    case .set(let name, let elements): try set(name, elements)
    case .update(let name, let elements): try update(name, elements)
    case .patch(let name, let patches): try patch(name, patches)
    case .delete(let name, let ids): try delete(name, ids)
    case .deleteWhere(let name, let v): try delete(name, v: v)
    case .insertChild(let name, let child, let place): try insertChild(name, child, place)
    case .removeChild(let name, let child): try removeChild(name, child)
    case .activate(let name, let child): try activate(name, child)
    case .define(let definition, let replace): try define(definition, replace: replace)
    case .undefine(let name): try undefine(name)
    }
  }

  /// The feed of that name, of a kind that `fits`.
  func feed(_ name: String, _ fits: (TreeFeed) -> Bool) throws(Refusal) -> TreeFeed {
    if name == Self.listName { throw Refusal(code: -32006) }
    guard let feed = feeds[name] else { throw Refusal(code: isBin(name) ? -32002 : -32000) }
    guard fits(feed) else { throw Refusal(code: -32002) }
    return feed
  }

  func isBin(_ name: String) -> Bool {
    let parts = name.split(separator: "/")
    guard parts.count == 2, let feed = feeds[String(parts[0])] else { return false }
    return feed.feedBins.contains { $0.name == parts[1] }
  }

  func exists(_ name: String) -> Bool { feeds[name] != nil || isBin(name) || name == Self.listName }

  /// The name of the list of feeds.
  static let listName = FeedName.feeds

  /// A row for each feed, in the order of names.
  var listRows: [TreeRow] {
    if let list { return list }
    return feeds.sorted { $0.key < $1.key }.map { name, feed in
      TreeRow(token: name.token, text: feed.listed, type: "null", element: nil)
    }
  }

  /// The feed or bin's instance.
  func instance(of name: String) -> UInt64 {
    if let feed = feeds[name] { return feed.instance }
    if name == Self.listName { return .max }
    let parts = name.split(separator: "/")
    return feeds[String(parts[0])]?.feedBins.first { $0.name == parts[1] }?.instance ?? 0
  }

  /// Everything that can be watched: feeds, bins and the list of feeds.
  var names: [String] {
    [Self.listName]
      + feeds.values.flatMap { feed in
        [feed.definition.name] + feed.feedBins.map { "\(feed.definition.name)/\($0.name)" }
      }.sorted()
  }
}
