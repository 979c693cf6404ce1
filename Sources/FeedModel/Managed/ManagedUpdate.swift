import FeedChange
import FeedJSON

/// Applying a plan to the rows.
extension ManagedState {
  /// Applies a plan and returns the change. If it throws, the caller rolls back the logged steps.
  func apply(
    _ plan: ManagedPlan, _ rows: ManagedRows, of feed: Feed, in commit: Commit
  ) throws(FeedError) -> Change {
    let (log, now) = (commit.log, commit.tick())
    var change = Change()
    var places = FormerPlaces()
    for old in plan.olds where !plan.staying.contains(old.handle) {
      if plan.after[Int(old.path.section)] == nil {
        places.departed[old.handle] = old.path
      } else {
        places.deleted[old.handle] = UInt32(change.deleted.count)
        change.deleted.append(old.path)
      }
    }
    removeRows(plan, log)
    arrangeSections(plan, feed, &change, commit)
    for new in plan.news {
      try withObject(new.entry, of: rows) { object throws(FeedError) in
        try put(new, try compact(object, index: new.entry), places, at: now, &change, log)
      }
    }
    change.moves.sort { $0.deleted < $1.deleted }
    change.transfers.sort { $0.from < $1.from }
    identifyAnew(commit)
    return change
  }

  /// Where the rows were that leave their places.
  private struct FormerPlaces {
    /// For each row that is deleted or moves, its index in the change's `deleted`.
    var deleted: [UInt32: UInt32] = [:]
    /// For each row of a deleted section, its path.
    var departed: [UInt32: IndexPath] = [:]
  }

  /// Removes the rows that are deleted or move, in reverse.
  private func removeRows(_ plan: ManagedPlan, _ log: UndoLog) {
    for old in plan.olds.reversed() where !plan.staying.contains(old.handle) {
      removeRow(section: Int(old.path.section), at: Int(old.path.row), log)
      if !plan.kept.contains(old.handle) { removeElement(old.handle, log) }
    }
  }

  /// Removes and adds sections. Deleted sections are empty by now.
  private func arrangeSections(
    _ plan: ManagedPlan, _ feed: Feed, _ change: inout Change, _ commit: Commit
  ) {
    for (section, after) in plan.after.enumerated() where after == nil {
      change.sectionsDeleted.append(UInt32(section))
    }
    for (section, before) in plan.before.enumerated() where before == nil {
      change.sectionsAdded.append(
        SectionAddition(at: UInt32(section), name: plan.names[section], isByValue: definition.section != nil))
    }
    if change.hasSameSections { return }
    let former = sections
    sections = plan.before.enumerated().map { section, before in
      before.map { former[$0] }
        ?? RowSection(
          name: plan.names[section], elements: elements, keyed: false, isByValue: definition.section != nil)
    }
    let graph = commit.graph
    graph.sectionsDidChange(of: feed)
    commit.logStructure { [unowned self] in
      sections = former
      graph.sectionsDidChange(of: feed)
    }
  }

  private func put(
    _ new: ManagedPlan.NewRow, _ object: JSONView, _ places: FormerPlaces, at now: Instant,
    _ change: inout Change, _ log: UndoLog
  ) throws(FeedError) {
    let (section, row) = (Int(new.path.section), Int(new.path.row))
    if let known = new.known {
      let differs = try exchange(known, object, new.entry, at: now, log)
      if new.stays {
        if differs { change.updated.append(new.path) }
        return
      }
      insertRow(known, section: section, at: row, key: 0, log)
      let added = UInt32(change.added.count)
      if let place = places.deleted[known] {
        change.moves.append(Move(deleted: place, added: added, keepsElement: !differs))
      } else if let path = places.departed[known] {
        change.transfers.append(Transfer(from: path, added: added, keepsElement: !differs))
      }
    } else {
      guard try find(identityOf: object, index: new.entry) == nil else { throw notUnique(new.entry) }
      try checkRoom(for: object, isNew: true)
      let handle = add(try makeText(object), at: now, log)
      insertRow(handle, section: section, at: row, key: 0, log)
    }
    change.added.append(new.path)
  }

  /// Replaces the element of a row. Returns whether its text or type changed.
  private func exchange(
    _ handle: UInt32, _ object: JSONView, _ entry: Int, at now: Instant, _ log: UndoLog
  ) throws(FeedError) -> Bool {
    let old = elements.text(of: handle)
    let isEqual = Self.equal(old.text, object.text)
    if isEqual && typedBy == definition.type?.text { return false }
    _ = try find(identityOf: object, index: entry)
    if !isEqual { try checkRoom(for: object, isNew: false) }
    let text = try makeText(object)
    let differs = !isEqual || !Self.equal(old.type, text.type)
    preserve(handle)
    exchangeText(handle, text, at: isEqual ? old.changedAt : now, log)
    return differs
  }

  private func identifyAnew(_ commit: Commit) {
    let (identifiedBy, typedBy) = (identifiedBy, typedBy)
    if identifiedBy == definition.id && typedBy == definition.type?.text { return }
    self.identifiedBy = definition.id
    self.typedBy = definition.type?.text
    commit.logStructure { [unowned self] in
      self.identifiedBy = identifiedBy
      self.typedBy = typedBy
    }
  }
}
