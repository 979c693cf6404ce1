extension RowStore {
  /// Takes out of `updated` the rows whose element and type are, after all steps since `mark`, what they were before them.
  func dropUnchanged(from updated: inout [IndexPath], _ log: UndoLog, since mark: UndoLog.Mark) {
    if updated.isEmpty { return }
    let store = Unmanaged.passUnretained(self).toOpaque()
    var before: [UInt32: UInt] = [:]
    for entry in log.entries[mark.entries...] where entry.step == .exchangedText && entry.state.toOpaque() == store {
      if before[entry.handle] == nil { before[entry.handle] = entry.text }
    }
    updated.removeAll { path in
      let handle = sections[Int(path.section)].rows[Int(path.row)]
      guard let first = before[handle].flatMap(ElementText.init(bitPattern:)) else { return true }
      let now = elements.text(of: handle)
      return Self.equal(first.text, now.text) && Self.equal(first.type, now.type)
    }
  }
}
