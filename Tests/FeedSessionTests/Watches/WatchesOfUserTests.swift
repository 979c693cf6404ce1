import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// The watches that all connections of a user have together: which ones count, and until when.
struct WatchesOfUserTests {
  private static let user: UInt32 = 7

  private let harness: EngineHarness
  private let root: ConnectionID

  /// A daemon with the feeds f0 to f9, on which a connection may have four watches and a user three.
  init() throws {
    harness = EngineHarness(isDurable: true) { ($0.maxWatches, $0.maxWatchesPerUser) = (4, 3) }
    root = harness.connect(uid: 0)
    try allow((0..<10).map { "f\($0)" })
    for feed in 0..<10 { _ = harness.ask(root, "define", #"{"feed":"f\#(feed)","kind":"array"}"#) }
  }

  /// Lets everybody read these feeds only.
  private func allow(_ feeds: [String]) throws {
    let names = feeds.map { "\"\($0)\"" }.joined(separator: ",")
    try harness.configure(#"{"access":[{"feeds":[\#(names)],"allow":"read"}]}"#)
  }

  /// The limit that refuses a watch, or another error; nil if it begins.
  private func refusal(_ id: ConnectionID, _ feed: String) -> String? {
    let answer = harness.ask(id, "watch", #"{"feed":"\#(feed)"}"#).first?.json
    if answer?["result"] != nil { return nil }
    return answer?.errorData?["limit"]?.string ?? "\(answer?.errorCode ?? 0)"
  }

  private var count: Int { harness.engine.watches.count(of: Self.user) }

  @Test func connectionsOfAUserCountTogether() {
    let ids = (0..<3).map { _ in harness.connect(uid: Self.user) }
    for (id, feed) in [(ids[0], "f0"), (ids[1], "f0"), (ids[1], "f1")] { expectEqual(refusal(id, feed), nil) }
    for id in ids { expectEqual(refusal(id, "f5"), "maxWatchesPerUser") }
    let other = harness.connect(uid: 8)
    for feed in ["f0", "f1", "f2"] { expectEqual(refusal(other, feed), nil) }
    expectEqual(refusal(other, "f3"), "maxWatchesPerUser")
    expectEqual(count, 3)
  }

  @Test func limitOfTheConnectionIsToldFirst() {
    harness.engine.limits.maxWatches = 3
    let ids = (0..<2).map { _ in harness.connect(uid: Self.user) }
    for feed in ["f0", "f1", "f2"] { expectEqual(refusal(ids[0], feed), nil) }
    expectEqual(refusal(ids[0], "f3"), "maxWatches")
    expectEqual(refusal(ids[1], "f3"), "maxWatchesPerUser")
  }

  /// A watch that replaces another, and a refused one, do not count.
  @Test func watchesThatDoNotBeginDoNotCount() {
    let id = harness.connect(uid: Self.user)
    expectEqual(refusal(id, "none"), "-32006")
    for feed in ["f0", "f1", "f2", "f0", "f2"] { expectEqual(refusal(id, feed), nil) }
    expectEqual(refusal(id, "f3"), "maxWatchesPerUser")
    expectEqual(count, 3)
  }

  /// Nor does one that replaces the watch of a former feed with the name, whose end waits for the throttle.
  @Test func watchThatReplacesThatOfAFormerFeedDoesNotCount() {
    let id = harness.connect(uid: Self.user)
    _ = harness.ask(id, "watch", #"{"feed":"f0","throttle":60000}"#)
    for feed in ["f1", "f2"] { expectEqual(refusal(id, feed), nil) }
    _ = harness.ask(root, "insert", #"{"feed":"f0","element":1}"#)
    _ = harness.ask(root, "undefine", #"{"feed":"f0"}"#)
    _ = harness.ask(root, "define", #"{"feed":"f0","kind":"array"}"#)
    _ = harness.take(id)
    expectEqual(count, 3)
    expectEqual(refusal(id, "f3"), "maxWatchesPerUser")
    expectEqual(refusal(id, "f0"), nil)
    expectEqual(count, 3)
  }

  /// What ends all watches of one connection, or one of them.
  enum End: CaseIterable {
    case unwatch, undefine, disconnect, endOfInput, kick, loseAccess, exceedQuota
  }

  @Test(arguments: End.allCases) func watchesCountUntilTheyEnd(by end: End) throws {
    let (first, second) = (harness.connect(uid: Self.user), harness.connect(uid: Self.user))
    for (id, feed) in [(first, "f0"), (second, "f1"), (second, "f2")] { expectEqual(refusal(id, feed), nil) }
    expectEqual(refusal(second, "f3"), "maxWatchesPerUser")
    switch end {
    case .unwatch: _ = harness.ask(first, "unwatch", #"{"feed":"f0"}"#)
    case .undefine: _ = harness.ask(root, "undefine", #"{"feed":"f0"}"#)
    case .disconnect: harness.disconnect(first)
    case .endOfInput: harness.endInput(first)
    case .kick:
      let number = try require(harness.engine.sessions[first]?.number)
      _ = harness.ask(root, "kick", #"{"connection":\#(number)}"#)
    case .loseAccess: try allow((1..<10).map { "f\($0)" })
    case .exceedQuota:
      harness.engine.limits.maxQueuePerUser = 4096
      harness.deliver(first, Array(EngineHarness.frame(String(repeating: "x", count: 10_000)).prefix(6000)))
    }
    expectEqual(count, 2)
    harness.engine.checkWatches()
    expectEqual(refusal(second, "f3"), nil)
    expectEqual(refusal(second, "f4"), "maxWatchesPerUser")
    for id in [first, second] where harness.isOpen(id) { harness.disconnect(id) }
    expectEqual(count, 0)
  }
}
