import FeedChange
import FeedClient
import FeedJSON

/// Follows the rows of a feed by place, and tells what each notification does to them.
///
/// It keeps a ``RowPrint`` of each row, about 100 bytes, of at most ``maxRows`` rows. Of a larger feed, and of a watch that
/// resumed without ``SavedRows``, it knows only what the notifications say.
///
/// Invariant: if `mirror` is not nil, it has the rows of the last complete state.
struct RowTracker {
  /// The maximum number of rows that are remembered.
  static let maxRows = 100_000

  let feed: String
  var printer: RowPrinter
  /// Whether the rows are remembered. If not, only the snapshots of resets are told.
  private let keepsRows: Bool
  /// The prints of all rows; nil if they are not known.
  private var mirror: Mirror?
  /// The names and numbers of rows of all sections; nil if they are not known.
  private(set) var sections: [SectionSummary]?
  private var epoch = ""
  /// The start of a watch that resumed while the sections were not known. Its delta leads to its sections.
  private var resumption: WatchStart?
  /// The sections of the snapshot that is being received, and the comparison with the rows from before.
  private var incoming: (sections: [SectionSummary], comparison: ResetComparison?, isReset: Bool)?
  /// The reset whose first part has not arrived.
  private var reset: RowNews.Reset?

  /// Creates a tracker that knows the rows of an earlier run, if they were saved.
  init(
    _ feed: String, keepsRows: Bool, _ printer: RowPrinter, saved: (position: FeedPosition, rows: SavedRows)? = nil
  ) {
    (self.feed, self.keepsRows, self.printer) = (feed, keepsRows, printer)
    guard let saved, keepsRows else { return }
    sections = saved.rows.sections
    mirror = saved.rows.prints.map { Mirror(feed: feed, position: saved.position, sections: $0) }
  }

  /// The rows of the last complete state, to save them.
  var saved: SavedRows? { sections.map { SavedRows(sections: $0, prints: mirror?.sections) } }

  /// The identity of the row at a place, as JSON text; nil if unknown.
  private func print(at path: IndexPath) -> RowPrint? { mirror?[path].flatMap { RowPrint($0.element) } }

  /// Records that a watch has started.
  /// - Parameters:
  ///   - asked: the position that it should resume from; nil for none.
  ///   - hasSnapshot: whether a snapshot follows unless it resumes.
  mutating func started(_ start: WatchStart, asked: FeedPosition?, hasSnapshot: Bool) {
    epoch = start.epoch
    (reset, incoming, resumption) = (nil, nil, nil)
    if start.resumed {
      mirror?.restart(start)
      guard sections == nil else { return }
      if asked?.revision == start.revision { sections = start.sections } else { resumption = start }
      return
    }
    guard hasSnapshot else {
      (sections, mirror) = (start.sections, nil)
      if keepsRows, start.sections.allSatisfy({ $0.count == 0 }) { mirror = Mirror(start, initial: false) }
      return
    }
    var reason: String?
    if let asked {
      reason =
        asked.epoch == start.epoch
        ? "the daemon does not have the changes since revision \(asked.revision)" : "the daemon began a new history"
    }
    begin(start.sections, reason: reason)
    mirror?.restart(start)
    if mirror == nil, fits(start.sections) { mirror = Mirror(start) }
  }

  private func fits(_ sections: [SectionSummary]) -> Bool {
    keepsRows && sections.reduce(0) { $0 + $1.count } <= Self.maxRows
  }

  private mutating func begin(_ sections: [SectionSummary], reason: String?, listsSections: Bool = true) {
    let comparison = reason == nil ? nil : mirror.map { ResetComparison($0.sections) }
    incoming = (sections, comparison, reason != nil)
    if let reason {
      reset = RowNews.Reset(
        reason: reason, sections: listsSections ? sections : nil,
        isCompared: comparison != nil)
    }
    if !fits(sections) { mirror = nil }
  }

  /// Returns what a notification does to the rows, and records it.
  mutating func take(_ notification: Notification) throws(MalformedMessage) -> RowNews? {
    switch notification.kind {
    case .snapshot: return try take(snapshot: notification.params)
    case .delta: return keepsRows ? try take(delta: notification.params) : nil
    case .bookmark:
      let bookmark = try Bookmark(notification.params)
      do throws(FeedFault) { try mirror?.apply(bookmark) } catch { mirror = nil }
      return nil
    case .selection, .bye, .other: return nil
    }
  }
}

