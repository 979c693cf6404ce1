import FeedChange
import FeedWire
import TestSupport
import Testing

@testable import FeedClient

struct MirrorTests {
  private static let sections = [SectionSummary(name: "a", count: 2), SectionSummary(name: "b", count: 1)]
  private static let start = WatchStart(feed: "f", epoch: "e", revision: 7, resumed: false, sections: sections)

  private func part(_ section: UInt32, _ row: UInt32, _ elements: [String], last: Bool = false) -> SnapshotPart {
    SnapshotPart(
      feed: "f", revision: 7, at: IndexPath(section: section, row: row), elements: elements.map(utf8), isLast: last)
  }

  private func mirror() throws -> Mirror {
    var mirror = Mirror(Self.start)
    try mirror.apply(part(0, 0, ["1", "2", "3"], last: true))
    return mirror
  }

  private func contents(_ mirror: Mirror) -> NaiveFeed {
    NaiveFeed(sections: mirror.sections.map { .init(name: $0.name, rows: $0.rows.map { text($0.element) }) })
  }

  @Test func snapshotBecomesVisibleWithItsLastPart() throws {
    var mirror = Mirror(Self.start)
    try expect(!mirror.apply(part(0, 0, ["1"])))
    expectEqual(mirror.count, 0)
    expectEqual(mirror.progress.position, nil)
    try expect(!mirror.apply(part(0, 1, [])))
    // This part continues from the first section into the second.
    try expect(mirror.apply(part(0, 1, ["2", "3"], last: true)))
    expectEqual(contents(mirror).json, "[[1,2],[3]]")
    expectEqual(mirror.sections.map(\.name), ["a", "b"])
    expectEqual(mirror.counts, [2, 1])
    expectEqual(mirror.progress.position, FeedPosition(epoch: "e", revision: 7))
  }

  /// The daemon sends a resumed watch no `selection` if nothing is selected by then.
  @Test(arguments: [false, true]) func restartForgetsTheSelection(_ resumes: Bool) throws {
    var mirror = try mirror()
    try mirror.apply(Selection(feed: "f", revision: 7, selected: [IndexPath(section: 0, row: 1)]))
    expectEqual(mirror.selected, [IndexPath(section: 0, row: 1)])
    mirror.restart(WatchStart(feed: "f", epoch: "e", revision: 7, resumed: resumes, sections: Self.sections))
    expectEqual(mirror.selected, [])
    expectEqual(contents(mirror).json, "[[1,2],[3]]")
  }

  @Test func emptyFeedHasOneEmptyPart() throws {
    var mirror = Mirror(WatchStart(feed: "f", epoch: "e", revision: 7, resumed: false, sections: []))
    try expect(mirror.apply(part(0, 0, [], last: true)))
    expectEqual(mirror.digest, "0d4cbb29")
    expect(mirror.progress.isLive)
  }

  @Test func invalidPartsAreRefused() throws {
    var mirror = Mirror(Self.start)
    try mirror.apply(part(0, 0, ["1"]))
    for bad in [
      part(0, 0, ["1"]), part(1, 0, ["3"]), part(2, 0, []), part(0, 1, ["2", "3", "4"]),
      part(0, 1, ["2"], last: true),
    ] {
      #expect(throws: FeedFault.misplacedSnapshot(at: bad.at)) { try mirror.apply(bad) }
    }
    var other = part(0, 1, ["2"])
    other.revision = 8
    #expect(throws: FeedFault.mixedSnapshot(expected: 7, found: 8)) { try mirror.apply(other) }
    other.feed = "g"
    #expect(throws: FeedFault.foreign("g")) { try mirror.apply(other) }
    // None of them changed the mirror.
    try expect(mirror.apply(part(0, 1, ["2", "3"], last: true)))
    expectEqual(contents(mirror).json, "[[1,2],[3]]")
    #expect(throws: FeedFault.unexpectedSnapshot(revision: 7)) { try mirror.apply(part(0, 0, [], last: true)) }
  }

