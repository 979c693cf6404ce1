import TestSupport
import Testing

@testable import FeedModel

@Suite("Copies of a long commit") struct ForksTests {
  /// Each turn exchanges all copies, so a commit that changes many feeds makes few.
  @Test("there are few copies, and further feeds are changed in place")
  func few() {
    var forks = Forks()
    forks.begin(steps: 100_000)
    var copies = 0
    for feed in 1...1000 where forks.shallAdd(feed, rows: 1, steps: nil) {
      forks.add(feed) {}
      copies += 1
    }
    #expect((1..<1000).contains(copies))
    #expect(!forks.areAll)
    // A feed is copied once.
    for feed in 1...1000 { expectEqual(forks.shallAdd(feed, rows: 1, steps: nil), false) }
    forks.discard()
    #expect(forks.isEmpty && forks.areAll)
    forks.willChange(1)
    #expect(!forks.areAll)
    forks.begin(steps: 0)
    #expect(forks.areAll)
  }
}
