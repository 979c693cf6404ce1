/// The logged primitives: each does one thing to rows or elements and notes how to undo it.
extension CollectionState {
  private var reference: Unmanaged<CollectionState> { .passUnretained(self) }

  func insertRow(_ handle: UInt32, bin: Int, at row: Int, key: UInt64, _ log: inout UndoLog) {
    bins[bin].section.rows.insert(handle, at: row, key: key)
    log.append(
      .init(step: .insertedRow, section: UInt32(bin), row: UInt32(row), handle: handle, state: reference))
  }

  func removeRow(bin: Int, at row: Int, _ log: inout UndoLog) {
    let rows = bins[bin].section.rows
    let key = bins[bin].order >= 0 ? rows.key(at: row) : 0
    let handle = rows.remove(at: row)
    log.append(
      .init(step: .removedRow, section: UInt32(bin), row: UInt32(row), handle: handle, key: key, state: reference))
  }

  func rekeyRow(bin: Int, at row: Int, handle: UInt32, key: UInt64, _ log: inout UndoLog) {
    let rows = bins[bin].section.rows
    let before = rows.key(at: row)
    guard before != key else { return }
    rows.replace(at: row, with: handle, key: key)
    log.append(
      .init(step: .rekeyedRow, section: UInt32(bin), row: UInt32(row), handle: handle, key: before, state: reference))
  }

  func addElement(_ text: ElementText, hash: UInt32, at now: Instant, _ log: inout UndoLog) -> UInt32 {
    let handle = elements.add(text, hash: hash, at: now)
    index.insert(handle, hash: hash)
    log.append(.init(step: .addedElement, handle: handle, state: reference))
    return handle
  }

  func removeElement(_ handle: UInt32, _ log: inout UndoLog) {
    let record = elements.records[Int(handle)]
    index.remove(handle, hash: record.hash)
    elements.retire(handle)
    log.append(.init(step: .removedElement, handle: handle, other: record.newer, state: reference))
  }

  func exchangeText(_ handle: UInt32, _ text: ElementText, _ log: inout UndoLog) {
    let before = elements.exchange(handle, text)
    log.append(.init(step: .exchangedText, handle: handle, text: before.bitPattern, state: reference))
  }

  /// Makes the element the one that changed last; only collections that evict need the order.
  func touch(_ handle: UInt32, at now: Instant, _ log: inout UndoLog) {
    guard definition.retain != nil else { return }
    let record = elements.records[Int(handle)]
    elements.reorder(handle, before: ElementTable.none, changedAt: now)
    log.append(
      .init(step: .reordered, handle: handle, other: record.newer, at: record.changedAt, state: reference))
  }

  /// Undoes one step; everything logged after it has been undone already.
  func undo(_ entry: UndoLog.Entry) {
    switch entry.step {
    case .insertedRow:
      _ = bins[Int(entry.section)].section.rows.remove(at: Int(entry.row))
    case .removedRow:
      bins[Int(entry.section)].section.rows.insert(entry.handle, at: Int(entry.row), key: entry.key)
    case .rekeyedRow:
      bins[Int(entry.section)].section.rows.replace(at: Int(entry.row), with: entry.handle, key: entry.key)
    case .addedElement:
      index.remove(entry.handle, hash: elements.records[Int(entry.handle)].hash)
      elements.retire(entry.handle)
      elements.free(entry.handle)
    case .removedElement:
      elements.revive(entry.handle, before: entry.other)
      index.insert(entry.handle, hash: elements.records[Int(entry.handle)].hash)
    case .exchangedText:
      guard let text = ElementText(bitPattern: entry.text) else { return }
      preserve(entry.handle)
      elements.exchange(entry.handle, text).release()
    case .reordered:
      elements.reorder(entry.handle, before: entry.other, changedAt: entry.at)
    }
  }

  /// The step is final: lets go of what it replaced.
  func finish(_ entry: UndoLog.Entry) {
    switch entry.step {
    case .exchangedText: ElementText(bitPattern: entry.text)?.release()
    case .removedElement: elements.free(entry.handle)
    default: break
    }
  }

  /// Lets live snapshots take the version they still have to send, before it is exchanged.
  func preserve(_ handle: UInt32) {
    for bin in bins where bin.section.rows.hasSnapshots && bin.section.rows.contains(handle) {
      bin.section.rows.contentWillChange(of: handle)
    }
  }
}
