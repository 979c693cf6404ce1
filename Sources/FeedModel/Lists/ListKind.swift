import FeedChange
import FeedJSON
import FeedQuery

/// A feed with one stored section: an array, or a single.
public final class ListKind: SingleSectionKind {
  /// Whether it has any number of elements or at most one.
  public enum Shape: String, Sendable {
    case array
    case single
  }

  private let number: FeedNumber
  public let shape: Shape
  private var state: ListState

  init(number: FeedNumber, name: String, definition: ListDefinition, limits: Limits, seed: UInt64) {
    (self.number, shape) = (number, definition.shape)
    state = ListState(feed: name, definition: definition, limits: limits, seed: seed)
  }

  public var wireName: String { shape.rawValue }
  public var definedAs: FeedDefinition.Content? { .list(state.definition) }
  public var shown: RowSection { state.sections[0] }
  public var hasTypes: Bool { state.type != nil }
  public var rows: RowStore? { state }
  public var hasIdentity: Bool { state.identities != nil }
  /// The path of the identity; nil if elements have none.
  public var identityPath: SingularPath? { state.definition.id }

  /// Returns the element with an identity and its place; nil if there is none.
  /// - Precondition: elements have an identity.
  /// - Throws: `noIdentity` if `id` is neither a string nor a number.
  public func find(_ id: JSONView, index place: Int = 0) throws(FeedError) -> (row: Row, places: [IndexPath])? {
    try state.identities?.find(id, index: place).map { state.found($0) }
  }

  /// Returns the row of the element that has the identity of `element`; nil if there is none.
  /// - Precondition: elements have an identity.
  /// - Throws: `noIdentity` if `element` has none.
  public func find(identityOf element: JSONView, index: Int) throws(FeedError) -> Row? {
    try state.identities?.find(identityOf: element, index: index).map { state.row(of: $0) }
  }

  /// Returns the identity of an element, a JSON text; nil if elements have none.
  public func identity(of element: UnsafeRawBufferPointer) -> String? {
    var scanner = JSONScanner(maxDepth: Limits.largestDepth)
    guard let view = try? scanner.scan(element), let id = identityPath?.resolve(view) else { return nil }
    return String(decoding: id.text, as: UTF8.self)
  }

  /// Redefines the feed. Resolves the identity, type and expiry time of all elements again. Rows whose type differs are
  /// updated, and elements beyond a smaller `retain.count` are evicted. O(n log n).
  public func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError) {
    guard case .list(let list) = definition.content, list.shape == shape else {
      throw conflict(of: feed, with: definition)
    }
    let commit = catalog.commit
    if state.definition == list { return }
    try commit.budget.use(allElements: self.state.elements.bytes)
    if commit.long.isAnnounced { forkIfWorthwhile(for: commit, steps: .max) }
    let state = state
    let (former, position) = (state.rules, commit.log.position)
    state.adopt(list, commit.pace)
    do throws(FeedError) {
      var change = Change()
      for row in 0..<state.rows.count {
        if try state.rewrite(at: row, commit.log) { change.updated.append(IndexPath(section: 0, row: UInt32(row))) }
        commit.pace.spend(2)
      }
      feed.prepareToRecord(entries: change.size, commit.pace)
      commit.addStep(&change)
      evictExcess(in: commit)
    } catch {
      let refusal = commit.abandon(error, to: position)
      state.restore(former)
      throw refusal
    }
    // Rows removed under the previous identity path are not paired with rows added under this one.
    let isRebinned = former.hasOtherIdentity(than: list)
    if isRebinned { commit.publisher.didRebin(number) }
    catalog.refreshSummaries(with: feed)
    // Logged only now: a structural step hides all feeds from others until the commit ends.
    commit.logStructure(before: position) { [unowned catalog] in
      state.restore(former)
      catalog.refreshSummaries(with: feed)
      if isRebinned { catalog.commit.publisher.undoRebin() }
    }
    commit.finishOperation(on: number, state, since: position)
  }

  /// Runs an operation on the rows, as ``Commit/operate(on:_:rows:_:)``. A long commit changes a copy of them.
  private func operate(
    in commit: Commit, rows: Int = 0, steps: Int? = nil, _ body: (ListState) throws(FeedError) -> Void
  ) throws(FeedError) {
    if commit.long.isAnnounced { forkIfWorthwhile(for: commit, steps: steps) }
    let state = state
    try commit.operate(on: number, state, rows: rows) { () throws(FeedError) in try body(state) }
  }

  private func forkIfWorthwhile(for commit: Commit, steps: Int?) {
    commit.long.forkIfWorthwhile(number, state, steps: steps, copy: { ListState(copying: state, commit.pace) }) {
      [unowned self] in swap(&state, &$0)
    }
  }

  // MARK: Operations by row

  /// Inserts elements (method `insert`), each row in the coordinates after the one before; at the end without `rows`.
  public func insert(_ elements: [JSONView], at rows: [Int]?, in commit: Commit) throws(FeedError) {
    try operate(in: commit, rows: elements.count) { state throws(FeedError) in
      for (place, element) in elements.enumerated() {
        let row = rows?[place] ?? state.rows.count
        try check(row, upTo: state.rows.count)
        state.identities?.makeRoom(commit.pace)
        try state.insert(element, at: row, index: place, moment: commit.tick(), commit.log)
        commit.addStep(&state.step)
        commit.pace.spend(2, onText: element.text)
      }
      evictExcess(in: commit)
    }
  }

  /// Removes rows, all in the coordinates before the call (method `remove`).
  public func remove(at rows: [Int], in commit: Commit) throws(FeedError) {
    try operate(in: commit, rows: rows.count) { state throws(FeedError) in
      var ascending = rows
      ascending.sort(commit.pace, by: <)
      var handles: [UInt32] = []
      handles.reserveCapacity(rows.count)
      for (place, row) in ascending.enumerated().reversed() {
        if place + 1 < ascending.count && ascending[place + 1] == row {
          throw .invalidParams(member: "at", reason: "names row \(row) twice; a row can be removed once")
        }
        try check(row, upTo: state.rows.count - 1)
        handles.append(state.rows[row])
        if place & 15 == 0 { commit.pace.spend() }
      }
      handles.reverse()
      remove(handles, in: commit)
    }
  }

  /// Replaces the elements of rows, in the given order (method `replace`).
  public func replace(_ elements: [JSONView], at rows: [Int], in commit: Commit) throws(FeedError) {
    try operate(in: commit, rows: elements.count) { state throws(FeedError) in
      for (place, element) in elements.enumerated() {
        try check(rows[place], upTo: state.rows.count - 1)
        try state.replace(element, at: rows[place], index: place, moment: commit.tick(), commit.log)
        commit.addStep(&state.step)
        commit.pace.spend(2, onText: element.text)
      }
    }
  }

  /// Moves a row. `target` is its index after the move (method `move`).
  public func move(from row: Int, to target: Int, in commit: Commit) throws(FeedError) {
    try operate(in: commit) { state throws(FeedError) in
      try check(row, upTo: state.rows.count - 1)
      try check(target, upTo: state.rows.count - 1)
      state.move(from: row, to: target, commit.log)
      commit.addStep(&state.step)
    }
  }

  /// Replaces the content of an array by the elements of a JSON array (method `set`). O(n log n).
  public func set(_ elements: JSONView, in commit: Commit) throws(FeedError) {
    // Rows beyond those of the wanted list are removed, and all rows are compared.
    try commit.budget.use(rows: max(elements.count, state.rows.count), of: number)
    let buffer = ElementBuffer(compacting: elements, commit.pace)
    try operate(in: commit, steps: .max) { state throws(FeedError) in
      if hasIdentity {
        try state.setByIdentity(buffer.views, commit.tick, commit.log)
      } else {
        try state.set(buffer.views, commit.tick, commit.log)
      }
      commit.addStep(&state.step)
      evictExcess(in: commit)
    }
  }

  /// Sets the element of a single, or removes it if `element` is nil (method `put`).
  public func put(_ element: JSONView?, in commit: Commit) throws(FeedError) {
    try operate(in: commit) { state throws(FeedError) in
      let isFull = state.rows.count > 0
      switch (element, isFull) {
      case (let element?, true): try state.replace(element, at: 0, index: 0, moment: commit.tick(), commit.log)
      case (let element?, false): try state.insert(element, at: 0, index: 0, moment: commit.tick(), commit.log)
      case (nil, true): state.remove(at: 0, commit.log)
      case (nil, false): return
      }
      commit.addStep(&state.step)
    }
    assert(shape == .array || state.rows.count <= 1, "a single holds several elements")
  }

  private func check(_ row: Int, upTo last: Int) throws(FeedError) {
    if row < 0 || row > last {
      throw .indexOutOfRange(feed: state.feed, index: row, count: state.rows.count, what: .row)
    }
  }

  private func evictExcess(in commit: Commit) { remove(state.excess, in: commit) }

  private func remove(_ handles: [UInt32], in commit: Commit) {
    if handles.isEmpty { return }
    state.remove(handles, commit.log)
    commit.addStep(&state.step)
  }
}

