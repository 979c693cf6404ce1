import FeedModel
import FeedSQLite
import FeedSystem

/// Verifies a database file without writing to it; it may be in use.
public enum StateCheck {
  /// What a sound file holds.
  public struct Findings: Equatable, Sendable {
    public let epoch: String
    public let schema: Int64
    /// The version of the program that wrote it last.
    public let software: String
    public let recovery: RecoveryProgress
  }

  /// Checks the file's structure, restores its image into `target` and executes its journal.
  /// - Throws: the first thing found wrong.
  public static func run(_ path: String, into target: any RecoveryTarget) throws(StorageError) -> Findings {
    // Read first: a daemon that runs meanwhile only adds to what the mark says.
    let mark = StateMarkFile.read(of: path)
    let database = try StateFile.openToRead(path)
    let (epoch, software) = try StorageError.naming(path) { () throws(SQLiteError) in
      // One state throughout, whatever is written meanwhile.
      try database.execute("BEGIN")
      return (
        try database.text("SELECT value FROM meta WHERE key = 'epoch'") ?? "",
        try database.text("SELECT value FROM meta WHERE key = 'software'") ?? ""
      )
    }
    try checkStructure(database, path)
    let sequence = try StorageError.naming(path) { () throws(SQLiteError) in try Store.lastSequence(database) }
    let verdict = StateMark.verdict(mark, epoch: epoch, sequence: sequence, boot: BootIdentity.current)
    if case .lost(let count) = verdict { throw .lost(count, path: path) }
    var recovery = Recovery(database, path: path, into: target)
    try recovery.run()
    return Findings(epoch: epoch, schema: Schema.version, software: software, recovery: recovery.progress)
  }

  private static func checkStructure(_ database: Database, _ path: String) throws(StorageError) {
    let problems = try StorageError.naming(path) { () throws(SQLiteError) in
      let check = try database.prepare("PRAGMA integrity_check(10)", isKept: false)
      var lines: [String] = []
      while try check.step() { lines.append(check.text(0)) }
      return lines
    }
    if problems != ["ok"] {
      throw StorageError(.corrupt, path: path, reason: problems.joined(separator: "; "))
    }
  }
}
