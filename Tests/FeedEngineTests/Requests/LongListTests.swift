import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// `feeds` and `clients`, whose answers several turns write.
@Suite("A list of many feeds or connections") struct LongListTests {
  private static let feeds = (0..<9000).map { "f\(10_000 + $0)" }

  private func define(_ names: [String], _ harness: EngineHarness, _ client: ConnectionID) {
    let operations = names.map { #"{"method":"define","params":{"feed":"\#($0)","kind":"array"}}"# }
    _ = harness.ask(client, "transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#)
  }

  private func names(_ list: Value?) -> [String] {
    list?["result"]?["feeds"]?.items.compactMap { $0["feed"]?.string } ?? []
  }

  @Test("a list takes several turns, and leaves out what is gone by then")
  func parts() {
    let harness = EngineHarness()
    let (client, other) = (harness.connect(), harness.connect())
    define(Self.feeds, harness, other)
    let revision = harness.engine.catalog.revision
    harness.supply(client, "feeds")
    harness.turnOnce()
    expectEqual(harness.take(client), [])
    let changes = [
      #"{"jsonrpc":"2.0","id":2,"method":"undefine","params":{"feed":"f18999"}}"#,
      #"{"jsonrpc":"2.0","id":3,"method":"define","params":{"feed":"a","kind":"array"}}"#,
    ]
    for change in changes { harness.supply(other, EngineHarness.frame(change)) }
    harness.turnOnce()
    expectEqual(harness.take(other).count, 2)
    harness.turn()
    let list = harness.take(client).first?.json
    expectEqual(names(list), Self.feeds.dropLast())
    expectEqual(list?["result"]?["revision"]?.int, Int(revision))
    expectEqual(names(harness.ask(client, "feeds").first?.json), ["a"] + Self.feeds.dropLast())
  }

  @Test("a list of connections with many watches takes several turns, and leaves out what is gone by then")
  func connections() {
    let harness = EngineHarness()
    let (client, other) = (harness.connect(), harness.connect())
    let feeds = (0..<1000).map { String(repeating: "n", count: 100) + "\($0)" }
    define(feeds, harness, other)
    let watchers = (0..<8).map { _ in harness.connect() }
    for watcher in watchers {
      for feed in feeds { harness.supply(watcher, "watch", #"{"feed":"\#(feed)"}"#) }
      harness.turn()
      _ = harness.take(watcher)
    }
    harness.supply(client, "clients")
    harness.turnOnce()
    expectEqual(harness.take(client), [])
    let job = harness.engine.sessions[client]?.line.work?.job
    let listBytes = 10 * MemoryLayout<(SessionHandle, Int)>.stride
    expectEqual(job.map { $0.memory - ($0.frame?.bytes.capacity ?? 0) }, listBytes)
    harness.drop(watchers[7])
    harness.turn()
    let clients = harness.take(client).first?.json?["result"]?["clients"]?.items ?? []
    expectEqual(clients.map { $0["watches"]?.items.count }, [0, 0] + Array(repeating: 1000, count: 7))
    expectEqual(clients.map { $0["self"] != nil }, [true] + Array(repeating: false, count: 8))
  }

  /// A feed is described at once, so a turn has time for one of many sections only.
  @Test("a turn describes one of two feeds with many sections")
  func longDescriptions() {
    let harness = EngineHarness()
    let (client, other) = (harness.connect(), harness.connect())
    let value = String(repeating: "x", count: 1000)
    let elements = (0..<1200).map { #"{"id":\#($0),"s":"\#(1000 + $0)\#(value)"}"# }.joined(separator: ",")
    for feed in ["a", "b"] {
      _ = harness.ask(other, "define", #"{"feed":"\#(feed)","kind":"collection","section":"$.s"}"#)
      _ = harness.ask(other, "update", #"{"feed":"\#(feed)","elements":[\#(elements)]}"#)
    }
    let description = harness.ask(other, "describe", #"{"feed":"a"}"#).first ?? ""
    expect(description.utf8.count > 2 << 20)
    harness.supply(client, "feeds")
    harness.turnOnce()
    let answer = harness.engine.sessions[client]?.line.work?.job.frame
    let written = answer?.bytes.count ?? 0
    expect(written > description.utf8.count / 2 && written < description.utf8.count * 3 / 2)
    harness.turn()
    let list = harness.take(client).first?.json
    expectEqual(names(list), ["a", "b"])
    let counts = Value(description)?["result"]?["counts"]
    expectEqual(counts?.items.count, 1200)
    for feed in list?["result"]?["feeds"]?.items ?? [] { expectEqual(feed["counts"], counts) }
  }

  @Test("a list in a batch is the same, and one that does not fit is refused")
  func batch() {
    let harness = EngineHarness { $0.maxFrame = 1 << 20 }
    let client = harness.connect()
    let feeds = Self.feeds.prefix(3000)
    define(Array(feeds), harness, client)
    harness.send(client, #"[{"jsonrpc":"2.0","id":1,"method":"feeds"}]"#)
    expectEqual(names(harness.take(client).first?.json?.items.first), Array(feeds))
    define((0..<6900).map { "g\($0)" }, harness, client)
    expectEqual(harness.ask(client, "feeds").first?.json?.errorCode, -32007)
  }
}
