import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// `quotas` and `kick`.
@Suite("Administration") struct AdministrationTests {
  private let harness = EngineHarness()

  @Test("quotas shows what each user stores and holds, to administrators")
  func quotas() throws {
    let (root, ann) = (harness.connect(uid: 0), harness.connect(uid: 7))
    _ = harness.ask(ann, "define", #"{"feed":"a","kind":"array"}"#)
    _ = harness.ask(ann, "insert", #"{"feed":"a","elements":[1,2]}"#)
    let result = try require(harness.ask(root, "quotas").first?.json?["result"])
    let users = result["users"]?.items ?? []
    expectEqual(users.map { $0["uid"]?.int }, [0, 7])
    expectEqual(users.map { $0["connections"]?.int }, [1, 1])
    expectEqual(users.map { $0["elements"]?.int }, [0, 2])
    expectEqual(result["total"]?["feeds"]?.int, 1)
    expectEqual(result["limits"]?["maxElementsPerUser"]?.int, Limits().maxElementsPerUser)
    expectEqual(harness.ask(ann, "quotas").first?.json?.errorCode, -32006)
    expectEqual(harness.ask(ann, "stats").first?.json?["result"]?["users"]?.items.first?["uid"]?.int, 7)
  }

  @Test("kick closes a connection by its number, for administrators")
  func kick() throws {
    let (root, ann, bob) = (harness.connect(uid: 0), harness.connect(uid: 7), harness.connect(uid: 8))
    let clients = try require(harness.ask(root, "clients").first?.json?["result"]?["clients"]?.items)
    let number = try require(clients.first { $0["uid"]?.int == 7 }?["connection"]?.int)
    expectEqual(harness.ask(bob, "kick", #"{"connection":\#(number)}"#).first?.json?.errorCode, -32006)
    expect(harness.isOpen(ann))
    let answer = harness.ask(root, "kick", #"{"connection":\#(number)}"#).first?.json
    expectEqual(answer?["result"]?["uid"]?.int, 7)
    expectEqual(harness.take(ann).last?.json?["params"]?["reason"]?.string, "kicked")
    expect(!harness.isOpen(ann))
    expectEqual(harness.ask(root, "kick", #"{"connection":\#(number)}"#).first?.json?.errorCode, -32602)
    let next = harness.connect(uid: 7)
    let numbers = harness.ask(root, "clients").first?.json?["result"]?["clients"]?.items.map { $0["connection"]?.int }
    expectEqual(numbers?.contains(number), false, "numbers are not used again")
    expect(harness.isOpen(next) && harness.isOpen(bob))
  }

  @Test("a connection that reads nothing is kicked as well")
  func kickReader() {
    let (root, ann) = (harness.connect(uid: 0), harness.connect(uid: 7))
    _ = harness.ask(ann, "define", #"{"feed":"a","kind":"array"}"#)
    _ = harness.ask(ann, "watch", #"{"feed":"a"}"#)
    harness.stopped = [ann]
    for _ in 0..<10 { _ = harness.ask(root, "insert", #"{"feed":"a","element":1}"#) }
    expectEqual(harness.ask(root, "kick", #"{"connection":2}"#).first?.json?["result"]?["connection"]?.int, 2)
    harness.stopped = []
    harness.turn()
    expectEqual(harness.take(ann).last?.json?["params"]?["reason"]?.string, "kicked")
    expect(!harness.isOpen(ann))
  }

  @Test("an administrator may close its own connection")
  func kickSelf() {
    let root = harness.connect(uid: 0)
    let frames = harness.ask(root, "kick", #"{"connection":1}"#).compactMap(\.json)
    expectEqual(frames.count, 2)
    expectEqual(frames.first?["result"]?["connection"]?.int, 1)
    expectEqual(frames.last?["params"]?["reason"]?.string, "kicked")
    expect(!harness.isOpen(root))
  }
}
