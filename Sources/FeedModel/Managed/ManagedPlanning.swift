import FeedChange
import FeedJSON

/// Comparing the given rows with the existing rows. Changes nothing.
extension ManagedState {
  /// - Throws: `noIdentity`, `invalidParams` for a repeated identity, `limitExceeded` for too many sections.
  func plan(_ rows: ManagedRows) throws(FeedError) -> ManagedPlan {
    var plan = ManagedPlan()
    let groups = sections(of: rows)
    guard groups.count <= limits.maxBins || definition.section == nil else {
      throw .limitExceeded(
        limit: "maxBins", value: limits.maxBins,
        reason:
          "column \(definition.section ?? "") has \(grouped(groups.count)) values; use a column with fewer, or start feedd with a larger --max-bins"
      )
    }
    match(groups.map(\.name), in: &plan)
    var paths: [UInt32: IndexPath] = [:]
    let middles = groups.indices.map { middle(of: $0, groups[$0].entries, rows, plan) }
    listOldRows(middles.map(\.old), &plan, &paths)
    for (section, group) in groups.enumerated() {
      for row in middles[section].new {
        let new = try newRow(group.entries[row], section, row, rows, paths)
        if let known = new.known, plan.kept.updateValue(plan.news.count, forKey: known) != nil {
          throw notUnique(new.entry)
        }
        plan.news.append(new)
      }
    }
    return plan
  }

  /// The indices of the given rows, section by section.
  private func sections(of rows: ManagedRows) -> [(name: String, entries: [Int])] {
    if definition.section == nil { return [(feed, Array(rows.entries.indices))] }
    var groups: [(name: String, entries: [Int])] = rows.sections.map { (sectionName($0), []) }
    for (place, entry) in rows.entries.enumerated() { groups[entry.section].entries.append(place) }
    return groups
  }

  /// Pairs the old and new sections that are the same section.
  private func match(_ names: [String], in plan: inout ManagedPlan) {
    let places = Dictionary(uniqueKeysWithValues: names.enumerated().map { ($1, $0) })
    let common = sections.enumerated().compactMap { before, section in places[section.name].map { (before, $0) } }
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
    of section: Int, _ entries: [Int], _ rows: ManagedRows, _ plan: ManagedPlan
  ) -> (old: Range<Int>, new: Range<Int>) {
    guard let before = plan.before[section], identifiedBy == definition.id, typedBy == definition.type?.text else {
      return (0..<0, entries.indices)
    }
    let olds = texts(of: before)
    return rows.bytes.withUnsafeBytes { bytes in
      func isEqual(_ old: Int, _ new: Int) -> Bool {
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

  private func texts(of section: Int) -> [UnsafeRawBufferPointer] {
    var texts: [UnsafeRawBufferPointer] = []
    texts.reserveCapacity(sections[section].rows.count)
    let rows = sections[section].rows
    rows.forEach(in: 0..<rows.count) { texts.append(elements.text(of: $0).text) }
    return texts
  }

  /// Lists the old rows: all rows of deleted sections, and the middles of sections that stay.
  private func listOldRows(_ middles: [Range<Int>], _ plan: inout ManagedPlan, _ paths: inout [UInt32: IndexPath]) {
    for section in sections.indices {
      let rows = sections[section].rows
      var range = 0..<rows.count
      if let after = plan.after[section], identifiedBy == definition.id, typedBy == definition.type?.text {
        range = middles[after]
      }
      var row = UInt32(range.lowerBound)
      rows.forEach(in: range) { handle in
        let path = IndexPath(section: UInt32(section), row: row)
        plan.olds.append(.init(handle: handle, path: path))
        paths[handle] = path
        row += 1
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
    guard identifiedBy == definition.id, let known else { return .init(entry: entry, path: path, known: nil) }
    // A row outside the middles is already matched by an equal row.
    if paths[known] == nil { throw notUnique(entry) }
    return .init(entry: entry, path: path, known: known)
  }

  func notUnique(_ entry: Int) -> FeedError {
    .invalidParams(
      member: "id",
      reason: "is column \(definition.id), and row \(entry) of the query has the value of an earlier row there")
  }

  /// Calls `body` with a given row as JSON, valid during the call.
  func withObject<R>(
    _ entry: Int, of rows: ManagedRows, _ body: (JSONView) throws(FeedError) -> R
  ) throws(FeedError) -> R {
    let range = rows.entries[entry].start..<rows.entries[entry].end
    let result: Result<R, FeedError> = rows.bytes.withUnsafeBytes { bytes in
      do throws(FeedError) {
        return .success(try body(try scan(UnsafeRawBufferPointer(rebasing: bytes[range]), entry)))
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  private func scan(_ text: UnsafeRawBufferPointer, _ entry: Int) throws(FeedError) -> JSONView {
    do {
      return try scanner.scan(text)
    } catch {
      throw .internalError(reason: "row \(entry) of a query is not JSON: \(error.message)")
    }
  }
}
