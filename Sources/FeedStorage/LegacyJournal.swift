import FeedJSON
import FeedModel
import FeedSQLite
import FeedSystem

/// Reads batches from the table `journal`, the log of schemas 1 and 2, and verifies each row.
struct JournalReader: ~Copyable {
  private let rows: Statement
  private let path: String
  /// Rows up to this one may be without a checksum.
  private let unchecked: Int64
  /// The rules by which all batches were executed.
  let rules: Int
  private var limits: StoredLimits
  /// The last row that was read.
  private(set) var last: Int64
  /// The bytes of a batch that has several rows.
  private var whole = ByteBuffer()

  /// - Parameters:
  ///   - last: the row before the first row to read.
  ///   - version: the version of the file's schema.
  init(_ database: Database, after last: Int64, version: Int64, _ facts: StateFacts) throws(StorageError) {
    let checksum = version >= 2 ? "checksum" : "NULL"
    path = database.path
    rows = try database.reading(
      "SELECT seq, more, revision, at, limits, requests, \(checksum) FROM journal WHERE seq > ? ORDER BY seq", last)
    self.last = last
    unchecked = version >= 2 ? facts.unchecked : .max
    rules = Int(clamping: facts.rules)
    limits = StoredLimits(database)
  }

  /// Returns the next batch and the row of its limits; nil at the end. The batch is valid until the next call.
  mutating func next() throws(StorageError) -> (batch: LogBatch, limits: Int64)? {
    guard try nextRow() else { return nil }
    var more = rows.integer(1)
    if more == 0 { return (batch(rows.blobBytes(5)), rows.integer(4)) }
    whole.removeAll(keepingCapacity: true)
    whole.append(rows.blobBytes(5))
    while more > 0 {
      guard try nextRow(), rows.integer(1) == more - 1 else {
        throw StorageError(.doesNotFit, path: path, reason: "the batch with row \(last) of the journal has no end")
      }
      more -= 1
      whole.append(rows.blobBytes(5))
    }
    return (batch(whole.bytes), rows.integer(4))
  }

  private mutating func nextRow() throws(StorageError) -> Bool {
    guard try rows.next(path) else { return false }
    guard rows.integer(0) == last + 1 else {
      throw StorageError(
        .doesNotFit, path: path, reason: "row \(last + 1) of the journal is missing; row \(rows.integer(0)) follows")
    }
    last += 1
    try check()
    return true
  }

  private mutating func check() throws(StorageError) {
    if rows.type(of: 6) == .null && last <= unchecked { return }
    let row = JournalRow(
      row: last, more: rows.integer(1), revision: rows.unsigned(2), moment: rows.unsigned(3), limits: rows.integer(4))
    let computed = row.checksum(rows.blobBytes(5), limits: try limits.text(of: row.limits).checksum)
    guard rows.type(of: 6) == .integer, rows.integer(6) == computed else {
      throw StorageError(.corrupt, path: path, reason: "row \(last) of the journal does not match its checksum")
    }
  }

  private func batch(_ requests: UnsafeRawBufferPointer) -> LogBatch {
    LogBatch(
      number: UInt64(last), at: Instant(nanoseconds: rows.unsigned(3)), revision: rows.unsigned(2), frames: requests)
  }
}

/// The columns of a journal row besides its requests.
struct JournalRow {
  /// Its number.
  let row: Int64
  /// The number of further rows of the same batch.
  let more: Int64
  /// The daemon's revision before the batch, which the previous batch led to.
  let revision: UInt64
  /// The time at which the batch is executed, in nanoseconds.
  let moment: UInt64
  /// The row of the limits under which it is executed.
  let limits: Int64

  /// - Parameter text: the checksum of the limits' text.
  func checksum(_ requests: UnsafeRawBufferPointer, limits text: Int64) -> Int64 {
    var checksum = Checksum()
    checksum.add(row)
    checksum.add(more)
    checksum.add(revision)
    checksum.add(moment)
    checksum.add(limits)
    checksum.add(text)
    checksum.add(requests)
    return checksum.value
  }
}

