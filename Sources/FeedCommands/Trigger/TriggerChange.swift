import FeedChange
import FeedClient
import FeedJSON

/// What `trigger` hands over of one row: a ``RowChange`` that outlives its notification.
struct TriggerChange: Equatable {
  enum Kind: String {
    case added, updated, moved, deleted
  }

  var kind: Kind
  /// Whether a moved row has, or may have, another element.
  var isUpdated = false
  var before: RowChange.Place?
  var after: RowChange.Place?
  /// The identity as JSON text; nil if unknown.
  var id: [UInt8]?
  var type: String?
  /// The compact text of the element; nil for a deleted row.
  var element: [UInt8]?
  var isAccepted: Bool
  /// Whether it is known that the change is one. Rows of a reset may be as they were before.
  var isCertain = true

  /// Returns nil for a row that did not change.
  init?(_ row: RowChange, initial: Bool) {
    switch row.kind {
    case .initial where initial, .added: kind = .added
    case .unknown: (kind, isCertain) = (.added, false)
    case .updated: (kind, isUpdated) = (.updated, true)
    case .moved: kind = .moved
    case .movedAndUpdated: (kind, isUpdated) = (.moved, true)
    case .deleted: kind = .deleted
    case .initial, .unchanged: return nil
    }
    (before, after) = (row.before, row.after)
    (id, type, element, isAccepted) = (row.id, row.type, row.element?.compactText, row.isAccepted)
  }

  /// The change that a command which follows one section sees, or nil: a row that moves into the section is added, and one that
  /// leaves it is deleted.
  func seen(inSection section: SectionWord?) -> TriggerChange? {
    var seen = self
    switch section?.passage(from: before, to: after) ?? .inside {
    case .inside: break
    case .outside: return nil
    case .enters:
      // An updated row that stayed in its section has no place before.
      if before != nil { (seen.kind, seen.before) = (.added, nil) }
    case .leaves:
      (seen.kind, seen.after, seen.element, seen.type) = (.deleted, nil, nil, nil)
    }
    return seen
  }

  /// The change with the one kind that the command is told, or nil if it does not want it: a moved row with another element is
  /// updated, if the command wants those.
  func wanted(_ kinds: Set<String>) -> TriggerChange? {
    guard isAccepted else { return nil }
    var wanted = self
    if kind == .moved, isUpdated, kinds.contains("updated") { wanted.kind = .updated }
    return kinds.contains(wanted.kind.rawValue) ? wanted : nil
  }

  /// Adds the members of the change to the JSON object that the command reads.
  func add(to object: inout ParameterWriter) {
    object.add("kind", kind.rawValue)
    if let place = after ?? before, let section = place.section {
      object.add("section", section)
      if let key = place.key { object.add("key", json: String(decoding: key, as: UTF8.self)) }
    }
    if let after { object.add("at", json: "\(after.path)") }
    if let before, kind == .moved || before.path != after?.path { object.add("was", json: "\(before.path)") }
    if let id { object.add("id", json: String(decoding: id, as: UTF8.self)) }
    if let type { object.add("type", type) }
    if !isCertain { object.add("certain", false) }
    if let element { object.add("element", json: String(decoding: element, as: UTF8.self)) }
  }
}

/// One run of the command: what it reads, and what is told of it.
struct TriggerItem: Equatable {
  /// Numbers the items of a state file.
  var number: Int
  var revision: UInt64
  /// The value of FEEDD_KIND.
  var kind: String
  /// The identities of its rows. Items with a common one run in order.
  var ids: Set<[UInt8]>
  /// The JSON object that the command reads.
  var input: [UInt8]

  init(number: Int, revision: UInt64, kind: String, ids: Set<[UInt8]>, input: [UInt8]) {
    (self.number, self.revision, self.kind, self.ids, self.input) = (number, revision, kind, ids, input)
  }

  /// Reads the object that ``json`` returned.
  init?(_ view: JSONView) {
    guard let number = view.member("number")?.int,
      let revision = view.member("revision")?.int.flatMap({ UInt64(exactly: $0) }),
      let kind = view.member("kind")?.string, let ids = view.member("ids"), let input = view.member("input")
    else { return nil }
    self.init(
      number: number, revision: revision, kind: kind, ids: Set(ids.elements.map(\.compactText)),
      input: input.compactText)
  }

