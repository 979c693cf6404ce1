import FeedChange
import FeedClient
import FeedSystem
import TestSupport
import Testing

@testable import FeedCommands

struct TriggerQueueTests {
  private func item(_ number: Int, _ ids: String...) -> TriggerItem {
    TriggerItem(number: number, revision: 1, kind: "added", ids: Set(ids.map { utf8($0) }), input: utf8("{}"))
  }

  @Test func oneJobRunsItemsInOrder() {
    var queue = TriggerQueue(jobs: 1)
    queue.add(item(1, "a"))
    queue.add(item(2, "b"))
    expectEqual(queue.next(now: 0)?.number, 1)
    expectEqual(queue.next(now: 0), nil)
    let (count, pause) = queue.failed(1, now: 0)
    expect(count == 1 && pause == 100_000_000)
    // The second item does not overtake the first.
    expectEqual(queue.next(now: pause - 1), nil)
    expectEqual(queue.deadline, pause)
    expectEqual(queue.next(now: pause)?.number, 1)
    expectEqual(queue.failed(1, now: pause).pause, 200_000_000)
    expectEqual(queue.next(now: .max)?.number, 1)
    queue.done(1)
    expectEqual(queue.next(now: 0)?.number, 2)
    expect(queue.count == 1 && !queue.hasRoom)
    queue.done(2)
    expect(queue.hasRoom && queue.unfinished.isEmpty)
  }

  @Test func severalJobsKeepTheOrderOfAnElement() {
    var queue = TriggerQueue(jobs: 3)
    for item in [item(1, "a"), item(2, "a", "b"), item(3, "b"), item(4, "c"), item(5), item(6)] { queue.add(item) }
    expectEqual((0..<4).map { _ in queue.next(now: 0)?.number }, [1, 4, 5, nil])
    queue.done(5)
    expectEqual(queue.next(now: 0)?.number, 6)
    _ = queue.failed(1, now: 0)
    expectEqual(queue.next(now: 0), nil)
    expectEqual(queue.next(now: 100_000_000)?.number, 1)
    queue.done(1)
    expectEqual(queue.next(now: 0)?.number, 2)
    expectEqual(queue.unfinished.map(\.number), [2, 3, 4, 6])
  }

  @Test func pausesAreBounded() {
    var queue = TriggerQueue(jobs: 1)
    queue.add(item(1))
    for _ in 0..<100 {
      expectEqual(queue.next(now: .max)?.number, 1)
      expect(queue.failed(1, now: 0).pause <= 60_000_000_000)
    }
  }

  @Test func manyItemsLeaveNothingBehind() {
    var queue = TriggerQueue(jobs: 2)
    for number in 0..<5000 {
      queue.add(item(number, "\(number % 7)"))
      if number % 3 > 0, let next = queue.next(now: 0) { queue.done(next.number) }
    }
    while let next = queue.next(now: 0) { queue.done(next.number) }
    expect(queue.count == 0 && queue.unfinished.isEmpty)
  }
}

struct TriggerBatchTests {
  private func place(_ row: UInt32, _ section: UInt32 = 0) -> RowChange.Place {
    RowChange.Place(path: IndexPath(section: section, row: row), section: section == 0 ? "f/x" : "f/y")
  }

  private func row(
    _ kind: RowChange.Kind, _ id: String, from before: RowChange.Place? = nil, to after: RowChange.Place? = nil
  ) throws -> TriggerChange {
    let row = RowChange(kind: kind, before: before, after: after, id: utf8("\"\(id)\""))
    return try require(TriggerChange(row, initial: false))
  }

  private func add(_ row: TriggerChange, to batch: inout TriggerBatch, _ change: Change) {
    let revision = (batch.span?.end.revision ?? 0) + 1
    let delta = Delta(feed: "f", from: revision - 1, revision: revision, change: change, elements: [])
    batch.add([row], delta, FeedPosition(epoch: "e", revision: revision))
  }

  private func texts(_ changes: [TriggerChange]) -> [String] {
    changes.map { row in
      let places = [row.before, row.after].map { $0?.path.description ?? "none" }
      return "\(row.kind) \(String(decoding: row.id ?? [], as: UTF8.self)) \(places[0]) \(places[1])"
    }
  }