extension JournalReader {
  /// The last row of the journal, including rows that an image covers.
  static func lastRow(in database: Database) throws(SQLiteError) -> Int64 {
    max(
      try database.integer("SELECT max(seq) FROM journal") ?? 0,
      try database.integer("SELECT max(journal) FROM image") ?? 0)
  }
}

/// A database of schema 1 or 2, whose log is the table `journal`. It is read once, and replaced by an image and segments.
struct JournalDatabase {
  let database: Database
  let version: Int64
  let facts: StateFacts
  let beginning: StateBeginning

  /// Milliseconds to wait for a lock of another program.
  private static let patience: Int32 = 2000

  /// How to open the file.
  enum Access {
    /// To replace it.
    case write
    /// With locks: a daemon may use the file, or start meanwhile. SQLite records its readers in the index of the log.
    case locked
    /// Without locks and without writing any file. No daemon may use the file.
    case unlocked

    /// Returns `unlocked` unless a daemon uses the file at `path`. A daemon locks the index of its log.
    /// - Precondition: this process has no other connection to the file.
    static func quiet(_ path: String) -> Access {
      FilePath.size(of: path + "-wal") != nil && RecordLocks.areHeld(on: path + "-shm") ? .locked : .unlocked
    }
  }

  /// Opens the file with its log. Refuses a damaged or incomplete file without changing it.
  init(_ path: String, _ access: Access, boot: String) throws(StorageError) {
    let mark = StateMark.read(of: path)
    let hasLog = FilePath.size(of: path + "-wal") != nil
    let way: Database.Access =
      access == .write ? .readWrite : !hasLog ? .immutable : access == .locked ? .readOnly : .quiescent
    database = try StorageError.naming(path) { () throws(SQLiteError) in
      try Database(path: path, access: way, busyTimeout: Self.patience)
    }
    database.keepLogWhenClosing()
    version = try StateFile.recognise(database)
    facts = try StateFacts(database, version: version)
    let last = try Self.lastRow(in: database)
    guard let epoch = facts.epoch else {
      try Self.refuseEmptied(path, "without content", mark, boot: boot)
      guard last == 0 else {
        throw StorageError(
          .corrupt, path: path, reason: "the database has \(counted(last, "row")) of journal and no epoch")
      }
      beginning = .new
      return
    }
    try Self.refuseOtherRules(database, facts)
    if facts.isBackup {
      beginning = .backup
      return
    }
    switch StateMark.verdict(mark, epoch: epoch, sequence: last, boot: boot) {
    case .whole: beginning = .continued
    case .cut: beginning = .cut
    case .lost(let count): throw .lost(count, path: path)
    }
  }

  static func lastRow(in database: Database) throws(StorageError) -> Int64 {
    try StorageError.naming(database.path) { () throws(SQLiteError) in try JournalReader.lastRow(in: database) }
  }

  /// Refuses a journal that was written under unknown rules, unless nothing must be replayed: the same requests might
  /// have another result.
  private static func refuseOtherRules(_ database: Database, _ facts: StateFacts) throws(StorageError) {
    if ExecutionRules.known.contains(Int(clamping: facts.rules)) { return }
    let waiting = try StorageError.naming(database.path) { () throws(SQLiteError) in
      try database.integer(
        """
        SELECT count(*) FROM journal WHERE seq > (SELECT ifnull(max(journal), 0) FROM image WHERE complete)
        """) ?? 0
    }
    guard waiting > 0 else { return }
    throw .otherRules(counted(waiting, "row"), of: facts.software, rules: facts.rules, path: database.path)
  }

  /// Refuses a missing or empty database file if a WAL or a mark shows that there was content.
  static func refuseEmptied(_ path: String, boot: String) throws(StorageError) {
    guard FilePath.size(of: path) ?? 0 == 0 else { return }
    let what = FilePath.size(of: path) == nil ? "missing" : "empty"
    try refuseEmptied(path, what, StateMark.read(of: path), boot: boot)
    if FilePath.size(of: path + "-wal") ?? 0 > 0 {
      throw StorageError(.lostRows, path: path, reason: "the database is \(what), but its log \(path)-wal is not")
    }
  }

