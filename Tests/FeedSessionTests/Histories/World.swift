import FeedChange
import FeedModel
import TestSupport

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// A daemon with a feed of every kind, and a client that changes them at random.
final class World {
  let harness: EngineHarness
  let pusher: ConnectionID
  var random: SeededRandom
  private(set) var commits = 0
  private(set) var refusals: [Int: Int] = [:]

  /// The feeds at the beginning. Mutations can undefine and define them again.
  static let definitions: [(name: String, text: String)] = [
    ("c", Palette.collections[0]), ("a", #"{"feed":"a","kind":"array","type":"$.k"}"#),
    ("s", #"{"feed":"s","kind":"single"}"#), ("h", Palette.composed[0]), ("g", Palette.segmented[0]),
    ("m", Palette.slots[0]), ("top", #"{"feed":"top","kind":"composed","children":["m","g","h"]}"#),
  ]

  /// The names of feeds and bins to watch.
  static let names = definitions.map(\.name) + ["c/x", "c/y", "c/z"]

  /// The number of identities in the collection.
  let identities: Int

  init(seed: UInt64, limits: Limits, identities: Int = 12, isDurable: Bool = false) {
    random = SeededRandom(seed: seed)
    self.identities = identities
    harness = EngineHarness(limits: limits, seed: seed, isDurable: isDurable)
    pusher = harness.connect()
    for (_, text) in Self.definitions { _ = harness.ask(pusher, "define", text) }
  }

  /// Fills the collection and the array.
  func fill() {
    for start in stride(from: 0, to: identities, by: 20) {
      let elements = (start..<min(start + 20, identities)).map { element(id: $0) }.joined(separator: ",")
      for (method, feed) in [("update", "c"), ("insert", "a")] {
        _ = harness.ask(pusher, method, #"{"feed":"\#(feed)","elements":[\#(elements)]}"#)
      }
    }
  }

  func below(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
  func chance(_ percent: Int) -> Bool { below(100) < percent }
  func pick<Item>(_ items: [Item]) -> Item { items[below(items.count)] }

  /// Sends one random mutation and checks its answer against its effect.
  func mutate() throws {
    let (method, params) = mutation()
    let feed = Value(params)?["feed"]?.string
    let before = contents()
    let (texts, revision) = (harness.ask(pusher, method, params), harness.engine.catalog.revision)
    guard texts.count == 1, let answer = Value(texts[0]) else {
      throw Mirror.Violation(description: "\(texts.count) answers to \(method) \(params)")
    }
    let after = contents()
    if let code = answer.errorCode {
      refusals[code, default: 0] += 1
      if before != after { throw Mirror.Violation(description: "\(answer) but \(method) \(params) changed something") }
      return
    }
    commits += 1
    guard answer["result"]?["revision"]?.int == Int(revision) else {
      // Retention evicted elements in the same turn. The mirrors are checked nevertheless.
      if harness.engine.catalog.nextExpiry == nil && answer["result"]?["revision"]?.int != Int(revision) - 1 {
        throw Mirror.Violation(description: "the daemon is at \(revision): \(answer)")
      }
      return
    }
    if let feed, let result = answer["result"], result["deleted"] != nil {
      try check(Change(result), of: feed, from: before[feed] ?? [], to: after[feed] ?? [], "\(method) \(params)")
    }
  }

  /// Checks that a change leads from one state of a feed to another and lists no unchanged row as updated.
  private func check(
    _ change: Change, of feed: String, from before: [[Mirror.Row]], to after: [[Mirror.Row]], _ what: String
  ) throws {
    var rows = before
    do {
      let elements = (change.added + change.updated).map { after[Int($0.section)][Int($0.row)] }
      try TestSupport.apply(change, to: &rows, elements: elements)
    } catch {
      throw Mirror.Violation(description: "\(error): \(change) for \(what)")
    }
    if rows != after { throw Mirror.Violation(description: "\(change) does not lead to the state after \(what)") }
    var unchanged = before
    let elements =
      (change.added.map { after[Int($0.section)][Int($0.row)] }) + change.updated.map { _ in Mirror.Row.none }
    try TestSupport.apply(
      Change(change, updated: []), to: &unchanged, elements: Array(elements.prefix(change.added.count)))
    for path in change.updated {
      let (old, new) = (unchanged[Int(path.section)][Int(path.row)], after[Int(path.section)][Int(path.row)])
      if old == new { throw Mirror.Violation(description: "\(path) is listed as updated but did not change: \(what)") }
    }
  }

  /// Returns the rows of every feed.
  func contents() -> [String: [[Mirror.Row]]] {
    var result: [String: [[Mirror.Row]]] = [:]
    for name in Self.names {
      guard let feed = try? harness.engine.catalog.feed(named: name) else { continue }
      result[name] = Self.contents(of: feed)
    }
    return result
  }

  static func contents(of feed: Feed) -> [[Mirror.Row]] {
    (0..<feed.sectionCount).map { index in
      let section = feed.section(at: index)
      return (0..<section.count).map { place in
        let row = section.row(at: place)
        let type = row.type.isEmpty ? "null" : String(decoding: row.type, as: UTF8.self)
        return Mirror.Row(element: String(decoding: row.text, as: UTF8.self), type: type)
      }
    }
  }
}

extension Mirror.Row {
  static let none = Mirror.Row(element: "")
}

extension Change {
  /// The same change with other updated rows.
  fileprivate init(_ change: Change, updated: [IndexPath]) {
    self = change
    self.updated = updated
  }
}
