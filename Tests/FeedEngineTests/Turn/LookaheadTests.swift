import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine

/// Looking at coming updates of a large collection changes nothing about them.
struct LookaheadTests {
  private static let count = 2000

  private static func id(_ number: Int) -> String { number % 3 == 0 ? "\"n\(number)\"" : "\(number)" }

  private static func element(_ number: Int, _ version: Int) -> String {
    let id = id(number)
    return number % 5 == 0 ? #"{"id":\#(id),"v":\#(version)}"# : #"{"v":\#(version),"id":\#(id)}"#
  }

  private static func frames() -> [UInt8] {
    var bytes: [UInt8] = []
    for step in 0..<3000 {
      let number = (step * 7919) % count
      var (method, params) = ("update", #"{"feed":"c","element":\#(element(number, step))}"#)
      if step % 11 == 7 { (method, params) = ("delete", #"{"feed":"c","id":\#(id(number))}"#) }
      if step % 97 == 50 { (method, params) = ("get", #"{"feed":"d","at":[0,0]}"#) }
      bytes += EngineHarness.request(method, params, id: step)
    }
    return bytes
  }

  /// The answers to the same requests, given in pieces of so many bytes.
  private func answers(isDurable: Bool, piece: Int) -> (answers: [String], feed: [String]) {
    let harness = EngineHarness(isDurable: isDurable)
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection","bins":[{"name":"a","sort":[{"by":"$.v"}]}]}"#)
    for start in stride(from: 0, to: Self.count, by: 1000) {
      let elements = (start..<start + 1000).map { Self.element($0, -$0) }.joined(separator: ",")
      _ = harness.ask(client, "update", #"{"feed":"c","elements":[\#(elements)]}"#)
    }
    let bytes = Self.frames()
    for start in stride(from: 0, to: bytes.count, by: piece) {
      harness.deliver(client, Array(bytes[start..<min(bytes.count, start + piece)]))
    }
    let answers = harness.take(client)
    return (answers, harness.ask(client, "verify", #"{"feed":"c"}"#))
  }

  @Test(arguments: [false, true]) func requestsInOnePieceAreAnsweredAsOneByOne(isDurable: Bool) {
    let (together, single) = (answers(isDurable: isDurable, piece: 60_000), answers(isDurable: isDurable, piece: 90))
    expect(together.answers.count == 3000 && together.answers == single.answers)
    expect(together.feed == single.feed && !together.feed.isEmpty)
  }
}
