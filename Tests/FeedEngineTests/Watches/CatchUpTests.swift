import FeedModel
import Testing

@testable import FeedEngine

@Suite("Catching up")
struct CatchUpTests {
  private let harness = EngineHarness()

  /// Adds `count` rows with each of several requests.
  private func add(_ count: Int, times: Int) {
    let id = harness.connect()
    _ = harness.ask(id, "define", #"{"feed":"c","kind":"collection"}"#)
    for time in 0..<times {
      let elements = (0..<count).map { "{\"id\":\(time * count + $0)}" }.joined(separator: ",")
      _ = harness.ask(id, "update", "{\"feed\":\"c\",\"elements\":[\(elements)]}")
    }
  }

  @Test("a step composes as many rows as it may, and at most one change more")
  func largeChanges() throws {
    add(1000, times: 10)
    let feed = try harness.engine.catalog.feed(named: "c")
    let end = feed.revision
    var catchUp = CatchUp(from: end - 10)
    for step in 1...3 {
      var budget = 2500
      guard case .more = catchUp.advance(feed, budget: &budget, maxSize: 100_000) else {
        Issue.record("step \(step) is not the last one")
        return
      }
      #expect(catchUp.reached == end - 10 + UInt64(3 * step))
      #expect(budget == 2500 - 3 * 1001)
    }
    var budget = 2500
    guard case .complete(let change) = catchUp.advance(feed, budget: &budget, maxSize: 100_000) else {
      Issue.record("the last step composes the rest")
      return
    }
    #expect(budget == 2500 - 1001)
    #expect(change.added.count == 10_000)
    #expect(change.size == 10_000)
  }

  @Test("more rows than a snapshot has are out of reach")
  func tooLarge() throws {
    add(1000, times: 3)
    let feed = try harness.engine.catalog.feed(named: "c")
    var catchUp = CatchUp(from: feed.revision - 3)
    var budget = 1
    guard case .more = catchUp.advance(feed, budget: &budget, maxSize: 1500) else {
      Issue.record("the first change fits")
      return
    }
    budget = 1
    guard case .outOfReach = catchUp.advance(feed, budget: &budget, maxSize: 1500) else {
      Issue.record("the second change does not fit")
      return
    }
  }
}
