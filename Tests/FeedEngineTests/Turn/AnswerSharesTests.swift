import FeedJSON
import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Long answers to short requests: each user has a share of a turn, and others are answered beside them.
struct AnswerSharesTests {
  private static let length = 300_000

  private func harness(isDurable: Bool = false) -> EngineHarness {
    let harness = EngineHarness(isDurable: isDurable)
    let owner = harness.connect(uid: 1)
    let text = String(repeating: "x", count: Self.length)
    _ = harness.ask(owner, "define", #"{"feed":"a","kind":"single"}"#)
    _ = harness.ask(owner, "put", #"{"feed":"a","element":"\#(text)"}"#)
    return harness
  }

  private func supply(_ harness: EngineHarness, _ id: ConnectionID, _ method: String, _ number: Int = 1) {
    let request = #"{"jsonrpc":"2.0","id":\#(number),"method":"\#(method)","params":{"feed":"a"}}"#
    harness.supply(id, EngineHarness.frame(request))
  }

  /// Runs turns to the end. Returns the bytes that each made for connections.
  private func produced(_ harness: EngineHarness, for ids: [ConnectionID]) -> [Int] {
    var steps: [Int] = []
    var before = 0
    for _ in 0..<10_000 {
      harness.turnOnce()
      let all = ids.reduce(0) { $0 + harness.halfFrame(of: $1) + (harness.engine.sessions[$1]?.output.count ?? 0) }
      steps.append(all - before)
      before = all
      if !harness.hasWork, ids.allSatisfy({ harness.engine.sessions[$0]?.output.count == 0 }) { break }
    }
    return steps
  }

  @Test("connections of one user share a turn, in the order of their requests")
  func connectionsOfAUser() {
    let harness = harness()
    let ids = (0..<60).map { _ in harness.connect(uid: 7) }
    let (other, own) = (harness.connect(uid: 8), harness.connect(uid: 7))
    for id in ids { supply(harness, id, "snapshot") }
    supply(harness, other, "describe")
    supply(harness, own, "ping")
    var frames = 0
    func isAnswered(_ id: ConnectionID) -> Bool {
      let taken = harness.take(id).count
      frames += taken
      return taken > 0 || harness.halfFrame(of: id) > 0 || harness.engine.sessions[id]?.output.count != 0
    }
    var answered: [Int] = []
    while answered.count < ids.count {
      harness.turnOnce()
      let now = ids.indices.filter { isAnswered(ids[$0]) && !answered.contains($0) }
      // A share is 2 MiB; the answer that exceeds it is the last.
      expectEqual(now.count, min(7, ids.count - answered.count))
      if answered.isEmpty {
        // Neither another user nor a request with a short answer waits.
        expectEqual(harness.take(other).count, 1)
        expectEqual(harness.take(own).count, 1)
      }
      answered += now
      expectEqual(answered, Array(0..<answered.count))
      guard let first = now.first else { break }
      // Later reads of the user do not overtake those that wait.
      supply(harness, ids[first], "describe", 2)
    }
    harness.turn()
    expectEqual(frames + ids.map { harness.take($0).count }.reduce(0, +), 60 + 9)
  }

  @Test("reads that wait for the log are answered in several turns")
  func waitingReads() {
    let harness = harness(isDurable: true)
    let (id, other) = (harness.connect(uid: 7), harness.connect(uid: 8))
    harness.log?.isHeld = true
    supply(harness, id, "deselect", 0)
    for number in 1...30 { supply(harness, id, "snapshot", number) }
    harness.turn()
    harness.log?.isHeld = false
    harness.log?.store()
    supply(harness, other, "ping")
    let steps = produced(harness, for: [id])
    expect(steps.reduce(0, +) > 30 * Self.length)
    // The answers of a turn, those that exceed them, and one for each time that the turn executes what is stored.
    expectEqual(steps.max().map { $0 <= (2 << 20) + 3 * (Self.length + 200) }, true)
    expectEqual(harness.take(other).count, 1)
  }

  @Test("long answers that become ready together are sent in several turns")
  func answersInParts() {
    let harness = EngineHarness()
    let owner = harness.connect(uid: 1)
    _ = harness.ask(owner, "define", #"{"feed":"a","kind":"array"}"#)
    let text = String(repeating: "x", count: 200)
    let elements = Array(repeating: "\"\(text)\"", count: 5000).joined(separator: ",")
    _ = harness.ask(owner, "insert", #"{"feed":"a","elements":[\#(elements)]}"#)
    let ids = (0..<12).map { _ in harness.connect(uid: 7) }
    for id in ids { supply(harness, id, "snapshot") }
    let steps = produced(harness, for: ids)
    let (least, most): (Int, Int) = (12 * 5000 * 200, (2 << 20) + 5000 * 220)
    expect(steps.reduce(0, +) > least)
    expectEqual(steps.max().map { $0 <= most }, true)
  }

  /// Runs turns until a connection has so many answers. Returns those of each turn that had some; the other user's `ping` is
  /// answered in the first.
  private func answers(_ harness: EngineHarness, _ id: ConnectionID, beside other: ConnectionID, count: Int) -> [Int] {
    supply(harness, other, "ping")
    var answered: [Int] = []
    for turn in 0..<1000 where answered.reduce(0, +) < count {
      harness.turnOnce()
      if turn == 0 { expectEqual(harness.take(other).count, 1) }
      answered.append(harness.take(id).count)
    }
    return answered.filter { $0 > 0 }
  }

  @Test("lists of feeds count as work, also if their user may read none of the feeds")
  func listsOfHiddenFeeds() throws {
    let harness = EngineHarness()
    try harness.configure(#"{"access":[{"uid":7,"feeds":"none","allow":"read"}]}"#)
    let owner = harness.connect(uid: 0)
    for place in 0..<512 { _ = harness.ask(owner, "define", #"{"feed":"f\#(place)","kind":"single"}"#) }
    let (id, other) = (harness.connect(uid: 7), harness.connect(uid: 8))
    for number in 1...20 { supply(harness, id, "feeds", number) }
    // Each list is 512 units of work; a share is 2048.
    expectEqual(answers(harness, id, beside: other, count: 20), [4, 4, 4, 4, 4])
  }

  @Test("the numbers of the daemon count as work", arguments: ["stats", "quotas"])
  func numbers(method: String) {
    let harness = EngineHarness()
    let (id, other) = (harness.connect(uid: 0), harness.connect(uid: 8))
    for number in 1...40 { supply(harness, id, method, number) }
    let answered = answers(harness, id, beside: other, count: 40)
    expectEqual(answered.reduce(0, +), 40)
    // Each is at least 128 units of work.
    expect(answered.allSatisfy { $0 <= 16 }, "\(answered)")
  }

  @Test("reads of many rows with short answers count as work", arguments: ["verify", "query"])
  func shortAnswersOfManyRows(method: String) {
    let harness = EngineHarness()
    let owner = harness.connect(uid: 1)
    _ = harness.ask(owner, "define", #"{"feed":"a","kind":"array"}"#)
    let elements = (0..<600).map { #"{"x":\#($0)}"# }.joined(separator: ",")
    _ = harness.ask(owner, "insert", #"{"feed":"a","elements":[\#(elements)]}"#)
    let (id, other) = (harness.connect(uid: 7), harness.connect(uid: 8))
    for number in 1...20 {
      harness.supply(id, method, #"{"feed":"a","path":"$[?@.x < 0]"}"#, id: number)
    }
    let answered = answers(harness, id, beside: other, count: 20)
    expectEqual(answered.reduce(0, +), 20)
    // Each reads 600 rows, a unit of work or more for each, and a share is 2048 units.
    expect(answered.allSatisfy { $0 <= 4 }, "\(answered)")
  }

  @Test("queries count the sections of their feed, also if these are empty")
  func queriesOfManySections() {
    let harness = EngineHarness()
    let owner = harness.connect(uid: 1)
    for place in 0..<1024 { _ = harness.ask(owner, "define", #"{"feed":"f\#(place)","kind":"array"}"#) }
    let children = (0..<1024).map { "\"f\($0)\"" }.joined(separator: ",")
    _ = harness.ask(owner, "define", #"{"feed":"a","kind":"composed","children":[\#(children)]}"#)
    let (id, other) = (harness.connect(uid: 7), harness.connect(uid: 8))
    for number in 1...6 {
      harness.supply(id, "query", #"{"feed":"a","path":"$[0]"}"#, id: number)
    }
    let answered = answers(harness, id, beside: other, count: 6)
    expectEqual(answered.reduce(0, +), 6)
    // A share is 2048 units of work.
    expect(answered.allSatisfy { $0 <= 2 }, "\(answered)")
  }

  @Test("paths count with what it takes to compile them, also if they are refused", arguments: ["", " ||"])
  func paths(end: String) {
    let harness = harness()
    let (id, other) = (harness.connect(uid: 7), harness.connect(uid: 8))
    let path = "$[?" + (0..<1000).map { "@.y == \($0)" }.joined(separator: " || ") + end + "]"
    for number in 1...6 {
      harness.supply(id, "query", #"{"feed":"a","path":"\#(path)"}"#, id: number)
    }
    let answered = answers(harness, id, beside: other, count: 6)
    expectEqual(answered.reduce(0, +), 6)
    // The memory of the path is more than 100 kB, about 1000 units of work.
    expect(answered.allSatisfy { $0 <= 3 }, "\(answered)")
  }

  @Test("a connection with reads for many turns lets others of its user have a share")
  func connectionsTakeTurns() {
    let harness = harness()
    let (busy, other) = (harness.connect(uid: 7), harness.connect(uid: 7))
    for number in 1...100 { supply(harness, busy, "stats", number) }
    supply(harness, other, "describe")
    harness.turnOnce()
    // Each is at least 128 units of work, and a share is 2048.
    expect((1...16).contains(harness.take(busy).count))
    expectEqual(harness.take(other).count, 0)
    harness.turnOnce()
    expectEqual(harness.take(other).count, 1)
    expect((1...16).contains(harness.take(busy).count))
  }

  @Test("a JSON-RPC batch of long reads leaves its user a share")
  func batchBesideReads() {
    let harness = EngineHarness()
    let owner = harness.connect(uid: 1)
    _ = harness.ask(owner, "define", #"{"feed":"a","kind":"array"}"#)
    let elements = (0..<1500).map { #"{"x":\#($0)}"# }.joined(separator: ",")
    _ = harness.ask(owner, "insert", #"{"feed":"a","elements":[\#(elements)]}"#)
    let (busy, other) = (harness.connect(uid: 7), harness.connect(uid: 7))
    let query = #"{"jsonrpc":"2.0","id":1,"method":"query","params":{"feed":"a","path":"$[?@.x < 0]"}}"#
    harness.supply(busy, EngineHarness.frame("[" + Array(repeating: query, count: 40).joined(separator: ",") + "]"))
    for _ in 0..<3 { harness.turnOnce() }
    // In each turn the batch takes what is a share of its user.
    supply(harness, other, "describe")
    harness.turnOnce()
    expectEqual(harness.take(other).count, 1)
    expectEqual(harness.take(busy).count, 0)
    harness.turn()
    expectEqual(harness.take(busy).count, 1)
  }

  @Test("watches of a user share a turn")
  func manyWatches() {
    let harness = harness()
    let (id, other) = (harness.connect(uid: 7), harness.connect(uid: 8))
    let pair =
      EngineHarness.request("watch", #"{"feed":"a","initial":false}"#)
      + EngineHarness.request("unwatch", #"{"feed":"a"}"#)
    harness.supply(id, pair.repeated(500))
    supply(harness, other, "ping")
    var answered: [Int] = []
    repeat {
      harness.turnOnce()
      answered.append(harness.take(id).count)
      if answered.count == 1 { expectEqual(harness.take(other).count, 1) }
    } while answered.count < 1000 && (harness.waitingInput(of: id) > 0 || harness.hasWork)
    // A watch counts as 16 KiB of a share of 2 MiB, and an unwatch as nothing.
    expectEqual(answered.first, 256)
    expectEqual(answered.max(), 256)
    expectEqual(answered.reduce(0, +), 1000)
  }

  @Test("the watches of a batch are begun in several turns")
  func watchesOfABatch() {
    let harness = harness()
    let (id, other) = (harness.connect(uid: 7), harness.connect(uid: 8))
    let pair = #"""
      {"jsonrpc":"2.0","id":1,"method":"watch","params":{"feed":"a","initial":false}},
      {"jsonrpc":"2.0","id":1,"method":"unwatch","params":{"feed":"a"}}
      """#
    harness.supply(id, EngineHarness.frame("[" + Array(repeating: pair, count: 300).joined(separator: ",") + "]"))
    supply(harness, other, "ping")
    harness.turnOnce()
    expectEqual(harness.take(other).count, 1)
    expect(harness.take(id).isEmpty && harness.hasWork)
    harness.turn()
    expectEqual(harness.take(id).map { $0.json?.items.count }, [600])
  }

  @Test("parts of long rows for many connections are made in several turns")
  func partsOfLongRows() {
    let harness = EngineHarness()
    let owner = harness.connect(uid: 1)
    let length = 400_000
    let element = "\"" + String(repeating: "x", count: length) + "\""
    _ = harness.ask(owner, "define", #"{"feed":"a","kind":"array"}"#)
    for _ in 0..<4 { _ = harness.ask(owner, "insert", #"{"feed":"a","element":\#(element)}"#) }
    let ids = (0..<40).map { _ in harness.connect(uid: 7) }
    for id in ids { supply(harness, id, "snapshot") }
    var (before, most, turns) = (0, 0, 0)
    repeat {
      harness.turnOnce()
      turns += 1
      let all = harness.engine.sessions.quotas.bytes(of: 7) + ids.reduce(0) { $0 + harness.halfFrame(of: $1) }
      most = max(most, all - before)
      before = all
    } while turns < 10_000 && (harness.hasWork || ids.contains { harness.engine.sessions[$0]?.output.count != 0 })
    expect(ids.allSatisfy { harness.take($0).first.map { $0.utf8.count > 4 * length } == true })
    // The memory of a part at least doubles when it grows.
    expect(most > length && most < (2 << 20) + 6 * length, "\(grouped(most)) bytes in a turn")
  }
}
