import FeedModel
import FeedSQLite
import FeedSystem

/// Verifies a database file without writing to it; it may be in use.
public enum StateCheck {
  /// What a sound file holds.
  public struct Findings: Equatable, Sendable {
    public let epoch: String
    /// Whether a start would continue the epoch.
    public let beginning: StateBeginning
    public let schema: Int64
    /// The version of the program that wrote it last.
    public let software: String
    public let recovery: RecoveryProgress
  }

  /// Checks the file's structure and checksums, restores its image into `target` and executes its journal.
  /// - Throws: the first fault found; everything that a start would refuse is refused here.
  public static func run(_ path: String, into target: any RecoveryTarget) throws(StorageError) -> Findings {
    let before = Stamp(path)
    let reading = StateFile.Reading.quiet(path)
    let opened = try StateFile.openToRead(path, reading)
    let database = opened.database
    // One state throughout, whatever is written meanwhile.
    try StorageError.naming(path) { () throws(SQLiteError) in try database.execute("BEGIN") }
    try checkStructure(database, path)
    var recovery = Recovery(opened, into: target)
    try recovery.run()
    guard reading == .locked || before == Stamp(path) else {
      throw StorageError(.busy, path: path, reason: "a daemon was started during the check")
    }
    return Findings(
      epoch: opened.facts.epoch ?? "", beginning: opened.beginning, schema: opened.version,
      software: opened.facts.software ?? "", recovery: recovery.progress)
  }

  /// A file that no daemon uses is read without locks; equal stamps mean that it was not written meanwhile.
  private struct Stamp: Equatable {
    let file: FileStamp?
    let log: FileStamp?

    init(_ path: String) {
      file = FileStamp(at: path)
      log = FileStamp(at: path + "-wal")
    }
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