extension RowTracker {
  private mutating func take(snapshot params: JSONView) throws(MalformedMessage) -> RowNews? {
    let reader = MemberReader(object: params, place: "snapshot")
    if reader.flag("reset") {
      let sections = try reader.sections("sections")
      begin(sections, reason: "the reader was too slow for the changes", listsSections: false)
      if mirror == nil, fits(sections) {
        mirror = Mirror(
          WatchStart(
            feed: feed, epoch: epoch, revision: try reader.revision("revision"), resumed: false, sections: sections))
      }
    }
    guard keepsRows || incoming?.isReset == true else { return nil }
    var news = RowNews(reset: reset, isOfReset: incoming?.isReset ?? false, identities: printer.identities)
    reset = nil
    var texts: [[UInt8]] = []
    var path = try reader.path("at")
    let section = place(path, in: incoming?.sections).section
    let types = try reader.types(count: params.member("elements")?.count ?? 0)
    for (number, element) in try reader.array("elements").enumerated() {
      let print = printer.print(element, type: types?[number], section: section)
      texts.append(print.text)
      var row = RowChange(
        kind: .initial, after: place(path, in: incoming?.sections), element: element, type: types?[number],
        id: print.id, isAccepted: print.isAccepted, number: number)
      if news.isOfReset {
        row.kind = .unknown
        if let judgement = incoming?.comparison?.judge(print, section: section) {
          (row.kind, row.before) = judgement
        }
      }
      news.rows.append(row)
      path = IndexPath(section: path.section, row: path.row &+ 1)
    }
    let part = try SnapshotPart(reader, elements: texts)
    do throws(FeedFault) { _ = try mirror?.apply(part) } catch { mirror = nil }
    if part.isLast, let done = incoming {
      news.rows += done.comparison?.missing ?? []
      sections = done.sections
      incoming = nil
    }
    return news
  }

  private func place(_ path: IndexPath, in sections: [SectionSummary]?) -> RowChange.Place {
    guard let sections, Int(path.section) < sections.count else { return RowChange.Place(path: path) }
    let section = sections[Int(path.section)]
    if section.name.isEmpty { return RowChange.Place(path: path) }
    return RowChange.Place(path: path, section: section.name, key: section.key)
  }
}

extension RowTracker {
  private mutating func take(delta params: JSONView) throws(MalformedMessage) -> RowNews {
    let reader = MemberReader(object: params, place: "delta")
    let elements = Array(try reader.array("elements"))
    let types = try reader.types(count: elements.count)
    var delta = try Delta(reader, elements: elements.map { _ in [] })
    let change = delta.change
    guard elements.count == change.added.count + change.updated.count else {
      throw MalformedMessage("delta: \"elements\" does not fit \"added\" and \"updated\"")
    }
    let after = resumption?.revision == delta.revision ? resumption?.sections : nil
    let before = sections ?? after.flatMap { Self.sections(before: change, $0) }
    let hasAllDeleted = sections != nil
    var rows = deletions(of: delta, from: before)
    if var counts = sections { sections = change.apply(toCounts: &counts) ? counts : nil }
    if let after { sections = after }
    resumption = nil
    let places = (change.added + change.updated).map { place($0, in: sections) }
    let prints = elements.enumerated().map { number, element in
      printer.print(element, type: types?[number], section: places[number].section)
    }
    delta.elements = prints.map(\.text)
    let sources = sourcesOfMoves(in: change)
    for (number, print) in prints.enumerated() {
      let isAdded = number < change.added.count
      var row = RowChange(
        kind: isAdded ? .added : .updated, after: places[number], element: elements[number], type: types?[number],
        id: print.id, isAccepted: print.isAccepted, number: number)
      if let source = isAdded ? sources[number] : nil {
        row.before = place(change.deleted[source], in: before)
        row.deletedNumber = source
        let isSame = self.print(at: change.deleted[source])?.digest == print.digest
        row.kind = isSame ? .moved : .movedAndUpdated
      }
      rows.append(row)
    }
    if !change.sectionsDeleted.isEmpty { Self.pairRowsOfDeletedSections(&rows, printer.identities) }
    do throws(FeedFault) { try mirror?.apply(delta) } catch { mirror = nil }
    if let count = mirror?.count, count > Self.maxRows { mirror = nil }
    return RowNews(rows: rows, identities: printer.identities, delta: delta, hasAllDeleted: hasAllDeleted)
  }

