extension StateMark {
  /// What a mark says of the database beside it.
  enum Verdict: Equatable {
    /// Nothing that was acknowledged is missing.
    case whole
    /// Something may be missing, as it can be after a loss of power: a new history begins.
    case cut
    /// So many batches are missing, for which there is no good reason.
    case lost(Int64)
  }

  /// - Parameters:
  ///   - mark: nil when there is none: nobody can say.
  ///   - epoch: the database's own.
  ///   - sequence: the last row of the journal that the database has or that its image covers.
  ///   - boot: the present run of the system.
  static func verdict(_ mark: StateMark?, epoch: String, sequence: Int64, boot: String) -> Verdict {
    guard let mark, mark.epoch == epoch else { return .cut }
    let mayLose = !mark.isSynced && !mark.isClean && (mark.boot.isEmpty || mark.boot != boot)
    if mayLose { return .cut }
    return sequence < mark.sequence ? .lost(mark.sequence - sequence) : .whole
  }
}