  @Test func deltaFromAnotherRevisionIsAGap() throws {
    var mirror = try mirror()
    for from in [UInt64(6), 8] {
      #expect(throws: FeedFault.gap(expected: 7, found: from)) {
        try mirror.apply(Delta(feed: "f", from: from, revision: 9, change: Change(), elements: []))
      }
    }
    #expect(throws: FeedFault.backwards(from: 7, revision: 7)) {
      try mirror.apply(Delta(feed: "f", from: 7, revision: 7, change: Change(), elements: []))
    }
    var early = Mirror(Self.start)
    #expect(throws: FeedFault.deltaInsideSnapshot(revision: 9)) {
      try early.apply(Delta(feed: "f", from: 7, revision: 9, change: Change(), elements: []))
    }
  }

  @Test func invalidDeltaDoesNotChangeTheMirror() throws {
    var mirror = try mirror()
    let gone = Change(deleted: [IndexPath(section: 0, row: 0), IndexPath(section: 1, row: 1)])
    #expect(throws: FeedFault.self) {
      try mirror.apply(Delta(feed: "f", from: 7, revision: 8, change: gone, elements: []))
    }
    let one = Change(added: [IndexPath(section: 0, row: 0)])
    #expect(throws: FeedFault.misfit(.elementCount(expected: 1, found: 0), revision: 8)) {
      try mirror.apply(Delta(feed: "f", from: 7, revision: 8, change: one, elements: []))
    }
    expectEqual(contents(mirror).json, "[[1,2],[3]]")
    expectEqual(mirror.progress.revision, 7)
    try mirror.apply(Delta(feed: "f", from: 7, revision: 8, change: one, elements: [utf8("0")]))
    expectEqual(contents(mirror).json, "[[0,1,2],[3]]")
  }

  @Test func bookmarkExtendsTheRevisionsThatADeltaMayStartFrom() throws {
    var mirror = try mirror()
    try mirror.apply(Bookmark(feed: "f", epoch: "e", revision: 7, current: 20))
    expectEqual(mirror.progress.position, FeedPosition(epoch: "e", revision: 20))
    expect(mirror.progress.holds(at: 13))
    #expect(throws: FeedFault.foreign("epoch x")) {
      try mirror.apply(Bookmark(feed: "f", epoch: "x", revision: 7, current: 21))
    }
    #expect(throws: FeedFault.gap(expected: 20, found: 22)) {
      try mirror.apply(Bookmark(feed: "f", epoch: "e", revision: 22, current: 22))
    }
    try mirror.apply(Delta(feed: "f", from: 20, revision: 21, change: Change(), elements: []))
    expectEqual(mirror.progress.revision, 21)
  }

  @Test func resetShowsTheOldRowsUntilItsLastPart() throws {
    var mirror = try mirror()
    var first = SnapshotPart(
      feed: "f", revision: 30, at: IndexPath(section: 0, row: 0), elements: [utf8("9")], isLast: false)
    first.resetSections = [SectionSummary(name: "c", count: 2)]
    try expect(!mirror.apply(first))
    expectEqual(contents(mirror).json, "[[1,2],[3]]")
    expectEqual(mirror.progress.position, FeedPosition(epoch: "e", revision: 7))
    #expect(throws: FeedFault.deltaInsideSnapshot(revision: 31)) {
      try mirror.apply(Delta(feed: "f", from: 30, revision: 31, change: Change(), elements: []))
    }
    var second = part(0, 1, ["8"], last: true)
    second.revision = 30
    try expect(mirror.apply(second))
    expectEqual(contents(mirror).json, "[[9,8]]")
    expectEqual(mirror.sections.map(\.name), ["c"])
    expectEqual(mirror.progress.position, FeedPosition(epoch: "e", revision: 30))
  }

  @Test func updatesDescribeTheOriginOfRows() throws {
    var mirror = try mirror()
    let change = Change(
      deleted: [IndexPath(section: 0, row: 1)],
      added: [IndexPath(section: 0, row: 0), IndexPath(section: 1, row: 0)],
      updated: [IndexPath(section: 1, row: 1)], moves: [Move(deleted: 0, added: 1)])
    let elements = ["5", "2", "33"].map(utf8)
    try mirror.apply(
      Delta(feed: "f", from: 7, revision: 8, change: change, elements: elements, types: ["T", nil, "U"]))
    expectEqual(contents(mirror).json, "[[5,1],[2,33]]")
    expectEqual(mirror.sections.map { $0.rows.map(\.origin) }, [[.added, .snapshot], [.moved, .updated]])
    expectEqual(mirror.sections.map { $0.rows.map(\.type) }, [["T", nil], [nil, "U"]])
    expectEqual(mirror[IndexPath(section: 1, row: 1)]?.revision, 8)
    expectEqual(mirror[IndexPath(section: 1, row: 2)], nil)
    expectEqual(mirror[IndexPath(section: 2, row: 0)], nil)
  }

  @Test func randomHistoriesMatchTheReference() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var changes = RandomChanges(random: SeededRandom(seed: seed))
    for round in 0..<40 {
      (changes.rows, changes.sections) = ([1, 2, 4, 12][round % 4], 2 + round % 2)
      var naive = NaiveFeed(sections: [.init(name: "a", rows: (0..<20).map { "\($0)" }), .init(name: "b")])
      var mirror = Mirror(WatchStart(feed: "f", epoch: "e", revision: 1, resumed: false, sections: naive.summaries))
      try mirror.apply(
        SnapshotPart(
          feed: "f", revision: 1, at: IndexPath(section: 0, row: 0), elements: naive.sections[0].rows.map(utf8),
          isLast: true))
      for revision in UInt64(2)..<60 {
        var change = changes.next(for: naive.sections.map(\.rows.count))
        // A delta does not tell them.
        change.transfers = []
        let elements = (0..<change.added.count + change.updated.count).map { "{\"v\":\(revision),\"n\":\($0)}" }
        naive.apply(change, elements)
        try mirror.apply(
          Delta(feed: "f", from: revision - 1, revision: revision, change: change, elements: elements.map(utf8)))
        expectEqual(contents(mirror), naive, "seed \(seed), revision \(revision), \(change)")
        var crc = CRC32()
        Array(naive.json.utf8).withUnsafeBytes { crc.update($0) }
        expectEqual(mirror.digest, crc.hex8, "seed \(seed), revision \(revision)")
      }
    }
  }
}