  var json: String {
    var object = ParameterWriter()
    object.add("number", number)
    object.add("revision", json: "\(revision)")
    object.add("kind", kind)
    object.add("ids", json: ids.map { String(decoding: $0, as: UTF8.self) }.sorted())
    object.add("input", json: String(decoding: input, as: UTF8.self))
    return object.finish()
  }
}

/// The changes since the last batch, coalesced: a row added and then deleted is not in it, one updated twice is in it once.
///
/// Invariant: the places of the rows are those of the last change, and `before` those at the start of the batch.
struct TriggerBatch {
  /// What tells whether a row that was deleted and one that was added are one row.
  var identities = IdentityPaths.id
  /// The rows that were added, updated or moved, by their present path.
  private var rows: [IndexPath: TriggerChange] = [:]
  /// The rows that were there at the start of the batch and are deleted.
  private var gone: [TriggerChange] = []
  /// The rows and sections that all deltas together remove and insert.
  private var shift = Change.empty
  /// The texts of the deltas, which are not in the file yet.
  private(set) var deltas: [String] = []
  /// The revision before the batch, and the position after its last delta; nil if there is none.
  private(set) var span: (start: UInt64, end: FeedPosition)?

  init(_ identities: IdentityPaths = .id) { self.identities = identities }

  var count: Int { rows.count + gone.count }

  mutating func add(_ changes: [TriggerChange], _ delta: Delta, _ position: FeedPosition) {
    deltas.append(delta.text)
    span = (span?.start ?? delta.from, position)
    let starts = starts(of: changes)
    var (deleted, moved): ([IndexPath: RowChange.Place], [IndexPath: IndexPath]) = ([:], [:])
    for (row, start) in zip(changes, starts) {
      guard let path = row.before?.path else { continue }
      if let to = row.after?.path { moved[path] = to } else { deleted[path] = start }
    }
    let change = delta.change
    shift = compose(
      shift,
      Change(
        deleted: change.deleted, added: change.added, sectionsDeleted: change.sectionsDeleted,
        sectionsAdded: change.sectionsAdded))
    var map = ChangeMap(forward: change)
    let known = rows
    rows = [:]
    for (path, row) in known.sorted(by: { $0.key < $1.key }) {
      let destination = map.map(path)
      if let start = deleted[path] {
        if row.kind != .added { gone.append(row.deleted(from: start)) }
      } else if let to = moved[path] {
        rows[to] = row
      } else if case .at(let to) = destination {
        rows[to] = row
        rows[to]?.after?.path = to
      }
    }
    for (change, start) in zip(changes, starts) {
      var row = change
      row.before = start
      if let to = row.after?.path {
        rows[to] = rows[to].map { $0.followed(by: row) } ?? row
      } else if change.before.map({ known[$0.path] == nil }) ?? true {
        gone.append(row)
      }
    }
  }

  /// The places of the rows at the start of the batch, for rows that were there.
  private func starts(of changes: [TriggerChange]) -> [RowChange.Place?] {
    var starts = changes.map(\.before)
    var map = ChangeMap(backward: shift)
    let paths = starts.enumerated().compactMap { index, place in place.map { (index: index, path: $0.path) } }
    for (index, path) in paths.sorted(by: { $0.path < $1.path }) {
      if case .at(let start) = map.map(path) { starts[index]?.path = start }
    }
    return starts
  }

  /// The changes in order: those of deleted rows, then the others by their places.
  var changes: [TriggerChange] {
    var (left, came): ([RowIdentity: Int], [RowIdentity: Int]) = ([:], [:])
    func identity(_ row: TriggerChange) -> RowIdentity? {
      let section = (row.after ?? row.before)?.section
      return identities.areShared(in: section) ? nil : RowIdentity(row.id, in: section)
    }
    for row in gone { if let id = identity(row) { left[id, default: 0] += 1 } }
    for row in rows.values where row.kind == .added { if let id = identity(row) { came[id, default: 0] += 1 } }
    // An element that was deleted and came back is updated.
    func hasReturned(_ row: TriggerChange) -> Bool { identity(row).map { left[$0] == 1 && came[$0] == 1 } ?? false }
    let returned = Dictionary(gone.filter(hasReturned).map { (identity($0), $0.before) }) { first, _ in first }
    let present = rows.sorted { $0.key < $1.key }.map { _, row in
      guard row.kind == .added, hasReturned(row), let before = returned[identity(row)] else { return row }
      var updated = row
      (updated.kind, updated.isUpdated, updated.before) = (.updated, true, before)
      return updated
    }
    return gone.filter { !hasReturned($0) } + present
  }
}