  @Test func placesBeforeAreThoseAtTheStartOfTheBatch() throws {
    var batch = TriggerBatch()
    // The rows a, b, c, d and e.
    try add(row(.deleted, "a", from: place(0)), to: &batch, Change(deleted: [place(0).path]))
    try add(row(.deleted, "b", from: place(0)), to: &batch, Change(deleted: [place(0).path]))
    try add(row(.updated, "c", to: place(0)), to: &batch, Change(updated: [place(0).path]))
    try add(row(.deleted, "c", from: place(0)), to: &batch, Change(deleted: [place(0).path]))
    try add(row(.added, "z", to: place(0)), to: &batch, Change(added: [place(0).path]))
    try add(
      row(.moved, "e", from: place(2), to: place(1)), to: &batch,
      Change(deleted: [place(2).path], added: [place(1).path], moves: [Move(deleted: 0, added: 0)]))
    try add(row(.updated, "d", to: place(2)), to: &batch, Change(updated: [place(2).path]))
    try add(
      row(.moved, "d", from: place(2), to: place(0)), to: &batch,
      Change(deleted: [place(2).path], added: [place(0).path], moves: [Move(deleted: 0, added: 0)]))
    expectEqual(
      texts(batch.changes),
      [
        "deleted \"a\" [0,0] none", "deleted \"b\" [0,1] none", "deleted \"c\" [0,2] none",
        "moved \"d\" [0,3] [0,0]", "added \"z\" none [0,1]", "moved \"e\" [0,4] [0,2]",
      ])
  }

