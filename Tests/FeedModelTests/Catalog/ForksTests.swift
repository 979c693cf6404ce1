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
    expect((1..<1000).contains(copies))
    expect(!forks.areAll)
    // A feed is copied once.
    for feed in 1...1000 { expectEqual(forks.shallAdd(feed, rows: 1, steps: nil), false) }
    forks.discard()
    expect(forks.isEmpty && forks.areAll)
    forks.willChange(1)
    expect(!forks.areAll)
    forks.begin(steps: 0)
    expect(forks.areAll)
  }

  /// Otherwise each read of such a view would evaluate all rows of its source again.
  @Test("a view of rows that a commit does not change in place is read from its index")
  func viewOfOtherRows() throws {
    let sample = try CatalogSample(
      #"{"feed":"x","kind":"array"}"#, #"{"feed":"y","kind":"array"}"#,
      #"{"feed":"v","kind":"view","of":"y","filter":"count(@..*) > 0","sort":[{"by":"$.n"}]}"#)
    let commit = sample.catalog.commit
    func insert(_ elements: String, into feed: String) throws {
      let list = try require(try sample.feed(feed).kind as? ListKind)
      try withView(elements) { try list.insert(Array($0.elements), at: nil, in: commit) }
    }
    try sample.commit { try insert(#"[{"n":2},{"n":1}]"#, into: "y") }
    let rows = [[#"{"n":1}"#, #"{"n":2}"#]]
    commit.long.announce(steps: 1)
    try sample.commit {
      try insert("[1]", into: "x")
      let view = try sample.feed("v")
      expect(!commit.long.isReadable && commit.long.isReadable(view))
      commit.long.suspend()
      let steps = commit.pace.stepsOfViews
      try expectEqual(sample.rows("v"), rows)
      expectEqual(commit.pace.stepsOfViews, steps)
      commit.long.resume()
      // The commit itself does not know its changes of views yet.
      try expectEqual(sample.rows("v"), rows)
      let evaluated = commit.pace.stepsOfViews
      expect(evaluated > steps)
      // It evaluates no row again after another stop, in which others read the view.
      commit.long.suspend()
      try expectEqual(sample.rows("v"), rows)
      commit.long.resume()
      try expectEqual(sample.rows("v"), rows)
      expectEqual(commit.pace.stepsOfViews, evaluated)
    }
    commit.long.announce(steps: 0)
    try expectEqual(sample.rows("v"), rows)
  }
}