extension TriggerChange {
  /// This row, deleted by a later change.
  /// - Parameter start: its place at the start of the batch, which an updated row does not have.
  fileprivate func deleted(from start: RowChange.Place) -> TriggerChange {
    var row = self
    (row.kind, row.after, row.element, row.type) = (.deleted, nil, nil, nil)
    row.before = before ?? start
    return row
  }

  /// The change of this one and a later one of the same row.
  fileprivate func followed(by later: TriggerChange) -> TriggerChange {
    var row = later
    row.before = before ?? later.before
    row.isUpdated = isUpdated || later.isUpdated
    row.isCertain = isCertain && later.isCertain
    switch (kind, later.kind) {
    case (.added, _): (row.kind, row.before) = (.added, nil)
    case (.moved, _), (_, .moved): row.kind = .moved
    default: row.kind = .updated
    }
    return row
  }
}

/// Writes what the command of `trigger` reads: a change, or all changes of a batch.
struct TriggerInput {
  private let settings: TriggerSettings
  private let position: FeedPosition
  private let isReset: Bool

  /// - Parameters:
  ///   - position: that after the changes.
  ///   - isReset: whether they come from a comparison after a reset, and not from the daemon.
  init(_ settings: TriggerSettings, _ position: FeedPosition, isReset: Bool = false) {
    (self.settings, self.position, self.isReset) = (settings, position, isReset)
  }

  /// Returns the item of one change; nil if the command does not want it.
  /// - Parameter number: returns the number of a new item.
  func item(of change: TriggerChange, number: () -> Int) -> TriggerItem? {
    guard let change = seen(change) else { return nil }
    var object = heading()
    change.add(to: &object)
    return item([change], kind: change.kind.rawValue, object.finish(), number())
  }

  /// Returns the item of a batch; nil if the command wants none of its changes.
  /// - Parameter from: the revision before the changes; nil at the first start.
  func item(of changes: [TriggerChange], from: UInt64?, number: () -> Int) -> TriggerItem? {
    let changes = changes.compactMap(seen)
    guard !changes.isEmpty else { return nil }
    let kinds = Set(changes.map(\.kind.rawValue))
    var object = heading()
    if let from { object.add("from", json: "\(from)") }
    object.add(
      "changes",
      json: changes.map { change in
        var entry = ParameterWriter()
        change.add(to: &entry)
        return entry.finish()
      })
    let kind = ChangeFilter.words.filter(kinds.contains).joined(separator: ",")
    return item(changes, kind: kind, object.finish(), number())
  }

  private func seen(_ change: TriggerChange) -> TriggerChange? {
    change.seen(inSection: settings.section)?.wanted(settings.kinds)
  }

  private func heading() -> ParameterWriter {
    var object = ParameterWriter(feed: settings.feed)
    object.add(position)
    if isReset { object.add("reset", true) }
    return object
  }

  private func item(_ changes: [TriggerChange], kind: String, _ input: String, _ number: Int) -> TriggerItem {
    TriggerItem(
      number: number, revision: position.revision, kind: kind,
      ids: Set(changes.compactMap { $0.id.map(RowPrint.canonical) }),
      input: Array(input.utf8))
  }
}

extension Delta {
  /// The parameters of the notification as JSON text, with the present elements.
  var text: String {
    func list(_ paths: [IndexPath]) -> [String] { paths.map(\.description) }
    var object = ParameterWriter(feed: feed)
    object.add("from", json: "\(from)")
    object.add("revision", json: "\(revision)")
    object.add("deleted", json: list(change.deleted))
    object.add("added", json: list(change.added))
    object.add("updated", json: list(change.updated))
    if !change.moves.isEmpty { object.add("moves", json: change.moves.map { "[\($0.deleted),\($0.added)]" }) }
    if !change.hasSameSections {
      var sections = ParameterWriter()
      sections.add("deleted", json: change.sectionsDeleted.map { "\($0)" })
      sections.add(
        "added",
        json: change.sectionsAdded.map { section in
          var object = ParameterWriter()
          object.add("at", json: "\(section.at)")
          object.add("name", section.name)
          if let key = section.key { object.add("key", json: String(decoding: key, as: UTF8.self)) }
          return object.finish()
        })
      object.add("sections", json: sections.finish())
    }
    object.add("elements", json: elements.map { String(decoding: $0, as: UTF8.self) })
    return object.finish()
  }
}
