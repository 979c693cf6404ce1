import FeedChange
import FeedJSON
import FeedQuery

/// A feed with one stored section: an array, or a single.
public final class ListKind: FeedKind {
  /// Whether it has any number of elements or at most one.
  public enum Shape: String, Sendable {
    case array
    case single
  }

  private let number: FeedNumber
  /// Whether the feed is an array or a single.
  public let shape: Shape
  private let state: ListState

  init(number: FeedNumber, name: String, shape: Shape, type: SingularPath?, limits: Limits) {
    self.number = number
    self.shape = shape
    state = ListState(feed: name, type: type, limits: limits)
  }

  public var wireName: String { shape.rawValue }
  public var definedAs: FeedDefinition.Content? { .list(ListDefinition(shape: shape, type: state.type)) }
  public var sectionCount: Int { 1 }
  public func section(at index: Int) -> any FeedSection { state.sections[0] }
  public var rowCount: Int { state.sections[0].count }
  public func locate(_ index: Int) -> (section: any FeedSection, row: Int) { (state.sections[0], index) }
  public func path(ofFlat index: Int) -> IndexPath { IndexPath(section: 0, row: UInt32(index)) }
  public func makeSnapshots() -> [any SectionSnapshot] { [state.sections[0].makeSnapshot()] }
  public func element(at path: IndexPath) -> ElementText { state.sections[0].element(at: Int(path.row)) }
  public func type(at path: IndexPath) -> UnsafeRawBufferPointer { element(at: path).type }
  public var hasTypes: Bool { state.type != nil }
  public var rows: RowStore? { state }
  public var bins: [Feed] { [] }

  /// Redefines the feed. Rows whose type differs under the new definition are updated.
  public func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError) {
    guard case .list(let list) = definition.content, list.shape == shape else {
      throw conflict(of: feed, with: definition)
    }
    if state.type?.text == list.type?.text { return }
    let (state, commit) = (state, catalog.commit)
    let (former, mark) = (state.type, commit.log.mark)
    state.type = list.type
    commit.logStructure { state.type = former }
    var change = Change()
    do throws(FeedError) {
      for row in 0..<state.rows.count where try state.retype(at: row, commit.log) {
        change.updated.append(IndexPath(section: 0, row: UInt32(row)))
      }
    } catch {
      throw commit.abandon(error, to: mark)
    }
    commit.finishOperation(on: number, result: change)
  }

  // MARK: Operations

  /// Inserts elements (method `insert`). Each row is in the coordinates after the insertion of the previous elements.
  /// Without `rows`, elements are appended.
  public func insert(_ elements: [JSONView], at rows: [Int]?, in commit: Commit) throws(FeedError) {
    try commit.operate(on: number, state) { () throws(FeedError) in
      for (place, element) in elements.enumerated() {
        let row = rows?[place] ?? state.rows.count
        try check(row, upTo: state.rows.count)
        try state.insert(element, at: row, index: place, now: commit.tick(), commit.log)
        commit.addStep(&state.step)
      }
    }
  }

  /// Removes rows, all in the coordinates before the call (method `remove`).
  public func remove(at rows: [Int], in commit: Commit) throws(FeedError) {
    try commit.operate(on: number, state) { () throws(FeedError) in
      let descending = rows.sorted(by: >)
      for (place, row) in descending.enumerated() {
        if place > 0 && descending[place - 1] == row {
          throw .invalidParams(member: "at", reason: "names row \(row) twice; a row can be removed once")
        }
        try check(row, upTo: state.rows.count - 1, of: state.rows.count + place)
        state.remove(at: row, commit.log)
        commit.addStep(&state.step)
      }
    }
  }

  /// Replaces the elements of rows, in the given order (method `replace`).
  public func replace(_ elements: [JSONView], at rows: [Int], in commit: Commit) throws(FeedError) {
    try commit.operate(on: number, state) { () throws(FeedError) in
      for (place, element) in elements.enumerated() {
        try check(rows[place], upTo: state.rows.count - 1)
        try state.replace(element, at: rows[place], index: place, now: commit.tick(), commit.log)
        commit.addStep(&state.step)
      }
    }
  }

  /// Moves a row. `target` is its index after the move (method `move`).
  public func move(from row: Int, to target: Int, in commit: Commit) throws(FeedError) {
    try commit.operate(on: number, state) { () throws(FeedError) in
      try check(row, upTo: state.rows.count - 1)
      try check(target, upTo: state.rows.count - 1)
      state.move(from: row, to: target, commit.log)
      commit.addStep(&state.step)
    }
  }

  /// Replaces the content of an array by the elements of a JSON array (method `set`). `ListState.plan` chooses the rows
  /// that stay.
  public func set(_ elements: JSONView, in commit: Commit) throws(FeedError) {
    let buffer = ElementBuffer(compacting: elements, maxDepth: state.limits.maxDepth)
    let plan = state.plan(buffer.views)
    try commit.operate(on: number, state) { () throws(FeedError) in
      for (old, new) in plan.replaced {
        try state.replace(buffer.views[new], at: old, index: new, now: commit.tick(), commit.log)
        commit.addStep(&state.step)
      }
      for row in plan.removed.reversed() {
        state.remove(at: row, commit.log)
        commit.addStep(&state.step)
      }
      for row in plan.added {
        try state.insert(buffer.views[row], at: row, index: row, now: commit.tick(), commit.log)
        commit.addStep(&state.step)
      }
    }
  }

  /// Sets the element of a single, or removes it if `element` is nil (method `put`).
  public func put(_ element: JSONView?, in commit: Commit) throws(FeedError) {
    try commit.operate(on: number, state) { () throws(FeedError) in
      let isFull = state.rows.count > 0
      switch (element, isFull) {
      case (let element?, true): try state.replace(element, at: 0, index: 0, now: commit.tick(), commit.log)
      case (let element?, false): try state.insert(element, at: 0, index: 0, now: commit.tick(), commit.log)
      case (nil, true): state.remove(at: 0, commit.log)
      case (nil, false): return
      }
      commit.addStep(&state.step)
    }
    assert(shape == .array || state.rows.count <= 1, "a single holds several elements")
  }

  private func check(_ row: Int, upTo last: Int, of count: Int? = nil) throws(FeedError) {
    if row < 0 || row > last {
      throw .indexOutOfRange(feed: state.feed, index: row, count: count ?? state.rows.count, what: "row")
    }
  }
}