  /// The rows that the change deletes: those that it lists without a pair, and those of deleted sections.
  /// - Parameter before: the sections before the change, as far as they are known.
  private func deletions(of delta: Delta, from before: [SectionSummary]?) -> [RowChange] {
    let change = delta.change
    var rows: [RowChange] = []
    func add(_ path: IndexPath, number: Int?, _ told: [UInt8]?) {
      let known = print(at: path)
      rows.append(
        RowChange(
          kind: .deleted, before: place(path, in: before), id: Self.identity(told: told, known: known?.id),
          isAccepted: known?.isAccepted ?? true, deletedNumber: number))
    }
    let moved = Set(change.moves.map { Int($0.deleted) })
    for (number, path) in change.deleted.enumerated() where !moved.contains(number) {
      add(path, number: number, delta.deletedIDs?[number])
    }
    for (number, section) in change.sectionsDeleted.enumerated() {
      let ids = delta.deletedSectionIDs?[number]
      let known = sections.flatMap { Int(section) < $0.count ? $0[Int(section)].count : nil }
      for row in 0..<(known ?? ids?.count ?? 0) {
        add(IndexPath(section: section, row: UInt32(row)), number: nil, ids.flatMap { row < $0.count ? $0[row] : nil })
      }
    }
    return rows
  }

  /// The sections before a change by those after it; nil if it does not fit them. Those that it deletes have no name.
  private static func sections(before change: Change, _ after: [SectionSummary]) -> [SectionSummary]? {
    var sections = after
    for added in change.sectionsAdded.reversed() {
      guard Int(added.at) < sections.count else { return nil }
      sections.remove(at: Int(added.at))
    }
    for deleted in change.sectionsDeleted {
      guard Int(deleted) <= sections.count else { return nil }
      sections.insert(SectionSummary(name: "", count: 0), at: Int(deleted))
    }
    return sections
  }

  /// The identity as the element writes it, if that is the one that the daemon tells. It is not if a section has rows of several
  /// feeds.
  private static func identity(told: [UInt8]?, known: [UInt8]?) -> [UInt8]? {
    guard let told else { return known }
    return known.map(RowPrint.canonical) == told ? known : told
  }

  /// The index in `deleted` of each entry of `added` that moved.
  private func sourcesOfMoves(in change: Change) -> [Int: Int] {
    let moves = change.moves.filter { $0.deleted < UInt32(clamping: change.deleted.count) }
    return Dictionary(moves.map { (Int($0.added), Int($0.deleted)) }) { first, _ in first }
  }

  /// Makes one row of an added row and of a deleted row of the same identity and feed, if it was in a section that is deleted.
  /// The protocol cannot pair them.
  private static func pairRowsOfDeletedSections(_ rows: inout [RowChange], _ identities: IdentityPaths) {
    var gone: [RowIdentity: [Int]] = [:]
    for (index, row) in rows.enumerated() where row.kind == .deleted && row.deletedNumber == nil {
      if let identity = RowIdentity(row.id, in: row.before?.section) { gone[identity, default: []].append(index) }
    }
    var paired: Set<Int> = []
    for index in rows.indices where rows[index].kind == .added {
      if identities.areShared(in: rows[index].after?.section) { continue }
      // The names of sections that were deleted while nobody followed the feed are not known.
      let candidates = [rows[index].after?.section, nil].compactMap { RowIdentity(rows[index].id, in: $0) }
      var found: Int?
      for identity in candidates where found == nil { found = gone[identity]?.popLast() }
      guard let source = found else { continue }
      paired.insert(source)
      rows[index].before = rows[source].before
      rows[index].kind = .movedAndUpdated
    }
    if !paired.isEmpty { rows = rows.enumerated().filter { !paired.contains($0.offset) }.map(\.element) }
  }
}

extension Change {
  /// Updates the names and numbers of rows of the sections. Returns whether the change fits them.
  func apply(toCounts sections: inout [SectionSummary]) -> Bool {
    func count(_ paths: [IndexPath], by step: Int) -> Bool {
      for path in paths {
        guard Int(path.section) < sections.count else { return false }
        sections[Int(path.section)].count += step
      }
      return true
    }
    guard count(deleted, by: -1), sectionsFit(sections.count) else { return false }
    applySections(to: &sections) { SectionSummary(name: $0.name, key: $0.key, count: 0) }
    return count(added, by: 1)
  }
}
