import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// The filter steps that make an image due, because replay takes them again.
@Suite("Steps that replay takes again") struct ReplayStepsTests {
  /// A filter that visits each number of an element, and accepts it.
  private static let slow = "@..[?@ == 'x']"
  private static let numbers = 1000
  private static let element =
    #"{"id":1,"v":[\#(Array(repeating: "1", count: numbers).joined(separator: ",")),"x"]}"#

  private let harness: EngineHarness
  private let client: ConnectionID

  init() {
    harness = EngineHarness(isDurable: true) { $0.maxQuerySteps = 5000 }
    client = harness.connect()
  }

  /// The filter steps of one request, and whether it was refused.
  private func steps(_ method: String, _ params: String) -> (count: UInt64, isRefused: Bool) {
    let before = harness.engine.catalog.stepsTaken
    let answer = harness.ask(client, method, params).first?.json
    return (harness.engine.catalog.stepsTaken - before, answer?["result"] == nil)
  }

  /// - Parameter filter: that of each of `count` bins.
  private func collection(bins count: Int, filter: String) -> String {
    let bins = (0..<count).map { #"{"name":"b\#($0)","filter":"\#(filter)"}"# }.joined(separator: ",")
    return #"{"feed":"c","kind":"collection","replace":true,"bins":[\#(bins)]}"#
  }

  @Test("an element is counted with the request that pushes it")
  func element() {
    _ = steps("define", collection(bins: 1, filter: Self.slow))
    let (count, isRefused) = steps("update", #"{"feed":"c","element":\#(Self.element)}"#)
    expect(!isRefused && count > Self.numbers)
  }

  @Test("a redefined collection judges its elements again")
  func redefinition() {
    _ = steps("define", collection(bins: 1, filter: "@.id > 0"))
    _ = steps("update", #"{"feed":"c","element":\#(Self.element)}"#)
    let one = steps("define", collection(bins: 1, filter: Self.slow))
    expect(!one.isRefused && one.count > Self.numbers)
    _ = steps("define", collection(bins: 2, filter: "@.id > 0"))
    let two = steps("define", collection(bins: 2, filter: Self.slow))
    expect(!two.isRefused && two.count == 2 * one.count)
    _ = steps("define", collection(bins: 1, filter: "@.id > 0"))
    let refused = steps("define", collection(bins: 8, filter: Self.slow))
    expect(refused.isRefused && refused.count > 5000)
  }

  @Test("an element that is refused for its steps counts")
  func refusedElement() {
    _ = steps("define", collection(bins: 8, filter: Self.slow))
    let (count, isRefused) = steps("update", #"{"feed":"c","element":\#(Self.element)}"#)
    expect(isRefused && count > 5000)
  }

  @Test("a view counts each element that it judges", arguments: [1, 3])
  func views(count: Int) {
    _ = steps("define", collection(bins: 1, filter: "@.id > 0"))
    let plain = steps("update", #"{"feed":"c","element":\#(Self.element)}"#).count
    var defined: UInt64 = 0
    for view in 0..<count {
      defined = steps("define", #"{"feed":"v\#(view)","kind":"view","of":"c","filter":"\#(Self.slow)"}"#).count
    }
    expect(defined > 2 * UInt64(Self.numbers), "the definition is charged first, and then executed")
    let changed = #"{"id":1,"w":1,"v\#(Self.element.dropFirst(9))"#
    let followed = steps("update", #"{"feed":"c","element":\#(changed)}"#)
    expect(!followed.isRefused && followed.count > plain + UInt64(count * Self.numbers))
  }

  @Test("replay counts the same steps")
  func replay() throws {
    _ = steps("define", collection(bins: 1, filter: Self.slow))
    _ = steps("define", #"{"feed":"v","kind":"view","of":"c","filter":"\#(Self.slow)"}"#)
    _ = steps("update", #"{"feed":"c","element":\#(Self.element)}"#)
    _ = steps("define", collection(bins: 8, filter: Self.slow))
    let again = EngineHarness(limits: harness.engine.limits)
    for batch in harness.stored { try again.engine.replay(batch) }
    expectEqual(again.engine.catalog.stepsTaken, harness.engine.catalog.stepsTaken)
  }
}
