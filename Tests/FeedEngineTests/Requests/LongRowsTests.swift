import FeedJSON
import FeedModel
import FeedServer
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// `range` and `snapshot` that are answered in parts.
struct LongRowsTests {
  /// Feeds of all kinds over the list `a` and the collection `c`.
  private static let definitions = [
    #"{"feed":"a","kind":"array","type":"$.t"}"#,
    #"{"feed":"c","kind":"collection","id":"$.n","type":"$.t","bins":[{"name":"x","filter":"@.n<3"},{"name":"y","filter":"@.n<0"},{"name":"z"}]}"#,
    #"{"feed":"k","kind":"collection","id":"$.n","section":"$.t"}"#,
    #"{"feed":"one","kind":"single"}"#,
    #"{"feed":"all","kind":"composed","children":["a","k","c","one"]}"#,
    #"{"feed":"slots","kind":"slots","pattern":["x","y","x"],"contents":{"x":"a","y":"k","z":"c"},"fixed":{"1":"z","4":"z"}}"#,
    #"{"feed":"own","kind":"slots","pattern":["x","y"],"contents":{"x":"a","y":"slots"},"types":"element"}"#,
    #"{"feed":"tail","kind":"view","of":"all","offset":2,"limit":7}"#,
    #"{"feed":"sorted","kind":"view","of":"k","sort":[{"by":"$.m"}],"offset":1}"#,
  ]

