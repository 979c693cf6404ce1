import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Rows of managed feeds, which the daemon sets in slices.
extension SlicedRequestTests {
  private static let managed =
    #"{"feeds":[{"feed":"m","kind":"managed","database":"d","query":"SELECT id, k FROM p"}]}"#
  private static let shown = ["m", "v", "w", "s", "t"]
  private static let slow = #""filter":"count(@..*) > 1 && @.k > 2""#

  /// Defines `m`, with views and slots above it, and `o` beside it.
  private static func define(_ harness: EngineHarness, _ client: ConnectionID, watchedBy watcher: ConnectionID) throws {
    try harness.configure(managed)
    for definition in [
      #"{"feed":"o","kind":"array"}"#, #"{"feed":"v","kind":"view","of":"m",\#(slow),"sort":[{"by":"$.k"}]}"#,
      #"{"feed":"w","kind":"view","of":"v",\#(slow),"limit":9}"#,
      #"{"feed":"s","kind":"slots","contents":{"M":"m"},"pattern":["M"]}"#,
      #"{"feed":"t","kind":"view","of":"s",\#(slow)}"#,
    ] {
      let answer = harness.ask(client, "define", definition)
      expect(value(answer)?["result"] != nil)
    }
    for feed in shown { _ = harness.ask(watcher, "watch", #"{"feed":"\#(feed)"}"#) }
    _ = harness.ask(client, "insert", #"{"feed":"o","elements":[1]}"#)
  }

  private static func set(_ ids: some Sequence<Int>, _ value: Int, of harness: EngineHarness) {
    var rows = ManagedRows()
    for id in ids {
      Array(#"{"id":\#(id),"k":\#((id * 7 + value) % 9)}"#.utf8).withUnsafeBytes { rows.append($0) }
    }
    harness.engine.setManaged("m", rows, SourceStatus(.ok, since: "T"), now: harness.now)
  }

  @Test("rows of a managed feed are set in slices, and other requests are answered meanwhile", arguments: Log.allCases)
  func managedRows(_ log: Log) throws {
    let (harness, plain) = (Self.harness(log), EngineHarness(isDurable: log == .array))
    let (client, watcher) = (harness.connect(), harness.connect())
    let (pinger, reader, other) = (harness.connect(), harness.connect(), harness.connect())
    let (plainClient, plainWatcher) = (plain.connect(), plain.connect())
    try Self.define(harness, client, watchedBy: watcher)
    try Self.define(plain, plainClient, watchedBy: plainWatcher)
    let rounds: [(ids: [Int], value: Int)] = [
      (Array(0..<40), 0), (Array(0..<40), 1), (Array((0..<40).reversed()), 1), (Array(20..<60), 2), ([], 0),
    ]
    for (ids, value) in rounds {
      Self.set(ids, value, of: harness)
      var (turns, pings, reads, others) = (0, 0, 0, 0)
      repeat {
        for (client, method, params) in [
          (pinger, "ping", "{}"), (reader, "get", #"{"feed":"m","at":[0,0]}"#),
          (other, "get", #"{"feed":"o","at":[0,0]}"#),
        ] { harness.supply(client, method, params) }
        harness.turnOnce()
        turns += 1
        pings += harness.take(pinger).count
        reads += harness.take(reader).count
        others += harness.take(other).count
      } while harness.isWithinBatch
      expect(turns > 20 && pings >= turns - 1 && others >= turns - 2)
      expect(reads > 5)
      harness.turn()
      for client in [pinger, reader, other] { _ = harness.take(client) }
      Self.set(ids, value, of: plain)
      plain.turn()
      // Which feed is told first is not promised.
      expectEqual(harness.take(watcher).sorted(), plain.take(plainWatcher).sorted())
      expectEqual(
        Self.shown.flatMap { harness.ask(client, "snapshot", #"{"feed":"\#($0)"}"#) },
        Self.shown.flatMap { plain.ask(plainClient, "snapshot", #"{"feed":"\#($0)"}"#) })
    }
  }

  @Test("rows that come while others are set are set after them", arguments: Log.allCases)
  func managedRowsThatWait(_ log: Log) throws {
    let harness = Self.harness(log)
    let (client, watcher) = (harness.connect(), harness.connect())
    try Self.define(harness, client, watchedBy: watcher)
    Self.set(0..<40, 0, of: harness)
    while !harness.isWithinBatch { harness.turnOnce() }
    Self.set(0..<3, 1, of: harness)
    Self.set(0..<2, 1, of: harness)
    // A change by a client waits too.
    harness.supply(client, "insert", #"{"feed":"o","elements":[2]}"#)
    harness.turn()
    expectEqual(harness.engine.catalog.feeds["m"]?.count, 2)
    expectEqual(harness.engine.catalog.feeds["o"]?.count, 2)
    expect(!harness.isWithinBatch)
  }

  @Test("rows that come again and again let changes of clients through", arguments: Log.allCases)
  func changesBetweenRows(_ log: Log) throws {
    let harness = Self.harness(log)
    let (client, watcher) = (harness.connect(), harness.connect())
    try Self.define(harness, client, watchedBy: watcher)
    harness.supply(client, "insert", #"{"feed":"o","elements":[2]}"#)
    for round in 0..<20_000 where harness.engine.catalog.feeds["o"]?.count == 1 {
      Self.set(0..<9, round, of: harness)
      harness.turnOnce()
    }
    expectEqual(harness.engine.catalog.feeds["o"]?.count, 2)
    harness.turn()
  }

  @Test("a configuration is in effect after the rows that came before it", arguments: Log.allCases)
  func configurationAfterRows(_ log: Log) throws {
    func feeds(id: String) -> String {
      #"{"feeds":[{"feed":"m","kind":"managed","database":"d","query":"q","id":"\#(id)"}]}"#
    }
    let harness = Self.harness(log)
    try harness.configure(feeds(id: "id"))
    Self.set(0..<9, 0, of: harness)
    try harness.configure(feeds(id: "key"))
    let managed = harness.engine.catalog.feeds["m"]?.kind as? ManagedKind
    expectEqual(managed?.content.id, "key")
    expectEqual(managed?.rowCount, 9)
    expectEqual(managed?.source.state, .ok)
  }
}
