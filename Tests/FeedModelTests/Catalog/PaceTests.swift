import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

/// Work that stops between two steps, and memory that is freed in parts.
struct PaceTests {
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
    expect(values.elementsEqual(expected) { $0 == $1 })
    // Each pass over runs of twice the length stops after sixteen rows.
    var (passes, width) = (0, 256)
    while width < count {
      passes += 1
      width *= 2
    }
    expect(stops >= passes * (count / 16))
    let again = self.stops { pace in values.sort(pace) { $0.key < $1.key } }
    expect(values.elementsEqual(expected) { $0 == $1 })
    expectEqual(again, (count < 256 ? 0 : (count - 1) / 16))
  }

  @Test func indexMakesRoomInSteps() {
    var index = IdentityIndex()
    let stops = stops { index.reserve(100_000, $0) }
    // All slots are cleared in steps, then the words of the small table are moved.
    let slots = index.byteCount / MemoryLayout<UInt64>.stride
    expect(slots * 4 >= 100_000 * 5 && slots < 150_000)
    expectEqual(stops, (slots + 1023) / 1024 + 1)
    expectEqual(index.count, 0)
  }

  @Test func indexGrowsInStepsAndIsReadMeanwhile() {
    let table = ElementTable()
    // Read by its address while it grows, as others do on another stack.
    let index = UnsafeMutablePointer<IdentityIndex>.allocate(capacity: 1)
    index.initialize(to: IdentityIndex())
    defer {
      index.deinitialize(count: 1)
      index.deallocate()
    }
    let names = (0..<3277).map { "n\($0)" }
    func hash(_ name: String) -> UInt32 {
      Array(name.utf8).withUnsafeBytes { Identity.hash($0, seed: 1) }
    }
    func find(_ name: String) -> UInt32? {
      Array(name.utf8).withUnsafeBytes { index.pointee.find($0, hash: hash(name), in: table) }
    }
    for name in names {
      let text = ElementTableTests.text("1", identity: name)
      let handle = table.add(text, at: Instant(nanoseconds: 0))
      index.pointee.insert(handle, hash: hash(name))
    }
    // 3,277 are four fifths of 4,096: the next one does not fit.
    let pace = Pace()
    var stops = 0
    pace.begin(units: 0) {
      stops += 1
      expect(find("n17") == 17 && find("none") == nil)
      return 0
    }
    index.pointee.makeRoom(pace)
    expectEqual(stops, 5120 / 1024 + 4096 / 1024)
    index.pointee.makeRoom(pace)
    pace.end()
    expectEqual(stops, 9)
    for (number, name) in names.enumerated() { expectEqual(find(name), UInt32(number)) }
  }

  @Test func historyRecordsManyRowsInSteps() throws {
    let rows = (0..<10_000).map { IndexPath(section: 0, row: 2 * UInt32($0)) }
    var change = Change(deleted: rows, added: rows)
    for row in UInt32(0)..<10_000 {
      change.moves.append(Move(deleted: row, added: 9999 - row, keepsElement: row % 2 == 0))
    }
    let (history, inSteps) = (History(base: 0), History(base: 0))
    history.append(&change, to: 1, at: Instant(nanoseconds: 1))
    let stops = stops { inSteps.append(&change, to: 1, at: Instant(nanoseconds: 1), $0) }
    expectEqual(stops, 3 * (10_000 / 2048))
    expect(inSteps.change(at: 0)?.change == change && history.change(at: 0)?.change == change)
    expectEqual(inSteps.bytes, history.bytes)
  }

  @Test func preparedHistoryDoesNotGrowWhenAChangeIsAppended() {
    var known = Change(updated: (0..<60_000).map { IndexPath(section: 1, row: 2 * $0) })
    var change = Change(updated: (0..<10_000).map { IndexPath(section: 2, row: 2 * $0) })
    let history = History(base: 0)
    history.append(&known, to: 1, at: Instant(nanoseconds: 1))
    let growing = stops { history.prepare(for: change.size, $0) }
    expect(growing > 120_000 / 4096, "the words move in steps")
    expectEqual(stops { history.append(&change, shift: 3, to: 2, at: Instant(nanoseconds: 2), $0) }, 10_000 / 2048)
    expectEqual(history.change(at: 0)?.change, known)
    expectEqual(history.change(at: 1)?.change, Change(updated: (0..<10_000).map { IndexPath(section: 5, row: 2 * $0) }))
  }

  /// Histories are trimmed once a second, also while a long request prepares one. That must not free the memory that is being prepared.
  @Test func historyIsNotTrimmedWhileItIsPrepared() {
    var known = Change(updated: (0..<1000).map { IndexPath(section: 1, row: 2 * $0) })
    var change = Change(updated: (0..<60_000).map { IndexPath(section: 2, row: 2 * $0) })
    let history = History(base: 0)
    for revision in UInt64(1)...2 { history.append(&known, to: revision, at: Instant(nanoseconds: revision)) }
    func trim() -> Int {
      history.trim(bytes: .max, before: Instant(nanoseconds: 2))
      return history.compact(moving: .max)
    }
    let pace = Pace()
    var moved: [Int] = []
    pace.begin(units: 0) {
      moved.append(trim())
      return 0
    }
    history.prepare(for: change.size, pace)
    pace.end()
    expect(moved.count > 100 && moved.allSatisfy { $0 == 0 })
    let memory = history.memory
    history.append(&change, to: 3, at: Instant(nanoseconds: 3))
    expectEqual(history.memory, memory)
    expectEqual((0..<3).map { history.change(at: $0)?.change }, [known, known, change])
    // What was to be discarded is discarded the next time.
    _ = trim()
    expectEqual(history.base, 1)
    expectEqual((1..<3).map { history.change(at: $0)?.change }, [known, change])
  }

  @Test(arguments: [0, 1, 1023, 1024, 5000]) func appendsInSteps(_ count: Int) {
    var values = [7]
    let stops = stops { values.append(contentsOf: 0..<count, $0) }
    expectEqual(values, [7] + Array(0..<count))
    expectEqual(stops, (count + 1) / 1024)
  }

  /// Otherwise a client that changes many elements in each request makes copies faster than turns free them.
  @Test func copiesThatEarlierCommitsLeftAreFreedBeforeTheNextCopy() throws {
    let count = 5000
    let sample = try CatalogSample(#"{"feed":"c","kind":"collection"}"#)
    try sample.commit { for id in 0..<count { try sample.update("c", #"{"id":\#(id)}"#) } }
    for round in 1...4 {
      sample.catalog.commit.long.announce(steps: .max)
      try sample.commit { try sample.update("c", #"{"id":0,"v":\#(round)}"#) }
      sample.catalog.commit.long.announce(steps: 0)
      expect(sample.catalog.hasDiscarded)
    }
    var parts = 0
    while sample.catalog.hasDiscarded {
      sample.catalog.freeDiscarded(1000)
      parts += 1
    }
    expectEqual(parts, count / 1000)
  }

  @Test func namesOfManySectionsAreFreedInParts() throws {
    let count = 5000
    let sample = try CatalogSample(#"{"feed":"c","kind":"collection"}"#)
    try sample.commit { for id in 0..<count { try sample.update("c", #"{"id":\#(id),"v":"a long name of \#(id)"}"#) } }
    try sample.commit {
      try sample.define(#"{"feed":"c","kind":"collection","section":"$.v"}"#, replace: true)
    }
    expectEqual(sample.catalog.commit.result.sectionsAdded.count, count)
    sample.catalog.freeDiscarded(.max)
    expect(!sample.catalog.hasDiscarded)
    try sample.commit { try sample.update("c", #"{"id":1,"v":""}"#) }
    var parts = 0
    while sample.catalog.hasDiscarded {
      sample.catalog.freeDiscarded(1000)
      parts += 1
    }
    expectEqual(parts, count / 1000)
  }
}