  private static func elements(_ count: Int) -> String {
    (0..<count).map { #"{"n":\#($0),"m":\#($0 * 7 % 5),"t":"\#($0 % 3)"}"# }.joined(separator: ",")
  }

  /// Defines the feeds, with `count` elements in each that stores elements. Feeds that are refused stay away.
  private static func fill(_ harness: EngineHarness, count: Int) -> (ConnectionID, [String]) {
    let client = harness.connect()
    let known = definitions.filter { harness.ask(client, "define", $0).first?.json?["result"] != nil }
    _ = harness.ask(client, "insert", #"{"feed":"a","elements":[\#(elements(count))]}"#)
    _ = harness.ask(client, "update", #"{"feed":"c","elements":[\#(elements(count))]}"#)
    _ = harness.ask(client, "update", #"{"feed":"k","elements":[\#(elements(count))]}"#)
    return (client, known.compactMap { $0.json?["feed"]?.string })
  }

  /// All ranges of a feed, and its snapshot.
  private static func requests(_ feed: Feed) -> [(method: String, params: String)] {
    var requests = [("snapshot", #"{"feed":"\#(feed.name)"}"#)]
    for (index, section) in feed.sections.enumerated() {
      for from in 0...section.count {
        for count in 0...section.count - from {
          requests.append(("range", #"{"feed":"\#(feed.name)","section":\#(index),"from":\#(from),"count":\#(count)}"#))
        }
      }
    }
    return requests
  }

  @Test(arguments: [0, 1, 4, 9])
  func answerInPartsHasTheSameBytes(count: Int) throws {
    let (direct, sliced) = (EngineHarness(), EngineHarness(queries: SlicedWork("queries", slice: 0, isEager: true)))
    let (reader, feeds) = Self.fill(direct, count: count)
    let (other, _) = Self.fill(sliced, count: count)
    expectEqual(feeds.count, Self.definitions.count)
    for name in feeds {
      for (method, params) in Self.requests(try direct.engine.catalog.feed(named: name)) {
        let answers = direct.ask(reader, method, params)
        expect(answers.count == 1 && answers == sliced.ask(other, method, params), "\(method) \(params)")
      }
    }
  }

  /// Views and slots feeds whose snapshots do not retain each row.
  @Test func wideRangesHaveTheSameBytes() throws {
    let (direct, sliced) = (EngineHarness(), EngineHarness(queries: SlicedWork("queries", slice: 0, isEager: true)))
    let (reader, feeds) = Self.fill(direct, count: 2200)
    let (other, _) = Self.fill(sliced, count: 2200)
    for harness in [direct, sliced] {
      let client = harness === direct ? reader : other
      for (name, source) in [("plain", "a"), ("typed", "slots"), ("keyed", "k")] {
        _ = harness.ask(client, "define", #"{"feed":"\#(name)","kind":"view","of":"\#(source)","offset":50}"#)
      }
    }
    for name in feeds + ["plain", "typed", "keyed"] {
      for from in [0, 1, 63, 64, 700] {
        let params = #"{"feed":"\#(name)","from":\#(from),"count":1300}"#
        let answers = direct.ask(reader, "range", params)
        expect(answers.count == 1 && answers == sliced.ask(other, "range", params), "\(params)")
      }
    }
  }

  /// An answer of exactly `maxFrame` bytes is sent, and a longer one is refused, also as an entry of a batch.
  @Test(arguments: ["snapshot", "range"], ["1", #""a-long-identifier-of-the-request""#])
  func answerInPartsMayFillAFrame(method: String, id: String) {
    func ask(maxFrame: Int, isBatch: Bool) -> [String] {
      var limits = Limits()
      limits.maxFrame = maxFrame
      let harness = EngineHarness(limits: limits, queries: SlicedWork("queries", slice: 0, isEager: true))
      let client = harness.connect()
      _ = harness.ask(client, "define", #"{"feed":"k","kind":"collection","id":"$.n","section":"$.t","type":"$.t"}"#)
      for number in 0..<40 {
        _ = harness.ask(client, "update", #"{"feed":"k","element":{"n":\#(number),"t":"\#(number % 3)"}}"#)
      }
      let request = #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":{"feed":"k"}}"#
      harness.supply(client, EngineHarness.frame(isBatch ? "[\(request)]" : request))
      harness.turn()
      return harness.take(client)
    }
    for isBatch in [false, true] {
      let answer = ask(maxFrame: 1 << 20, isBatch: isBatch)
      let length = answer[0].utf8.count
      expect(length > 300)
      expectEqual(ask(maxFrame: length, isBatch: isBatch), answer)
      let refused = ask(maxFrame: length - 1, isBatch: isBatch)
      expect(refused.count == 1 && refused[0].contains(#""code":-32007"#), "\(refused)")
    }
  }

  /// A notification gets no answer, and the requests after it are executed.
  @Test func notificationInPartsIsNotAnswered() {
    let harness = EngineHarness(queries: SlicedWork("queries", slice: 0, isEager: true))
    let (client, _) = Self.fill(harness, count: 9)
    harness.supply(
      client,
      EngineHarness.frame(#"{"jsonrpc":"2.0","method":"snapshot","params":{"feed":"all"}}"#)
        + EngineHarness.request("range", #"{"feed":"a","count":0}"#, id: 2))
    harness.turn()
    expectEqual(harness.take(client), [#"{"jsonrpc":"2.0","id":2,"result":{"revision":10,"elements":[],"types":[]}}"#])
  }

  /// The memory of a long answer becomes that of the output, so the answer is not held twice.
  @Test func memoryOfALongAnswerIsTakenOver() throws {
    let harness = EngineHarness()
    let client = Self.list(harness, count: 60_000)
    let feed = try harness.engine.catalog.feed(named: "list")
    let session = try require(harness.engine.sessions[client])
    let job = [UInt8](#""id""#.utf8).withUnsafeBytes { id in
      RowsJob(
        RowsAnswer(rangeOf: feed), of: feed.makeSnapshot(), for: harness.engine.makeReply(to: session, id: id),
        maxFrame: 16 << 20)
    }
    var budget = 1 << 20
    while try !job.advance(budget: &budget) { budget = 1 << 20 }
    let text = try require(job.frame)
    let (block, count) = (text.bytes.pointer, text.bytes.count)
    harness.engine.queue(session, taking: text)
    expect(text.bytes.isEmpty && harness.engine.outbox.size == count)
    withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: 2) { slices in
      expectEqual(session.output.gather(into: slices), 1)
      expect(slices[0].baseAddress == UnsafeRawPointer(block) && slices[0].count == count)
    }
    session.output.removeAll()
  }

  /// Few rows with more than 1 MiB are answered in parts: the answer is not there after the turn that took the request.
  @Test(arguments: [(1, false), (40, true)])
  func fewLongRowsAreAnsweredInParts(count: Int, isInParts: Bool) throws {
    let harness = EngineHarness()
    let client = harness.connect()
    for definition in [
      #"{"feed":"a","kind":"array"}"#, #"{"feed":"v","kind":"view","of":"a"}"#,
      #"{"feed":"s","kind":"slots","contents":{"x":"a"},"pattern":["x"]}"#,
    ] { _ = harness.ask(client, "define", definition) }
    let element = "\"" + String(repeating: "x", count: 400_000) + "\""
    for _ in 0..<count { _ = harness.ask(client, "insert", #"{"feed":"a","element":\#(element)}"#) }
    for feed in ["a", "v", "s"] {
      for method in ["range", "snapshot"] {
        harness.supply(client, method, #"{"feed":"\#(feed)"}"#)
        harness.turnOnce()
        expectEqual(harness.engine.sessions[client]?.line.isAnswering, isInParts, "\(method) \(feed)")
        harness.turn()
        expect(harness.take(client).map(\.utf8.count).allSatisfy { $0 > count * 400_000 })
      }
    }
  }

  /// A short row may be followed by very long ones, which nobody has room for.
  @Test func nothingIsReadAfterALongRow() throws {
    let harness = EngineHarness()
    let client = harness.connect()
    for definition in [
      #"{"feed":"a","kind":"array"}"#, #"{"feed":"v","kind":"view","of":"a"}"#,
      #"{"feed":"s","kind":"slots","contents":{"x":"a"},"pattern":["x"]}"#,
      #"{"feed":"p","kind":"composed","children":["a"]}"#,
    ] { _ = harness.ask(client, "define", definition) }
    let long = "\"" + String(repeating: "x", count: 1000) + "\""
    _ = harness.ask(client, "insert", #"{"feed":"a","elements":[1,2,\#(long),3,\#(long),\#(long),4,5]}"#)
    for name in ["a", "v", "s", "p"] {
      for changes in [false, true] {
        let snapshot = try harness.engine.catalog.feed(named: name).makeSnapshot()
        // The rest is then read from captured rows.
        if changes { _ = harness.ask(client, "replace", #"{"feed":"a","at":[0],"elements":[9]}"#) }
        var counts: [Int] = []
        while counts.last != 0 { counts.append(snapshot.next(max: 16, bytes: 500) { _ in }) }
        expectEqual(counts, [3, 2, 1, 2, 0], "\(name)")
      }
    }
  }

  /// The sections are cut at each place, however little work a turn does.
  @Test(arguments: 1...5)
  func smallPartsHaveTheSameBytes(budget: Int) throws {
    let harness = EngineHarness()
    let (client, feeds) = Self.fill(harness, count: 9)
    for name in feeds {
      let feed = try harness.engine.catalog.feed(named: name)
      let answer = harness.ask(client, "snapshot", #"{"feed":"\#(name)"}"#)
      let session = try require(harness.engine.sessions[client])
      let reply = harness.engine.makeReply(to: session, id: nil)
      let job = RowsJob(RowsAnswer(sectionsOf: feed), of: feed.makeSnapshot(), for: reply, maxFrame: 1 << 20)
      var left = budget
      while try !job.advance(budget: &left) { left = budget }
      var text = ByteBuffer()
      job.appendResult(to: &text)
      let members = String(decoding: text.bytes, as: UTF8.self)
      expectEqual(answer, [#"{"jsonrpc":"2.0","id":1,"result":{\#(members)}}"#])
    }
  }

  private static func list(_ harness: EngineHarness, count: Int) -> ConnectionID {
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"list","kind":"array"}"#)
    let numbers = (0..<count).map { String($0) }.joined(separator: ",")
    _ = harness.ask(client, "insert", #"{"feed":"list","elements":[\#(numbers)]}"#)
    return client
  }

  /// The answer to `range` over a list of numbers.
  private static func range(_ rows: Range<Int>, revision: Int = 2) -> String {
    let elements = rows.map { String($0) }.joined(separator: ",")
    let types = rows.map { _ in "null" }.joined(separator: ",")
    let members = #""revision":\#(revision),"elements":[\#(elements)],"types":[\#(types)]"#
    return #"{"jsonrpc":"2.0","id":1,"result":{\#(members)}}"#
  }

  @Test func rangesAroundTheThreshold() {
    let harness = EngineHarness()
    let client = Self.list(harness, count: RowsJob.fewRows + 40)
    for count in RowsJob.fewRows - 1...RowsJob.fewRows + 2 {
      for from in [0, 1, 37] {
        let answer = harness.ask(client, "range", #"{"feed":"list","from":\#(from),"count":\#(count)}"#)
        expectEqual(answer, [Self.range(from..<from + count)], "\(count) from \(from)")
      }
    }
  }

  private static func request(_ id: Int, _ method: String, _ params: String = #"{"feed":"list"}"#) -> [UInt8] {
    EngineHarness.request(method, params, id: id)
  }

  @Test func othersAreAnsweredMeanwhile() {
    let harness = EngineHarness()
    let client = Self.list(harness, count: 40_000)
    let other = harness.connect(uid: 1001)
    harness.supply(client, Self.request(1, "range"))
    var pings = 0
    while harness.halfFrame(of: client) == 0 && pings < 100 {
      harness.supply(other, Self.request(2, "ping"))
      harness.turnOnce()
      pings += harness.take(other).count
    }
    expect(pings > 4 && pings < 100)
    harness.turn()
    expectEqual(harness.take(client), [Self.range(0..<40_000)])
  }

  @Test func answerShowsTheStateAtItsBeginning() {
    let harness = EngineHarness()
    let client = Self.list(harness, count: 20_000)
    let other = harness.connect(uid: 1001)
    harness.supply(client, Self.request(1, "range", #"{"feed":"list","from":5000}"#))
    harness.turnOnce()
    for step in 0..<4 {
      harness.supply(other, Self.request(1, "remove", #"{"feed":"list","at":\#(4999 + 3000 * step),"count":500}"#))
      harness.supply(other, Self.request(2, "insert", #"{"feed":"list","elements":[1,2],"at":\#(step)}"#))
    }
    harness.supply(other, Self.request(2, "undefine"))
    harness.turn()
    expect(harness.take(other).allSatisfy { $0.json?["result"] != nil })
    expectEqual(harness.take(client), [Self.range(5000..<20_000)])
  }

  @Test func answerIsCancelledWithItsConnection() {
    let harness = EngineHarness()
    let client = Self.list(harness, count: 40_000)
    let reader = harness.connect(uid: 7)
    harness.supply(reader, Self.request(1, "snapshot"))
    harness.turnOnce()
    expect(harness.engine.sessions.quotas.bytes(of: 7) > 10_000)
    harness.disconnect(reader)
    expect(harness.engine.sessions.quotas.bytes(of: 7) == 0 && harness.engine.longAnswers.isEmpty && !harness.hasWork)
    expectEqual(harness.ask(client, "range", #"{"feed":"list","count":3}"#), [Self.range(0..<3)])
  }

  @Test(arguments: ["range", "snapshot"])
  func tooLargeAnswerIsRefused(method: String) {
    let harness = EngineHarness { $0.maxFrame = 64 << 10 }
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"list","kind":"array"}"#)
    let elements = (0..<5000).map(String.init).joined(separator: ",")
    for _ in 0..<4 { _ = harness.ask(client, "insert", #"{"feed":"list","elements":[\#(elements)]}"#) }
    let error = harness.ask(client, method, #"{"feed":"list"}"#).first?.json?["error"]
    expect(error?["code"]?.int == -32007 && error?["data"]?["limit"]?.string == "maxFrame")
    expectEqual(harness.ask(client, "range", #"{"feed":"list","count":1}"#), [Self.range(0..<1, revision: 5)])
  }
}
