import FeedChange
import FeedJSON

/// The plan of a `set` on a managed feed: the rows that stay, move, are deleted and are added.
///
/// Rows are matched by identity. Sections with the same name stay if they keep their order, and so do most rows in each
/// of them. Equal rows at both ends of a section are omitted. O(n) for these, O(m log m) for the m rows between.
struct ManagedPlan {
  /// A new row, between the equal ends of its section.
  struct NewRow {
    /// The index of the row in the given rows.
    let entry: Int
    let path: IndexPath
    /// The existing row with the same identity; nil if the row is added.
    let known: UInt32?
  }

  /// An existing row, between the equal ends of its section.
  struct OldRow {
    let handle: UInt32
    let path: IndexPath
  }

  var names: [String] = []
  /// For every new section, the index of the same old section; nil if the section is added.
  var before: [Int?] = []
  /// For every old section, the index of the same new section; nil if the section is deleted.
  var after: [Int?] = []
  /// The old rows, ascending.
  var olds: [OldRow] = []
  /// The new rows, ascending.
  var news: [NewRow] = []
  /// The rows among `olds` that still exist afterwards, each with its index in `news`.
  var kept: [UInt32: Int] = [:]

  /// Makes room for so many old and new rows: a list that grows copies all of them at once.
  mutating func reserve(olds: Int, news: Int) {
    self.olds.reserveCapacity(olds)
    self.news.reserveCapacity(news)
    kept.reserveCapacity(min(olds, news))
  }

  /// The change, as if no element changed.
  /// - Parameter isByValue: whether the sections have the values of a column.
  func change(isByValue: Bool, _ pace: Pace) -> Change {
    var change = Change(added: news.map(pace, \.path))
    for (section, after) in after.enumerated() where after == nil { change.sectionsDeleted.append(UInt32(section)) }
    for (section, before) in before.enumerated() where before == nil {
      change.sectionsAdded.append(SectionAddition(at: UInt32(section), name: names[section], isByValue: isByValue))
    }
    change.deleted.reserveCapacity(olds.count)
    change.moves.reserveCapacity(min(kept.count, olds.count))
    for (number, old) in olds.enumerated() {
      if number & 7 == 7 { pace.spend() }
      let added = kept[old.handle].map { UInt32($0) }
      if after[Int(old.path.section)] == nil {
        if let added { change.transfers.append(Transfer(from: old.path, added: added, keepsElement: true)) }
      } else {
        let deleted = UInt32(change.deleted.count)
        if let added { change.moves.append(Move(deleted: deleted, added: added, keepsElement: true)) }
        change.deleted.append(old.path)
      }
    }
    return change.normalizingMoves(inOrderAfter: true) { pace.didCompareMoves() }
  }
}

/// Comparing the given rows with the existing rows, which changes nothing, and applying the plan.
///
/// Others may read the feed between two rows of a plan, with the buffers that it scans into.
extension ManagedState {
  /// - Throws: `noIdentity`, `invalidParams` for a repeated identity, `limitExceeded` for too many sections.
  func plan(_ rows: ManagedRows, _ pace: Pace) throws(FeedError) -> ManagedPlan {
    var plan = ManagedPlan()
    if let column = definition.section, rows.sections.count > limits.maxBins {
      throw limits.exceeded(
        \.maxBins, "column \(column) has \(grouped(rows.sections.count)) values; use a column with fewer")
    }
    let groups = sections(of: rows, pace)
    match(groups.map(\.name), in: &plan)
    var paths: [UInt32: IndexPath] = [:]
    let middles = groups.indices.map { middle(of: $0, groups[$0].entries, rows, plan, pace) }
    let ranges = sections.indices.map { section in
      let after = isIdentifiedAlike && isTypedAlike ? plan.after[section] : nil
      return after.map { middles[$0].old } ?? 0..<sections[section].count
    }
    let count = ranges.reduce(0) { $0 + $1.count }
    plan.reserve(olds: count, news: middles.reduce(0) { $0 + $1.new.count })
    paths.reserveCapacity(count)
    listOldRows(ranges, &plan, &paths, pace)
    for (section, group) in groups.enumerated() {
      for row in middles[section].new {
        let entry = rows.entries[group.entries[row]]
        pace.spend(1 &+ (entry.end &- entry.start) >> 8)
        let new = try newRow(group.entries[row], section, row, rows, paths)
        if let known = new.known, plan.kept.updateValue(plan.news.count, forKey: known) != nil {
          throw notUnique(new.entry)
        }
        plan.news.append(new)
      }
    }
    return plan
  }

  /// Whether the present rows have identities and types by the present definition.
  private var isIdentifiedAlike: Bool { identifiedBy.exact == definition.id.exact }
  private var isTypedAlike: Bool { typedBy?.exact == definition.type?.text.exact }

