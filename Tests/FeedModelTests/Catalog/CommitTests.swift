import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

struct CommitTests {
  private static let two = #"{"feed":"c","kind":"collection","bins":[{"name":"a","filter":"@.v == 1"},{"name":"b"}]}"#

  @Test func failedOperationDoesNotUndoTheOthersOfItsCommit() throws {
    let sample = try CatalogSample(Self.two)
    try sample.commit {
      try sample.update("c", #"{"id":1,"v":1}"#)
      #expect(throws: FeedError.self) {
        try withView(#"[{"id":2},{}]"#) {
          try sample.catalog.collection(named: "c").update(elements: $0, in: sample.catalog.commit)
        }
      }
    }
    try expectEqual(sample.rows("c"), [[#"{"id":1,"v":1}"#], [#"{"id":1,"v":1}"#]])
    expectEqual(sample.changes["c"], Change(added: [IndexPath(0, 0), IndexPath(1, 0)]))
  }

  @Test func singleReplacedElementIsPublishedWithTheChange() throws {
    let sample = try CatalogSample(
      #"{"feed":"c","kind":"collection","bins":[{"name":"b"}]}"#, #"{"feed":"h","kind":"composed","children":["c"]}"#)
    try sample.commit { try sample.update("c", #"{"id":1,"v":1}"#) }
    try sample.commit { try sample.update("c", #"{"id":1,"v":2}"#) }
    expectEqual(sample.published.map(\.feed), ["c", "h"])
    for entry in sample.published {
      expectEqual(entry.change, Change(updated: [IndexPath(0, 0)]))
      let text = entry.publication.updatedElement.map { String(decoding: $0.text, as: UTF8.self) }
      expectEqual(text, #"{"id":1,"v":2}"#)
    }
  }
}

struct UndoLogTests {
  /// A request that changes a million rows has millions of entries.
  @Test func entriesAreReleasedInParts() throws {
    let elements = ElementTable()
    let store = RowStore(feed: "c", elements: elements, sections: [], type: nil, limits: Limits())
    let log = UndoLog()
    let count = 3 * BlockList<UndoLog.Entry>.blockSize
    for handle in 0..<count {
      log.append(.init(step: .insertedRow, handle: UInt32(handle), state: .passUnretained(store)))
    }
    expectEqual(log.entries(of: .passUnretained(store), since: .start).count, count)
    var stops = 0
    log.pace.begin(units: 0) {
      stops += 1
      return 0
    }
    expectEqual(log.entries(of: .passUnretained(store), since: .start).last?.handle, UInt32(count - 1))
    expectEqual(stops, count / 64)
    log.finish()
    expectEqual(stops, count / 64 + count / 8 + 2)
    log.pace.end()
    expect(log.isEmpty)
    log.checkInvariants()
  }

  @Test func structuralStepsAreUndoneInReverseUpToAMark() {
    let log = UndoLog()
    var undone: [Int] = []
    log.append(before: log.position, undo: { undone.append(1) })
    let mark = log.position
    log.append(before: log.position, undo: { undone.append(2) })
    log.append(before: log.position, undo: { undone.append(3) })
    log.undo(to: mark)
    expectEqual(undone, [3, 2])
    log.undo(to: mark)
    log.finish()
    expect(log.isEmpty && undone == [3, 2])
    log.checkInvariants()
  }

  @Test func rowStepsRestoreElementsAndTheirOrderOfChange() throws {
    let sample = try CatalogSample(
      #"{"feed":"c","kind":"collection","bins":[{"name":"a","sort":[{"by":"$.v"}]}],"retain":{"count":5}}"#)
    try sample.commit { for id in 1...3 { try sample.update("c", "{\"id\":\(id),\"v\":\(id)}") } }
    let collection = try sample.catalog.collection(named: "c")
    func order() -> [String] {
      var texts: [String] = []
      collection.state.elements.forEach {
        texts.append(String(decoding: collection.state.elements.text(of: $0).text, as: UTF8.self))
      }
      return texts
    }
    let (rows, changed) = (try sample.rows("c"), order())
    try sample.rollBack {
      try sample.update("c", #"{"id":1,"v":9}"#)
      try sample.delete("c", "2")
      try sample.update("c", #"{"id":2,"v":0}"#)
    }
    try expectEqual(sample.rows("c"), rows)
    expectEqual(order(), changed)
  }
}

struct ChangeTableTests {
  @Test func feedHasOneSlotUntilItIsClosed() {
    var table = ChangeTable()
    let slots = (0..<20).map { table.open($0 * 3) }
    expectEqual(slots, Array(0..<20))
    let (again, found, none) = (table.open(6), table.find(6), table.find(7))
    expect(again == 2 && found == 2 && none == nil)
    table[2].pointee.change.deleted = [IndexPath(0, 0)]
    table[2].pointee.hint = 3
    table.close()
    table.checkInvariants()
    let (count, gone) = (table.count, table.find(6))
    expect(count == 0 && gone == nil)
  }

  @Test func sourcesAreListedByPositionWithTheirChanges() {
    var table = ChangeTable()
    let (first, second, target) = (table.open(1), table.open(2), table.open(3))
    table[first].pointee.change.updated = [IndexPath(0, 1)]
    table[second].pointee.change.updated = [IndexPath(0, 2)]
    table.note(.init(place: 7, slot: first, shift: 0), for: target)
    table.note(.init(place: 4, slot: second, shift: 2), for: target)
    var seen: [[Int]] = []
    table.sortSources(of: target)
    table.derive(target, redefiningSince: nil, nil) { sources, change in
      let onlyUpdates = sources.onlyUpdates
      expect(onlyUpdates)
      sources.forEach { place, shift, change in seen.append([place, Int(shift), Int(change.updated[0].row)]) }
      change.updated = [IndexPath(0, 3)]
    }
    expectEqual(seen, [[4, 2, 2], [7, 0, 1]])
    let derived = table[target].pointee.change.updated
    expectEqual(derived, [IndexPath(0, 3)])
    table.close()
    table.checkInvariants()
  }
}

struct OperationTests {
  @Test func stepsOfAnOperationAreComposed() {
    var operation = Operation()
    operation.begin()
    var step = Change(added: [IndexPath(0, 0)])
    operation.add(&step, Pace())
    let single = operation.composedSteps(Pace())
    expect(single == nil && operation.result == Change(added: [IndexPath(0, 0)]))
    step = Change(added: [IndexPath(0, 0)])
    operation.add(&step, Pace())
    let composed = operation.composedSteps(Pace())
    expectEqual(composed, Change(added: [IndexPath(0, 0), IndexPath(0, 1)]))
  }

  @Test func abandonedOperationHasNoChange() {
    var operation = Operation()
    operation.begin()
    for _ in 0..<3 {
      var step = Change(added: [IndexPath(0, 0)])
      operation.add(&step, Pace())
    }
    operation.abandon()
    expect(operation.isEmpty && operation.stepCount == 0)
    operation.begin()
  }
}
