import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine

/// A connection that sends updates of one form again and again gets the same answers as one for each request.
struct UpdateFormTests {
  /// Requests around a number and an element.
  private static let forms: [@Sendable (Int, String) -> String] = [
    { #"{"jsonrpc":"2.0","id":\#($0),"method":"update","params":{"feed":"c","element":\#($1)}}"# },
    { #"{"method":"update","params":{"element":\#($1),"feed":"c"},"jsonrpc":"2.0","id":\#($0)}"# },
    { #"{ "jsonrpc": "2.0", "id": \#($0), "method": "update", "params": { "feed": "c", "element": \#($1) } }"# },
    { _, element in #"{"jsonrpc":"2.0","method":"update","params":{"feed":"c","element":\#(element)}}"# },
    { #"{"jsonrpc":"2.0","id":"n\#($0)","method":"update","params":{"feed":"c","element":\#($1)}}"# },
    { #"{"jsonrpc":"2.0","id":\#($0),"method":"update","params":{"feed":"d","element":\#($1)}}"# },
    { #"{"jsonrpc":"2.0","id":\#($0),"method":"update","params":{"feed":"c","element":\#($1),"animation":"fade"}}"# },
    { #"{"jsonrpc":"2.0","id":\#($0),"method":"update","params":{"feed":"c","element":\#($1),"feed":"d"}}"# },
    { #"{"jsonrpc":"2.0","id":\#($0),"method":"update","params":{"feed":"c","elements":[\#($1)]}}"# },
    { #"{"jsonrpc":"2.0","id":\#($0),"method":"update","params":{"feed":"nowhere","element":\#($1)}}"# },
    { #"{"jsonrpc":"2.0","id":\#($0),"method":"updat","params":{"feed":"c","element":\#($1)}}"# },
  ]

  private static let elements = [
    #"{"id":1,"v":1}"#, #"{"id":2,"v":[1,{"a":"b"}]}"#, #"{"v":0,"id":"x"}"#, #"{"id":1,"v":2}"#, #"{"id":1,"v":2}"#,
    #"{ "id" : 3, "v" : " " }"#, #"{"v":1}"#, "5", #""id""#, "[]", #"{"id":null}"#, #"{"id":4,}"#, #"{"id":4"#, "",
    #"{"id":5,"text":"\#(String(repeating: "long ", count: 100))"}"#, #"{"id":1,"hidden":true}"#,
    #"{"id":2,"hidden":true}"#,
  ]

  private func harness(isDurable: Bool) -> EngineHarness {
    let harness = EngineHarness(isDurable: isDurable)
    let id = harness.connect()
    for definition in [
      #"{"feed":"c","kind":"collection","bins":[{"name":"shown","filter":"!@.hidden","sort":[{"by":"$.v"}]}]}"#,
      #"{"feed":"d","kind":"collection"}"#,
    ] {
      let answers = harness.ask(id, "define", definition)
      expect(answers.count == 1 && answers[0].contains(#""result""#), "\(answers)")
    }
    return harness
  }

  @Test(arguments: [false, true], [1, 4]) func answersAreThoseOfSingleRequests(isDurable: Bool, run: Int) {
    let (known, single) = (harness(isDurable: isDurable), harness(isDurable: isDurable))
    let client = known.connect()
    let (watcher, reference) = (known.connect(), single.connect())
    for feed in ["c", "d"] {
      _ = known.ask(watcher, "watch", #"{"feed":"\#(feed)"}"#)
      _ = single.ask(reference, "watch", #"{"feed":"\#(feed)"}"#)
    }
    var number = 0
    for form in Self.forms {
      for element in Self.elements {
        for _ in 0..<run {
          let text = form(number, element)
          known.send(client, text)
          let other = single.connect()
          single.send(other, text)
          expectEqual(known.take(client), single.take(other), "\(text)")
          expectEqual(known.take(watcher), single.take(reference), "\(text)")
          single.disconnect(other)
          number = number &* 7 &+ 1
          if number > 1 << 40 { number = 3 }
        }
      }
    }
    expect(known.engine.catalog.revision > 50)
  }

  @Test func formsOfManyRequestsInOneTurn() {
    let harness = harness(isDurable: true)
    let client = harness.connect()
    var (bytes, expected): ([UInt8], Int) = ([], 0)
    for (place, form) in Self.forms.enumerated() where [0, 1, 2, 5].contains(place) {
      for number in 0..<50 {
        bytes += EngineHarness.frame(form(number, #"{"id":\#(number * 11 + place),"v":\#(number)}"#))
        expected += 1
      }
    }
    harness.deliver(client, bytes)
    let answers = harness.take(client)
    expect(answers.count == expected && answers.allSatisfy { $0.contains(#""result""#) })
    let feeds = harness.engine.catalog.feeds
    expect(feeds["c"]?.count == 150 && feeds["d"]?.count == 50)
  }
}