  private func sections(of rows: ManagedRows, _ pace: Pace) -> [(name: String, entries: [Int])] {
    if definition.section == nil {
      var all: [Int] = []
      all.append(contentsOf: rows.entries.indices, pace)
      return [(feed, all)]
    }
    var groups: [(name: String, entries: [Int])] = rows.sections.map { (SectionName.name($0, in: feed), []) }
    for (place, entry) in rows.entries.enumerated() {
      if place & 15 == 15 { pace.spend() }
      groups[entry.section].entries.append(place)
    }
    return groups
  }

  /// Pairs the old and new sections that are the same section.
  private func match(_ names: [String], in plan: inout ManagedPlan) {
    let places = Dictionary(uniqueKeysWithValues: names.enumerated().map { ($1.exact, $0) })
    let common = sections.enumerated().compactMap { before, section in places[section.name.exact].map { (before, $0) } }
    plan.names = names
    plan.before = Array(repeating: nil, count: names.count)
    plan.after = Array(repeating: nil, count: sections.count)
    for index in longestIncreasing(common.map(\.1)) {
      let (before, after) = common[index]
      plan.before[after] = before
      plan.after[before] = after
    }
  }

  /// The ranges of old and new rows between the equal ends of a section.
  private func middle(
    of section: Int, _ entries: [Int], _ rows: ManagedRows, _ plan: ManagedPlan, _ pace: Pace
  ) -> (old: Range<Int>, new: Range<Int>) {
    guard let before = plan.before[section], isIdentifiedAlike, isTypedAlike else { return (0..<0, entries.indices) }
    let olds = texts(of: before, pace)
    return rows.bytes.withUnsafeBytes { bytes in
      func isEqual(_ old: Int, _ new: Int) -> Bool {
        pace.spend(onText: olds[old])
        let entry = rows.entries[entries[new]]
        return Self.equal(olds[old], UnsafeRawBufferPointer(rebasing: bytes[entry.start..<entry.end]))
      }
      let shorter = min(olds.count, entries.count)
      var start = 0
      while start < shorter, isEqual(start, start) { start += 1 }
      var end = 0
      while end < shorter - start, isEqual(olds.count - 1 - end, entries.count - 1 - end) { end += 1 }
      return (start..<(olds.count - end), start..<(entries.count - end))
    }
  }

  private func texts(of section: Int, _ pace: Pace) -> [UnsafeRawBufferPointer] {
    var texts: [UnsafeRawBufferPointer] = []
    texts.reserveCapacity(sections[section].rows.count)
    let rows = sections[section].rows
    rows.forEach(in: 0..<rows.count) {
      texts.append(elements.text(of: $0).text)
      if texts.count & 7 == 7 { pace.spend() }
    }
    return texts
  }

  /// Lists the old rows: all rows of deleted sections, and the middles of sections that stay.
  private func listOldRows(
    _ ranges: [Range<Int>], _ plan: inout ManagedPlan, _ paths: inout [UInt32: IndexPath], _ pace: Pace
  ) {
    for (section, range) in ranges.enumerated() {
      var row = UInt32(range.lowerBound)
      sections[section].rows.forEach(in: range) { handle in
        let path = IndexPath(section: UInt32(section), row: row)
        plan.olds.append(.init(handle: handle, path: path))
        paths[handle] = path
        row += 1
        if row & 3 == 3 { pace.spend() }
      }
    }
  }

  private func newRow(
    _ entry: Int, _ section: Int, _ row: Int, _ rows: ManagedRows, _ paths: [UInt32: IndexPath]
  ) throws(FeedError) -> ManagedPlan.NewRow {
    let path = IndexPath(section: UInt32(section), row: UInt32(row))
    let known = try withObject(entry, of: rows) { object throws(FeedError) in
      try find(identityOf: object, index: entry)
    }
    guard isIdentifiedAlike, let known else { return .init(entry: entry, path: path, known: nil) }
    // A row outside the middles is already matched by an equal row.
    if paths[known] == nil { throw notUnique(entry) }
    return .init(entry: entry, path: path, known: known)
  }

  private func notUnique(_ entry: Int) -> FeedError {
    .invalidParams(
      member: "id",
      reason: "is column \(definition.id), and row \(entry) of the query has the value of an earlier row there")
  }

  /// Calls `body` with a given row as JSON, valid during the call.
  private func withObject<R>(
    _ entry: Int, of rows: ManagedRows, _ body: (JSONView) throws(FeedError) -> R
  ) throws(FeedError) -> R {
    let range = rows.entries[entry].start..<rows.entries[entry].end
    return try rows.bytes.withUnsafeBytes { bytes in
      Result { () throws(FeedError) in try body(try scan(UnsafeRawBufferPointer(rebasing: bytes[range]), entry)) }
    }.get()
  }

