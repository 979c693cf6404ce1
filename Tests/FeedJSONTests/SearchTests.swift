import FeedJSON
import TestSupport
import Testing

@Suite("Suggestions for misspelled names")
struct SpellingTests {
  @Test(
    "the distance counts insertions, deletions, replacements and swaps of neighbours",
    arguments: [
      ("kitten", "sitting", 3), ("ab", "ba", 1), ("", "abc", 3), ("abc", "", 3), ("same", "same", 0),
      ("abcd", "acbd", 1),
      ("ca", "abc", 3),
    ])
  func distance(first: String, second: String, count: Int) {
    expectEqual(Spelling.distance(first, second), count)
    expectEqual(Spelling.distance(second, first), count)
  }

  @Test("only the first 64 bytes are compared")
  func longWords() {
    let long = String(repeating: "a", count: 64)
    expectEqual(Spelling.distance(long + "b", long + "ccc"), 0)
  }

  @Test("the nearest name ignores case; a name without a similar one has no suggestion")
  func nearest() {
    let known = ["maxFrame", "maxConnections", "allow"]
    expectEqual(Spelling.nearest(to: "maxframe", in: known), "maxFrame")
    expectEqual(Spelling.nearest(to: "alow", in: known), "allow")
    expectEqual(Spelling.nearest(to: "alolw", in: known), "allow")
    expectEqual(Spelling.nearest(to: "colour", in: known), nil)
    expectEqual(Spelling.nearest(to: "x", in: []), nil)
  }
}

@Suite("Binary search")
struct PartitionPointTests {
  @Test("the result is the number of smaller values, for every range and value")
  func everyPosition() {
    for count in 0..<20 {
      let values = (0..<count).map { $0 * 2 }
      for value in -1...(count * 2) {
        var calls = 0
        let place = values.indices.partitionPoint {
          calls += 1
          return values[$0] < value
        }
        expectEqual(place, values.count { $0 < value })
        expect(1 << calls <= 2 * (count + 1))
      }
    }
    expectEqual((3..<9).partitionPoint { $0 < 5 }, 5)
    expectEqual((3..<9).partitionPoint { _ in true }, 9)
    expectEqual((3..<9).partitionPoint { _ in false }, 3)
  }
}
