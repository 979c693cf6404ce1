import FeedModel
import FeedSQLite
import FeedSystem

/// Verifies a database file without writing to it. The file may be in use.
public enum StateCheck {
  /// The facts about a valid file.
  public struct Findings: Equatable, Sendable {
    public let epoch: String
    /// Whether a start would continue the epoch.
    public let beginning: StateBeginning
    public let schema: Int64
    /// The version of the program that last wrote the file.
    public let software: String
    public let recovery: RecoveryProgress
  }

  /// Checks the structure and the checksums of the file, restores its image into `target` and replays its journal.
  /// - Throws: the first fault, including every fault that would prevent a start.
  public static func run(_ path: String, into target: any RecoveryTarget) throws(StorageError) -> Findings {
    let before = Stamp(path)
    let reading = StateFile.Reading.quiet(path)
    let opened = try StateFile.openToRead(path, reading)
    let database = opened.database
    // Reads one state throughout, even if the file is written concurrently.
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

  /// The stamps of the files. A file that no daemon uses is read without locks; equal stamps before and after show that
  /// it was not written meanwhile.
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