  private func scan(_ text: UnsafeRawBufferPointer, _ entry: Int) throws(FeedError) -> JSONView {
    do {
      return try scratch.scan(text)
    } catch {
      throw .internalError(reason: "row \(entry) of a query is not JSON: \(error.message)")
    }
  }

  /// Applies a plan and returns the change. If it throws, the caller rolls back the logged steps.
  func apply(_ plan: ManagedPlan, _ rows: ManagedRows, of feed: Feed, in commit: Commit) throws(FeedError) -> Change {
    let (log, moment) = (commit.log, commit.tick())
    var change = plan.change(isByValue: definition.section != nil, log.pace)
    removeRows(plan, change.deleted, log)
    if !change.hasSameSections { arrangeSections(plan, feed, commit) }
    /// For each entry of `added`, whether it shows another element than before.
    var isChanged = [Bool](repeating: false, count: change.added.count, log.pace)
    var next = 0
    for new in plan.news {
      let entry = rows.entries[new.entry]
      log.pace.spend(2 &+ (entry.end &- entry.start) >> 8)
      let isAdded = next < change.added.count && change.added[next] == new.path
      let differs = try withObject(new.entry, of: rows) { object throws(FeedError) in
        try put(new, try compact(object, index: new.entry), isAdded: isAdded, at: moment, log)
      }
      if isAdded {
        isChanged[next] = differs
        next += 1
      } else if differs {
        change.updated.append(new.path)
      }
    }
    change.markChanged(isChanged, log.pace)
    identifyAnew(commit)
    return change
  }

  /// Removes the rows that do not stay, in reverse: those of `deleted`, and of deleted sections.
  private func removeRows(_ plan: ManagedPlan, _ deleted: [IndexPath], _ log: UndoLog) {
    var deleted = deleted[...]
    for old in plan.olds.reversed() {
      log.pace.spend()
      if deleted.last == old.path {
        deleted.removeLast()
      } else if plan.after[Int(old.path.section)] != nil {
        continue
      }
      removeRow(section: Int(old.path.section), at: Int(old.path.row), log)
      if plan.kept[old.handle] == nil { removeElement(old.handle, log) }
    }
  }

  /// Removes and adds sections. Deleted sections are empty by now.
  private func arrangeSections(_ plan: ManagedPlan, _ feed: Feed, _ commit: Commit) {
    let former = sections
    sections = plan.before.enumerated().map { section, before in
      before.map { former[$0] }
        ?? RowSection(name: plan.names[section], elements: elements, keyed: false, isByValue: definition.section != nil)
    }
    let graph = commit.graph
    graph.sectionsDidChange(of: feed)
    commit.logStructure { [unowned self] in
      sections = former
      graph.sectionsDidChange(of: feed)
    }
  }

  /// Gives a row its element, and its place if it is added. Returns whether a known row shows another element than before.
  private func put(
    _ new: ManagedPlan.NewRow, _ object: JSONView, isAdded: Bool, at moment: Instant, _ log: UndoLog
  ) throws(FeedError) -> Bool {
    let (section, row) = (Int(new.path.section), Int(new.path.row))
    if let known = new.known {
      let differs = try exchange(known, object, new.entry, at: moment, log)
      if isAdded { insertRow(known, section: section, at: row, key: 0, log) }
      return differs
    }
    guard try find(identityOf: object, index: new.entry) == nil else { throw notUnique(new.entry) }
    try checkRoom(for: object, log)
    let handle = addElement(try makeText(object), at: moment, log)
    insertRow(handle, section: section, at: row, key: 0, log)
    return false
  }

  /// Replaces the element of a row. Returns whether its text or type changed.
  private func exchange(
    _ handle: UInt32, _ object: JSONView, _ entry: Int, at moment: Instant, _ log: UndoLog
  ) throws(FeedError) -> Bool {
    let old = elements.text(of: handle)
    let isEqual = Self.equal(old.text, object.text)
    if isEqual && isTypedAlike { return false }
    _ = try find(identityOf: object, index: entry)
    if !isEqual { try checkRoom(for: object, replacing: handle, log) }
    let text = try makeText(object)
    let differs = !isEqual || !Self.equal(old.type, text.type)
    preserve(handle)
    exchangeText(handle, text, at: isEqual ? old.changedAt : moment, log)
    return differs
  }

  private func identifyAnew(_ commit: Commit) {
    let (identifiedBy, typedBy) = (identifiedBy, typedBy)
    if isIdentifiedAlike && isTypedAlike { return }
    self.identifiedBy = definition.id
    self.typedBy = definition.type?.text
    commit.logStructure { [unowned self] in
      (self.identifiedBy, self.typedBy) = (identifiedBy, typedBy)
    }
  }
}
