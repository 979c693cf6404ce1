import FeedChange
import FeedJSON

/// Applying a plan to the rows.
extension ManagedState {
  /// Applies a plan and returns the change. If it throws, the caller rolls back the logged steps.
  func apply(
    _ plan: ManagedPlan, _ rows: ManagedRows, of feed: Feed, in commit: Commit
  ) throws(FeedError) -> Change {
    let (log, now) = (commit.log, commit.tick())
    var change = plan.change(isByValue: definition.section != nil)
    removeRows(plan, change.deleted, log)
    if !change.hasSameSections { arrangeSections(plan, feed, commit) }
    /// For each entry of `added`, whether it shows another element than before.
    var isChanged = [Bool](repeating: false, count: change.added.count)
    var next = 0
    for new in plan.news {
      let isAdded = next < change.added.count && change.added[next] == new.path
      let differs = try withObject(new.entry, of: rows) { object throws(FeedError) in
        try put(new, try compact(object, index: new.entry), isAdded: isAdded, at: now, log)
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

  /// Gives a row its element, and its place if it is added. Returns whether a known row shows another element than before.
  private func put(
    _ new: ManagedPlan.NewRow, _ object: JSONView, isAdded: Bool, at now: Instant, _ log: UndoLog
  ) throws(FeedError) -> Bool {
    let (section, row) = (Int(new.path.section), Int(new.path.row))
    if let known = new.known {
      let differs = try exchange(known, object, new.entry, at: now, log)
      if isAdded { insertRow(known, section: section, at: row, key: 0, log) }
      return differs
    }
    guard try find(identityOf: object, index: new.entry) == nil else { throw notUnique(new.entry) }
    try checkRoom(for: object, isNew: true)
    let handle = add(try makeText(object), at: now, log)
    insertRow(handle, section: section, at: row, key: 0, log)
    return false
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
