extension RowStore {
  /// Takes out of `updated` the rows whose element is, after all steps since `mark`, what it was before them.
  func dropUnchanged(from updated: inout [IndexPath], _ log: UndoLog, since mark: UndoLog.Mark) {
    if updated.isEmpty { return }
    var before: [UInt32: UInt] = [:]
    let mine = Unmanaged.passUnretained(self as RowStore).toOpaque()
    for entry in log.entries[mark.entries...] where entry.step == .exchangedText && entry.state.toOpaque() == mine {
      if before[entry.handle] == nil { before[entry.handle] = entry.text }
    }
    updated.removeAll { path in
      let handle = sections[Int(path.section)].rows[Int(path.row)]
      guard let first = before[handle].flatMap(ElementText.init(bitPattern:)) else { return false }
      return Self.equal(first.text, elements.text(of: handle).text)
    }
  }
}
