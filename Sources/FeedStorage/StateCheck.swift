import FeedJSON
import FeedModel
import FeedSQLite
import FeedSystem
import Glibc

/// Verifies a state directory without writing to it. A daemon may use it.
public enum StateCheck {
  /// The facts about a valid state.
  public struct Findings: Equatable, Sendable {
    public let epoch: String
    /// Whether a start would continue the epoch.
    public let beginning: StateBeginning
    public let schema: Int64
    /// The version of the program that last wrote to the state.
    public let software: String
    public let recovery: RecoveryProgress
    /// The segments of the log, in order.
    public let segments: [Segment]
    /// The moment of the image, in nanoseconds since 1970; 0 without an image.
    public let imagedAt: UInt64
  }

  public struct Segment: Equatable, Sendable {
    public let name: String
    public let bytes: Int
    public let firstBatch: UInt64
  }

  /// Checks the structure and the checksums of all files, restores the image into a target and replays the log.
  /// - Parameter makeTarget: returns a new target; it is called again if a daemon changed the files meanwhile.
  /// - Throws: the first fault, including every fault that would prevent a start.
  public static func run<Target: RecoveryTarget>(
    _ directory: String, into makeTarget: () -> Target
  ) throws(StorageError) -> (found: Findings, target: Target) {
    try LiveState.read(directory) { () throws(StorageError) in
      let target = makeTarget()
      return (try check(directory, target), target)
    }
  }

  private static func check(_ directory: String, _ target: any RecoveryTarget) throws(StorageError) -> Findings {
    let path = StateFile.path(in: directory)
    let reading = JournalDatabase.Access.quiet(path)
    let before = LiveState.Stamp(directory)
    let state = try stored(in: directory, reading)
    guard state.database != nil || !state.chain.segments.isEmpty else {
      throw .absent(directory)
    }
    try state.refuseLinked()
    if let database = state.database {
      // Reads one state throughout, even if the file is written concurrently.
      try StorageError.naming(path) { () throws(SQLiteError) in try database.execute("BEGIN") }
      try checkStructure(database, path)
    }
    var recovery = Recovery(state, into: target)
    try recovery.run()
    if state.journal != nil {
      guard reading == .locked || before == LiveState.Stamp(directory) else {
        throw StorageError(.busy, path: path, reason: "a daemon was started during the check")
      }
    }
    return Findings(
      epoch: state.epoch ?? "", beginning: state.beginning, schema: state.schema, software: state.software ?? "",
      recovery: recovery.progress,
      segments: state.chain.segments.map {
        Segment(name: $0.name, bytes: $0.header.fileBytes, firstBatch: $0.header.firstBatch)
      },
      imagedAt: recovery.image.at)
  }

  /// The facts about the files; those of a member of a group are an image, and its log is elsewhere.
  private static func stored(
    in directory: String, _ access: JournalDatabase.Access
  ) throws(StorageError) -> StoredState {
    if let image = try StateBackup.imageOfGroup(in: directory), let state = try StoredState(imageIn: directory) {
      _ = try ImageNote.read(image)
      return state
    }
    return try StoredState(
      directory, SystemDirectory(directory, isReadOnly: true), access: access, boot: BootIdentity.current)
  }

  private static func checkStructure(_ database: Database, _ path: String) throws(StorageError) {
    let problems = try StorageError.naming(path) { () throws(SQLiteError) in
      let check = try database.prepare("PRAGMA integrity_check(10)", isKept: false)
      var lines: [String] = []
      while try check.step() { lines.append(check.text(0)) }
      return lines
    }
    if problems != ["ok"] { throw StorageError(.corrupt, path: path, reason: problems.joined(separator: "; ")) }
  }
}

/// Reads the files of a state directory while a daemon may write and replace them.
enum LiveState {
  /// The most attempts: each may meet another change.
  private static let attempts = 20
  /// Microseconds between two attempts.
  private static let pause: UInt32 = 2000

  /// Calls `body`, and again if it failed because a daemon changed the files meanwhile: a batch may be half written, and a segment
  /// removed, at the moment at which they are read.
  /// - Parameter isCancelled: called after each failure; if it returns true, there is no other attempt.
  static func read<Result>(
    _ directory: String, unless isCancelled: () -> Bool = { false }, _ body: () throws(StorageError) -> Result
  ) throws(StorageError) -> Result {
    var attempt = 0
    while true {
      attempt += 1
      let before = Stamp(directory)
      do throws(StorageError) {
        return try body()
      } catch {
        // The clock of the file system may be too coarse for the stamps of the first attempt.
        guard attempt < attempts, isPassing(error), attempt == 1 || before != Stamp(directory), !isCancelled() else {
          throw error
        }
        usleep(pause)
      }
    }
  }

  /// Whether a change of the files may be the cause of an error. Images and databases of older schemas are never written in place.
  private static func isPassing(_ error: StorageError) -> Bool {
    switch error.kind {
    case .corrupt, .foreign, .newerVersion, .otherRules, .forbidden: false
    default: true
    }
  }

  /// The stamps of the files. Equal stamps before and after show that nothing was written meanwhile.
  struct Stamp: Equatable {
    private let files: [String: FileStamp]

    init(_ directory: String) {
      var files: [String: FileStamp] = [:]
      for name in (try? SystemDirectory(directory).names()) ?? []
      where name.hasPrefix("log-") || name.hasPrefix(StateFile.name) {
        files[name] = FileStamp(at: "\(directory)/\(name)")
      }
      self.files = files
    }
  }
}