  @Test("a row that moved past others to a place of the same number has the place before") func samePlace() throws {
    var object = ParameterWriter()
    try row(.moved, "b", from: place(1), to: place(1)).add(to: &object)
    expectEqual(object.finish(), #"{"kind":"moved","section":"f/x","at":[0,1],"was":[0,1],"id":"b"}"#)
  }

  @Test func aSectionLosesARowThatWasUpdatedAndDeleted() throws {
    var batch = TriggerBatch()
    try add(row(.updated, "a", to: place(3)), to: &batch, Change(updated: [place(3).path]))
    try add(row(.deleted, "a", from: place(3)), to: &batch, Change(deleted: [place(3).path]))
    let seen = ["x", "y"].map { word in
      batch.changes.compactMap { $0.seen(inSection: SectionWord(feed: "f", word: word)) }
    }
    expectEqual(texts(seen[0]), ["deleted \"a\" [0,3] none"])
    expectEqual(texts(seen[1]), [])
  }

  @Test func aRowThatReturnsToAnotherSectionIsAddedThere() throws {
    var batch = TriggerBatch()
    try add(row(.deleted, "a", from: place(3)), to: &batch, Change(deleted: [place(3).path]))
    try add(row(.added, "a", to: place(1, 1)), to: &batch, Change(added: [place(1, 1).path]))
    let seen = ["x", "y"].map { word in
      batch.changes.compactMap { $0.seen(inSection: SectionWord(feed: "f", word: word)) }
    }
    expectEqual(texts(batch.changes), ["updated \"a\" [0,3] [1,1]"])
    expectEqual(texts(seen[0]), ["deleted \"a\" [0,3] none"])
    expectEqual(texts(seen[1]), ["added \"a\" none [1,1]"])
  }

  @Test func theSameIdentityInAnotherFeedIsAnotherRow() throws {
    var batch = TriggerBatch()
    let (todo, done) = (IndexPath(section: 0, row: 2), IndexPath(section: 1, row: 0))
    try add(row(.deleted, "a", from: RowChange.Place(path: todo, section: "todo")), to: &batch, Change(deleted: [todo]))
    try add(row(.added, "a", to: RowChange.Place(path: done, section: "done/all")), to: &batch, Change(added: [done]))
    expectEqual(texts(batch.changes), ["deleted \"a\" [0,2] none", "added \"a\" none [1,0]"])
  }

  @Test("in a view of several feeds, a row that comes is another one than a deleted one of the same identity")
  func theSameIdentityInOneSection() throws {
    var identities = IdentityPaths.id
    identities.addMixtures(["f": "view", "g": "composed"], ["f": ["g"], "g": ["todo", "done"]])
    var batch = TriggerBatch(identities)
    let first = RowChange.Place(path: IndexPath(section: 0, row: 0), section: "f")
    try add(row(.deleted, "a", from: first), to: &batch, Change(deleted: [first.path]))
    try add(row(.added, "a", to: first), to: &batch, Change(added: [first.path]))
    expectEqual(texts(batch.changes), ["deleted \"a\" [0,0] none", "added \"a\" none [0,0]"])
  }
}

struct TriggerStateTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("state") }
  private let first = FeedPosition(epoch: "e", revision: 3)

  init() throws { directory = try TemporaryDirectory() }

  private func open(filter: String? = nil) throws -> TriggerState {
    try TriggerState(path, feed: "f", filter: filter) { _ in }
  }

  private func item(_ number: Int) -> TriggerItem {
    TriggerItem(number: number, revision: 4, kind: "added", ids: [utf8("\(number)")], input: utf8("{\"n\":\(number)}"))
  }

  private func rows(_ ids: Int...) -> SavedRows {
    var list = ChunkedList<Row>()
    list.append(contentsOf: ids.map { Row(element: print($0)) })
    return SavedRows(
      sections: [SectionSummary(name: "f/all", count: ids.count)], prints: [.init(name: "f/all", rows: list)])
  }

  private func print(_ id: Int) -> [UInt8] { RowPrint(digest: UInt64(id), id: utf8("\(id)")).text }

  private func prints(_ state: TriggerState) -> [[UInt8]]? { state.rows?.prints?.flatMap { $0.rows.map(\.element) } }

  @Test func unfinishedItemsAndRowsAreReadBack() throws {
    do {
      let state = try open()
      expect(state.position == nil && state.items.isEmpty && state.takeNumber() == 0)
      try state.replace(first, rows: rows(1, 2), items: [item(0)])
      let delta = Delta(
        feed: "f", from: 3, revision: 4,
        change: Change(deleted: [IndexPath(section: 0, row: 0)], added: [IndexPath(section: 0, row: 1)]),
        elements: [print(3)])
      try state.append([item(1), item(2)], [delta.text], FeedPosition(epoch: "e", revision: 4))
      try state.done(1)
    }
    let state = try open()
    expectEqual(state.position, FeedPosition(epoch: "e", revision: 4))
    expectEqual(state.items, [item(0), item(2)])
    expectEqual(state.takeNumber(), 3)
    expectEqual(prints(state), [print(2), print(3)])
    expectEqual(state.rows?.sections, [SectionSummary(name: "f/all", count: 2)])
  }

  @Test func aHeadInTheMiddleReplacesTheRowsAndKeepsTheItems() throws {
    do {
      let state = try open()
      try state.replace(first, rows: rows(1), items: [item(0)])
      try state.restart(FeedPosition(epoch: "x", revision: 1), rows: rows(7, 8), items: [item(1)])
    }
    let state = try open()
    expectEqual(state.position, FeedPosition(epoch: "x", revision: 1))
    expectEqual(state.items, [item(0), item(1)])
    expectEqual(prints(state), [print(7), print(8)])
  }

  /// Whatever the end cut off, the state is that after one of the lines.
  @Test func everyPrefixOfTheFileIsAState() throws {
    do {
      let state = try open()
      try state.replace(first, rows: rows(1), items: [])
      try state.append([item(0)], [], FeedPosition(epoch: "e", revision: 4))
      try state.done(0)
    }
    let bytes = try SmallFile.read(path)
    var found: [String] = []
    for count in bytes.indices {
      try SmallFile.replace(path, with: Array(bytes[..<count]))
      let state = try open()
      let text = "\(state.position?.revision ?? 0) \(state.items.count)"
      if found.last != text { found.append(text) }
      // What follows is appended to whole lines.
      try state.replace(first, rows: nil, items: [])
    }
    expectEqual(found, ["0 0", "3 0", "4 1"])
  }

  @Test func rowsOfAnotherFilterAreNotCompared() throws {
    do { try open(filter: "@.a").replace(first, rows: rows(1), items: []) }
    try expectEqual(prints(open(filter: "@.a")), [print(1)])
    let state = try open(filter: "@.b")
    expect(state.position == first && state.rows?.prints == nil)
  }
}

struct RowPrintTests {
  @Test(arguments: ["1", "\"a\"", "\",false]\"", "-1e400", "\"\\ud800\""], [true, false])
  func textsAreReadBack(id: String, isAccepted: Bool) {
    let print = RowPrint(digest: 0xF, id: utf8(id), isAccepted: isAccepted)
    expectEqual(RowPrint(print.text), print)
    let none = RowPrint(digest: .max, id: nil, isAccepted: isAccepted)
    expectEqual(RowPrint(none.text), none)
  }

  @Test func digestsDifferByElementAndType() throws {
    let printer = RowPrinter()
    let prints = try ["{\"id\":1}", "{\"id\":2}", "{\"id\":1,\"a\":0}"].map { text in
      try withJSON(text) { printer.print($0, type: nil) }
    }
    let typed = try ["a", "b", ""].map { type in try withJSON("{\"id\":1}") { printer.print($0, type: type) } }
    expectEqual(Set((prints + typed).map(\.digest)).count, 6)
    expectEqual(prints.map(\.id), [utf8("1"), utf8("2"), utf8("1")])
    // White space is not a difference.
    try expectEqual(withJSON("{ \"id\" : 1 }") { printer.print($0, type: nil) }, prints[0])
  }
}
