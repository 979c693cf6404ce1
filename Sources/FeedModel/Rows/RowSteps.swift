/// The logged primitives. Each makes one step on rows or elements and logs how to undo it.
extension RowStore {
  private var reference: Unmanaged<RowStore> { .passUnretained(self) }

  func insertRow(_ handle: UInt32, section: Int, at row: Int, key: UInt64, _ log: UndoLog) {
    sections[section].rows.insert(handle, at: row, key: key)
    didInsertRow(handle, section: section, at: row, log)
  }

  /// - Parameter gap: a gap of the section, found since its rows changed last.
  func insertRow(_ handle: UInt32, section: Int, into gap: PositionTree.Gap, key: UInt64, _ log: UndoLog) {
    sections[section].rows.insert(handle, into: gap, key: key)
    didInsertRow(handle, section: section, at: gap.row, log)
  }

  @inline(__always)
  private func didInsertRow(_ handle: UInt32, section: Int, at row: Int, _ log: UndoLog) {
    var entry = UndoLog.Entry(
      step: .insertedRow, section: UInt32(section), row: UInt32(row), handle: handle, state: reference)
    if let keyed { entry.other = keyed.didInsert(handle, at: row, log) }
    log.append(entry)
  }

  func removeRow(section: Int, at row: Int, _ log: UndoLog) {
    let rows = sections[section].rows
    let key = rows.keyed ? rows.key(at: row) : 0
    let handle = rows.remove(at: row)
    var entry = UndoLog.Entry(
      step: .removedRow, section: UInt32(section), row: UInt32(row), handle: handle, key: key, state: reference)
    if let keyed { entry.other = keyed.didRemove(handle, at: row, log) }
    log.append(entry)
  }

  /// Logs the removal of a row before a bulk removal. Rows must be logged in descending order.
  func noteRemoval(section: Int, at row: Int, _ log: UndoLog) {
    let rows = sections[section].rows
    var entry = UndoLog.Entry(
      step: .removedRow, section: UInt32(section), row: UInt32(row), handle: rows[row],
      key: rows.keyed ? rows.key(at: row) : 0, state: reference)
    if let keyed { entry.other = keyed.willRemove(entry.handle, log) }
    log.append(entry)
  }

  func rekeyRow(section: Int, at row: Int, handle: UInt32, key: UInt64, _ log: UndoLog) {
    let rows = sections[section].rows
    let before = rows.key(at: row)
    guard before != key || keyed.map({ !$0.isPrepared(for: handle) }) ?? false else { return }
    rows.replace(at: row, with: handle, key: key)
    var entry = UndoLog.Entry(
      step: .rekeyedRow, section: UInt32(section), row: UInt32(row), handle: handle, key: before, state: reference)
    if let keyed { entry.other = keyed.didRekey(handle, at: row, log) }
    log.append(entry)
  }

  func addElement(_ text: ElementText, at now: Instant, _ log: UndoLog) -> UInt32 {
    let handle = elements.add(text, at: now)
    didAdd(handle)
    deadlines?.insert(handle)
    log.append(.init(step: .addedElement, handle: handle, state: reference))
    return handle
  }

  func removeElement(_ handle: UInt32, _ log: UndoLog) {
    let newer = elements.newer(than: handle)
    willRemove(handle)
    deadlines?.remove(handle)
    elements.retire(handle)
    log.append(.init(step: .removedElement, handle: handle, other: newer, state: reference))
  }

  func exchangeText(_ handle: UInt32, _ text: ElementText, at now: Instant, _ log: UndoLog) {
    text.changedAt = now
    let before = elements.exchange(handle, text)
    deadlines?.didExchange(handle)
    log.append(.init(step: .exchangedText, handle: handle, text: before.bitPattern, state: reference))
  }

  /// Makes the element the most recently changed one.
  func touch(_ handle: UInt32, at now: Instant, _ log: UndoLog) {
    let newer = elements.newer(than: handle)
    let changedAt = elements.text(of: handle).changedAt
    elements.reorder(handle, before: ElementTable.none, changedAt: now)
    log.append(
      .init(step: .reordered, handle: handle, other: newer, at: changedAt, state: reference))
  }

  /// Undoes one step. All later entries have already been undone.
  func undo(_ entry: UndoLog.Entry) {
    switch entry.step {
    case .insertedRow:
      _ = sections[Int(entry.section)].rows.remove(at: Int(entry.row))
      keyed?.undoInsertion(of: entry.handle, at: Int(entry.row))
    case .removedRow:
      sections[Int(entry.section)].rows.insert(entry.handle, at: Int(entry.row), key: entry.key)
      keyed?.undoRemoval(of: entry.handle, from: entry.other, at: Int(entry.row))
    case .rekeyedRow:
      sections[Int(entry.section)].rows.replace(at: Int(entry.row), with: entry.handle, key: entry.key)
      keyed?.undoRekey(of: entry.handle, from: entry.other, at: Int(entry.row))
    case .addedElement:
      willRemove(entry.handle)
      deadlines?.remove(entry.handle)
      elements.retire(entry.handle)
      elements.free(entry.handle)
    case .removedElement:
      elements.revive(entry.handle, before: entry.other)
      didAdd(entry.handle)
      deadlines?.insert(entry.handle)
    case .exchangedText:
      guard let text = ElementText(bitPattern: entry.text) else { return }
      preserve(entry.handle)
      elements.exchange(entry.handle, text).release()
      deadlines?.didExchange(entry.handle)
    case .reordered:
      elements.reorder(entry.handle, before: entry.other, changedAt: entry.at)
    }
  }

  /// Releases the version that a step replaced, after the commit has taken effect.
  func finish(_ entry: UndoLog.Entry) {
    switch entry.step {
    case .exchangedText: ElementText(bitPattern: entry.text)?.release()
    case .removedElement: elements.free(entry.handle)
    default: break
    }
  }

  /// Lets unfinished snapshots capture the current version before it is exchanged.
  func preserve(_ handle: UInt32) {
    for section in sections.indices where sections[section].rows.hasSnapshots {
      sections[section].rows.contentWillChange(of: handle)
    }
  }
}