  private static func refuseEmptied(
    _ path: String, _ what: String, _ mark: StateMark?, boot: String
  ) throws(StorageError) {
    guard let mark, case .lost(let count) = StateMark.verdict(mark, epoch: mark.epoch, sequence: 0, boot: boot)
    else { return }
    throw StorageError(
      .lostRows, path: path, reason: "the database is \(what), but it had \(counted(count, "row")) of journal")
  }

  /// Moves SQLite's log into the file, so that no part of it is taken for one of the image that replaces the file.
  func emptyLog() throws(StorageError) {
    guard try StorageError.naming(database.path, { () throws(SQLiteError) in try database.emptyLog() }) else {
      throw StorageError(.busy, path: database.path, reason: "another program reads the database")
    }
  }

  /// Removes the files that belonged to the database which was replaced.
  static func removeFiles(beside path: String, _ files: any LogDirectory) {
    for end in ["-wal", "-shm", "-mark"] { try? files.remove(FilePath.name(of: path) + end) }
  }
}

extension StorageError {
  /// The error of a log that another version of the program must replay.
  static func otherRules(_ amount: String, of software: String?, rules: Int64, path: String) -> StorageError {
    StorageError(
      .otherRules, path: path,
      reason:
        "feedd \(software ?? "of another version") left \(amount) of log that need its rules (\(rules)), and this one "
        + "knows those up to \(ExecutionRules.current)")
  }
}

/// The last acknowledged row of a table `journal`, kept in a file beside the database by daemons of schemas 1 and 2.
///
/// SQLite accepts the valid part of a damaged WAL as the whole WAL. The mark shows that more was written or, after a
/// power failure, that more may have been written.
struct StateMark: Equatable {
  /// The epoch to which `sequence` belongs.
  var epoch: String
  /// The boot during which it was written (`BootIdentity`).
  var boot: String
  /// Whether batches were synced before they were acknowledged.
  var isSynced: Bool
  /// Whether the daemon stopped cleanly, with everything synced.
  var isClean = false
  /// The last row of the journal that was acknowledged.
  var sequence: Int64

  private static let title = "feedd-mark 1"

  /// The result of comparing a mark with its database.
  enum Verdict: Equatable {
    /// No acknowledged row is missing.
    case whole
    /// Acknowledged rows may be missing after a power failure: a new epoch begins.
    case cut
    /// This many acknowledged rows are missing, and no power failure explains it.
    case lost(Int64)
  }

  /// Compares a mark with a database.
  /// - Parameters:
  ///   - mark: nil if there is none.
  ///   - epoch: the epoch of the database.
  ///   - sequence: the last journal row that the database holds or its image covers.
  ///   - boot: the identity of the current boot.
  static func verdict(_ mark: StateMark?, epoch: String, sequence: Int64, boot: String) -> Verdict {
    guard let mark, mark.epoch == epoch else { return .cut }
    let mayLose = !mark.isSynced && !mark.isClean && (mark.boot.isEmpty || mark.boot != boot)
    if mayLose { return .cut }
    return sequence < mark.sequence ? .lost(mark.sequence - sequence) : .whole
  }
}

extension StateMark {
  /// Parses `text`; nil if it is not a mark.
  init?(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.count >= 6, lines[0] == Self.title else { return nil }
    var values: [Substring: Substring] = [:]
    for line in lines.dropFirst() {
      guard let space = line.firstIndex(of: " ") else { continue }
      values[line[..<space]] = line[line.index(after: space)...]
    }
    guard let epoch = values["epoch"], let boot = values["boot"],
      let isSynced = values["synced"].flatMap({ Bool(String($0)) }),
      let isClean = values["clean"].flatMap({ Bool(String($0)) }),
      let sequence = values["sequence"].flatMap({ Int64($0) })
    else { return nil }
    self.init(epoch: String(epoch), boot: String(boot), isSynced: isSynced, isClean: isClean, sequence: sequence)
  }

  static func path(of database: String) -> String { database + "-mark" }

  /// Reads the mark beside a database; nil if there is none or it cannot be read.
  static func read(of database: String) -> StateMark? {
    guard let bytes = try? SmallFile.read(path(of: database), limit: 4096) else { return nil }
    return StateMark(String(decoding: bytes, as: UTF8.self))
  }
}
