import FeedJSON
import TestSupport
import Testing

@testable import FeedClient

@Suite("Counts of a watch without elements")
struct FeedCountsTests {
  private static let start = WatchStart(
    feed: "f", epoch: "e", revision: 7, resumed: false,
    sections: [SectionSummary(name: "a", count: 2), SectionSummary(name: "b", count: 1)])

  private func apply(_ params: String, to counts: inout FeedCounts) throws {
    var scanner = JSONScanner()
    var failure: (any Error)?
    try Array(params.utf8).withUnsafeBytes { bytes in
      let view = try scanner.scan(bytes)
      do { try counts.apply(view) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  @Test("deltas replace the counts and move sections")
  func deltas() throws {
    var counts = FeedCounts(Self.start)
    try apply(#"{"feed":"f","from":7,"revision":8,"counts":[3,1]}"#, to: &counts)
    expectEqual(counts.sections.map(\.count), [3, 1])
    expectEqual(counts.total, 4)
    try apply(
      #"{"feed":"f","from":8,"revision":9,"counts":[5,1],"sections":{"deleted":[0],"added":[{"at":0,"name":"c"}]}}"#,
      to: &counts)
    expectEqual(counts.sections, [SectionSummary(name: "c", count: 5), SectionSummary(name: "b", count: 1)])
    expectEqual(counts.revision, 9)
  }

  @Test("a delta up to the revision of the answer is ignored, a reset is not")
  func revisions() throws {
    var counts = FeedCounts(Self.start)
    try apply(#"{"feed":"f","from":3,"revision":7,"counts":[1],"sections":{"deleted":[0],"added":[]}}"#, to: &counts)
    expectEqual(counts, FeedCounts(Self.start))
    try apply(
      #"{"feed":"f","revision":9,"reset":true,"sections":[{"name":"z","count":4}],"at":[0,0],"elements":[],"last":true}"#,
      to: &counts)
    expectEqual(counts.sections, [SectionSummary(name: "z", count: 4)])
  }

  @Test(
    "a delta that does not fit is malformed and changes nothing",
    arguments: [
      #"{"revision":8}"#, #"{"revision":8,"counts":[1]}"#, #"{"revision":8,"counts":[1,"2"]}"#,
      #"{"revision":8,"counts":[1,-1]}"#, #"{"revision":8,"counts":[4294967296,1]}"#,
      #"{"revision":8,"counts":[1],"sections":{"deleted":[2],"added":[]}}"#,
      #"{"revision":8,"counts":[1],"sections":{"deleted":[1,0],"added":[]}}"#,
      #"{"revision":8,"counts":[1,2,3],"sections":{"deleted":[],"added":[{"at":3,"name":"c"}]}}"#,
    ])
  func malformed(params: String) {
    var counts = FeedCounts(Self.start)
    #expect(throws: MalformedMessage.self) { try apply(params, to: &counts) }
    expectEqual(counts, FeedCounts(Self.start))
  }

  @Test("more rows than have numbers are malformed", arguments: ["-1", "4294967296", "9223372036854775807"])
  func sections(count: String) throws {
    let head = #"{"feed":"f","epoch":"e","revision":7,"resumed":false,"sections":[{"name":"a","count":\#(count)}]}"#
    var scanner = JSONScanner()
    try Array(head.utf8).withUnsafeBytes { bytes in
      let view = try scanner.scan(bytes)
      #expect(throws: MalformedMessage("watch: \"sections\" is not a list of names and counts")) {
        try WatchStart(view)
      }
    }
  }
}
