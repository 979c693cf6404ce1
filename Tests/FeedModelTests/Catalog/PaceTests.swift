import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

/// Work that stops between two steps, and memory that is freed in parts.
@Suite struct PaceTests {
  private func stops(_ body: (Pace) throws -> Void) rethrows -> Int {
    let pace = Pace()
    var stops = 0
    pace.begin(units: 0) {
      stops += 1
      return 0
    }
    defer { pace.end() }
    try body(pace)
    return stops
  }

  @Test(arguments: [0, 1, 255, 256, 257, 511, 1000, 5000]) func sortsInSteps(_ count: Int) {
    var random = SeededRandom(seed: UInt64(count))
    var values = (0..<count).map { (key: Int.random(in: 0..<max(1, count / 3), using: &random), place: $0) }
    let expected = values.sorted { ($0.key, $0.place) < ($1.key, $1.place) }
    let stops = stops { pace in values.sort(pace) { $0.key < $1.key } }
    #expect(values.elementsEqual(expected) { $0 == $1 })
    // Each pass over runs of twice the length stops after sixteen rows.
    var (passes, width) = (0, 256)
    while width < count {
      passes += 1
      width *= 2
    }
    #expect(stops >= passes * (count / 16))
    let again = self.stops { pace in values.sort(pace) { $0.key < $1.key } }
    #expect(values.elementsEqual(expected) { $0 == $1 })
    #expect(again == (count < 256 ? 0 : (count - 1) / 16))
  }

  @Test func indexMakesRoomInSteps() {
    var index = IdentityIndex()
    let stops = stops { index.reserve(100_000, $0) }
    #expect(stops == (1 << 18) / 1024)
    #expect(index.count == 0)
  }

  @Test func namesOfManySectionsAreFreedInParts() throws {
    let count = 5000
    let sample = try CatalogSample(#"{"feed":"c","kind":"collection"}"#)
    try sample.commit { for id in 0..<count { try sample.update("c", #"{"id":\#(id),"v":"a long name of \#(id)"}"#) } }
    try sample.commit {
      try sample.define(#"{"feed":"c","kind":"collection","section":"$.v"}"#, replace: true)
    }
    #expect(sample.catalog.commit.result.sectionsAdded.count == count)
    sample.catalog.freeDiscarded(.max)
    #expect(!sample.catalog.hasDiscarded)
    try sample.commit { try sample.update("c", #"{"id":1,"v":""}"#) }
    var parts = 0
    while sample.catalog.hasDiscarded {
      sample.catalog.freeDiscarded(1000)
      parts += 1
    }
    #expect(parts == count / 1000)
  }
}