/// Operations by identity. Elements must have identities.
extension ListKind {
  /// Replaces the elements with the same identities in place, and appends the others (method `update`).
  public func update(_ elements: [JSONView], in commit: Commit) throws(FeedError) {
    try operate(in: commit, rows: elements.count) { state throws(FeedError) in
      for (place, element) in elements.enumerated() {
        state.identities?.makeRoom(commit.pace)
        try state.upsert(element, index: place, moment: commit.tick(), commit.log)
        commit.addStep(&state.step)
        commit.pace.spend(2, onText: element.text)
      }
      evictExcess(in: commit)
    }
  }

  /// Deletes the elements with these identities. Unknown ones are no change (method `delete`).
  public func delete(_ ids: [JSONView], in commit: Commit) throws(FeedError) {
    try operate(in: commit, rows: ids.count) { state throws(FeedError) in
      var found: [UInt32] = []
      for (place, id) in ids.enumerated() {
        if let handle = try state.identities?.find(id, index: place) { found.append(handle) }
        commit.pace.spend(onText: id.text)
      }
      found.sort(commit.pace, by: <)
      // An identity may be given several times.
      var handles: [UInt32] = []
      handles.reserveCapacity(found.count)
      for (place, handle) in found.enumerated() {
        if handles.last != handle { handles.append(handle) }
        if place & 63 == 0 { commit.pace.spend() }
      }
      remove(handles, in: commit)
    }
  }

  /// Deletes the elements that a filter accepts (method `delete` with `where`). O(elements).
  public func delete(where filter: Filter, in commit: Commit) throws(FeedError) {
    commit.startOperation()
    let handles = try state.accepted(by: filter, in: commit)
    try commit.budget.use(rows: handles.count, of: number)
    try operate(in: commit, steps: handles.count) { _ in remove(handles, in: commit) }
  }

  /// Moves the row of an element to `target`, its index after the move (method `move` with `id`).
  public func move(_ id: JSONView, to target: Int, in commit: Commit) throws(FeedError) {
    guard let row = try find(id)?.places.first?.row else {
      throw .unknownIdentity(feed: state.feed, index: 0, id: String(decoding: id.text, as: UTF8.self))
    }
    try move(from: Int(row), to: target, in: commit)
  }
}
