import FeedJSON
import FeedSQLite
import FeedSystem

/// Whether the stored history continues or a new epoch begins.
public enum StateBeginning: Equatable, Sendable {
  /// There was no stored history.
  case new
  /// All acknowledged changes are stored.
  case continued
  /// The last changes before a power failure may be missing, or the mark is missing: a new epoch begins.
  case cut
  /// The file is a restored backup: a new epoch begins.
  case backup
  /// A batch of the journal is skipped, named by its last row: a new epoch begins.
  case skipped(Int64)
}

/// The database file of a state directory: opens, identifies and migrates it.
public enum StateFile {
  /// The name of the file in the state directory.
  public static let name = "feedd.sqlite"
  /// Milliseconds to wait for a lock of another program.
  private static let patience: Int32 = 2000

  /// The facts about a file before its content is used.
  struct Opened {
    let database: Database
    /// The version of the schema; 0 if the file is new.
    let version: Int64
    let facts: StateFacts
    fileprivate(set) var beginning: StateBeginning

    /// Lets recovery skip the batch that ends with a row of the journal.
    /// - Throws: if there is no such batch.
    mutating func skip(_ row: Int64) throws(StorageError) {
      let (last, count) = try StorageError.naming(database.path) { () throws(SQLiteError) in
        guard version > 0 else { return (Int64(0), Int64(0)) }
        return (
          try Journal.lastRow(in: database),
          try database.integer(
            """
            SELECT count(*) FROM journal WHERE seq = \(row) AND more = 0
              AND seq > (SELECT ifnull(max(journal), 0) FROM image WHERE complete)
            """) ?? 0
        )
      }
      guard count == 1 else {
        throw StorageError(
          .noSuchBatch, path: database.path,
          reason: "no batch to execute ends with row \(row) of the journal, whose last row is \(last)")
      }
      beginning = .skipped(row)
    }
  }

  /// Opens the file for writing, and creates it if it is missing. Refuses a foreign, newer, damaged or incomplete file
  /// without changing it.
  static func openToWrite(_ path: String, boot: String, vfs: String?) throws(StorageError) -> Opened {
    let mark = StateMarkFile.read(of: path)
    try refuseEmptied(path, mark, boot: boot)
    try refuseLinked(path)
    let database = try StorageError.naming(path) { () throws(SQLiteError) in
      try Database(path: path, access: .create, busyTimeout: Checkpoints.busyTimeout, vfs: vfs)
    }
    database.keepLogWhenClosing()
    return try judge(database, mark, boot: boot)
  }

  /// How to read a file without creating one beside it.
  enum Reading {
    /// With locks: a daemon may use the file, or start meanwhile. SQLite records its readers in the index of the log.
    case locked
    /// Without locks and without writing any file. No daemon may use the file.
    case unlocked

    /// Returns `unlocked` unless a daemon uses the file at `path`. A daemon locks the index of its log.
    /// - Precondition: this process has no other connection to the file.
    static func quiet(_ path: String) -> Reading {
      FileSize.of(path + "-wal") != nil && RecordLocks.areHeld(on: path + "-shm") ? .locked : .unlocked
    }
  }

  /// Opens the file for reading, without creating any file.
  static func openToRead(_ path: String, _ reading: Reading = .locked) throws(StorageError) -> Opened {
    let (mark, boot) = (StateMarkFile.read(of: path), BootIdentity.current)
    try refuseEmptied(path, mark, boot: boot)
    guard let size = FileSize.of(path) else {
      throw StorageError(.absent, path: path, reason: "there is no state here")
    }
    // SQLite would remove the log of an empty file.
    guard size > 0 else { throw StorageError(.absent, path: path, reason: "the database is empty") }
    // A running daemon has a WAL. Without one, opening the database would create it.
    let hasLog = FileSize.of(path + "-wal") != nil
    let access: Database.Access = !hasLog ? .immutable : reading == .locked ? .readOnly : .quiescent
    let database = try StorageError.naming(path) { () throws(SQLiteError) in
      try Database(path: path, access: access, busyTimeout: patience)
    }
    database.keepLogWhenClosing()
    let opened = try judge(database, mark, boot: boot)
    if opened.version == 0 || opened.facts.epoch == nil {
      throw StorageError(.absent, path: path, reason: "the database is empty")
    }
    return opened
  }

  /// Reads the facts about the file, before anything is written.
  private static func judge(
    _ database: Database, _ mark: StateMark?, boot: String
  ) throws(StorageError) -> Opened {
    let path = database.path
    let version = try recognise(database)
    let facts = version == 0 ? StateFacts() : try StateFacts(database, version: version)
    guard let epoch = facts.epoch else {
      try refuseEmptied(path, "without content", mark, boot: boot)
      let rows = version == 0 ? 0 : try lastRow(in: database)
      guard rows == 0 else {
        throw StorageError(
          .corrupt, path: path, reason: "the database has \(counted(rows, "row")) of journal and no epoch")
      }
      return Opened(database: database, version: version, facts: facts, beginning: .new)
    }
    try refuseOtherRules(database, facts)
    let sequence = try lastRow(in: database)
    let beginning: StateBeginning
    if facts.isBackup {
      beginning = .backup
    } else {
      switch StateMark.verdict(mark, epoch: epoch, sequence: sequence, boot: boot) {
      case .whole: beginning = .continued
      case .cut: beginning = .cut
      case .lost(let count): throw .lost(count, path: path)
      }
    }
    return Opened(database: database, version: version, facts: facts, beginning: beginning)
  }

  private static func lastRow(in database: Database) throws(StorageError) -> Int64 {
    try StorageError.naming(database.path) { () throws(SQLiteError) in try Journal.lastRow(in: database) }
  }

  /// Refuses a journal that was written under other rules, unless nothing must be replayed: the same requests might
  /// have another result.
  private static func refuseOtherRules(_ database: Database, _ facts: StateFacts) throws(StorageError) {
    if facts.rules == Schema.rules { return }
    let waiting = try StorageError.naming(database.path) { () throws(SQLiteError) in
      try database.integer(
        """
        SELECT count(*) FROM journal WHERE seq > (SELECT ifnull(max(journal), 0) FROM image WHERE complete)
        """) ?? 0
    }
    guard waiting > 0 else { return }
    throw StorageError(
      .otherRules, path: database.path,
      reason:
        "feedd \(facts.software ?? "of another version") left \(counted(waiting, "row")) of journal that need its rules "
        + "(\(facts.rules)), and this one has others (\(Schema.rules))")
  }

  /// Refuses a database file with several names. Another daemon could use it by another name: the lock of a daemon is that
  /// of its directory, and SQLite's log belongs to a name.
  private static func refuseLinked(_ path: String) throws(StorageError) {
    if FileIdentity(at: path)?.isSymbolicLink == true {
      throw StorageError(.redirected, path: path, reason: "the database file is a symbolic link")
    }
    guard let count = FileNames.count(of: path), count > 1 else { return }
    throw StorageError(.linked, path: path, reason: "the database file has \(count) names")
  }

  /// Refuses a missing or empty database file if a WAL or a mark shows that there was content. SQLite would start over
  /// and delete the WAL.
  private static func refuseEmptied(_ path: String, _ mark: StateMark?, boot: String) throws(StorageError) {
    guard FileSize.of(path) ?? 0 == 0 else { return }
    let what = FileSize.of(path) == nil ? "missing" : "empty"
    try refuseEmptied(path, what, mark, boot: boot)
    if FileSize.of(path + "-wal") ?? 0 > 0 {
      throw StorageError(.lost, path: path, reason: "the database is \(what), but its log \(path)-wal is not")
    }
  }

  /// Refuses a database without content if the mark shows that it had some.
  private static func refuseEmptied(
    _ path: String, _ what: String, _ mark: StateMark?, boot: String
  ) throws(StorageError) {
    guard let mark, case .lost(let count) = StateMark.verdict(mark, epoch: mark.epoch, sequence: 0, boot: boot)
    else { return }
    throw StorageError(
      .lost, path: path, reason: "the database is \(what), but it had \(counted(count, "row")) of journal")
  }

  /// The schema version of the file; 0 if it is new.
  private static func recognise(_ database: Database) throws(StorageError) -> Int64 {
    let path = database.path
    let (application, schema, tables) = try StorageError.naming(path) { () throws(SQLiteError) in
      // Verifies pages when they are read, and does not let the file's own schema call functions.
      try database.execute("PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF")
      return (
        try database.integer("PRAGMA application_id") ?? 0, try database.integer("PRAGMA user_version") ?? 0,
        try database.integer("SELECT count(*) FROM sqlite_schema") ?? 0
      )
    }
    if application == 0 && schema == 0 && tables == 0 { return 0 }
    guard application == Schema.applicationID else {
      throw StorageError(.foreign, path: path, reason: "the database does not belong to feedd")
    }
    guard schema <= Schema.version else {
      throw StorageError(
        .newerVersion, path: path,
        reason: "it was written by a newer feedd (schema \(schema); this one knows \(Schema.version))")
    }
    guard schema >= 1, tables > 0 else {
      throw StorageError(.corrupt, path: path, reason: "the database has schema \(schema) and \(tables) tables")
    }
    let (triggers, checksums) = try StorageError.naming(path) { () throws(SQLiteError) in
      (
        try database.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'") ?? 0,
        try database.integer("SELECT count(*) FROM pragma_table_info('journal') WHERE name = 'checksum'") ?? 0
      )
    }
    // They could change rows while the daemon writes them.
    guard triggers == 0 else {
      throw StorageError(.corrupt, path: path, reason: "the database has \(triggers) triggers")
    }
    guard (checksums > 0) == (schema >= 2) else {
      throw StorageError(.corrupt, path: path, reason: "the database has schema \(schema), but the tables of another")
    }
    return schema
  }

  /// Migrates the file to the current schema and writes its facts. Returns them.
  /// - Parameter freshEpoch: a random name, used unless the history continues.
  static func begin(
    _ opened: Opened, freshEpoch: String, software: String
  ) throws(StorageError) -> StateFacts {
    let database = opened.database
    return try StorageError.naming(database.path) { () throws(SQLiteError) in
      try configure(database)
      if opened.version < Schema.version { try migrate(opened) }
      var facts = opened.facts
      if opened.version == 1 { facts.unchecked = try Journal.lastRow(in: database) }
      if opened.beginning != .continued || facts.epoch == nil { facts.epoch = freshEpoch }
      facts.software = software
      facts.rules = Schema.rules
      facts.isBackup = false
      if facts != opened.facts { try database.transaction { () throws(SQLiteError) in try facts.write(to: database) } }
      return facts
    }
  }

  /// Configures the connection, and the file if it is new.
  private static func configure(_ database: Database) throws(SQLiteError) {
    try database.execute("PRAGMA page_size = \(Schema.pageSize)")
    _ = try database.text("PRAGMA journal_mode = WAL")
    // Deleted content is not overwritten: this would write every freed page once more.
    _ = try database.integer("PRAGMA secure_delete = OFF")
    try database.execute("PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY")
    database.disableAutomaticCheckpoints()
  }

  /// Migrates an older schema to the current one, in one transaction.
  private static func migrate(_ opened: Opened) throws(SQLiteError) {
    let database = opened.database
    try database.transaction { () throws(SQLiteError) in
      if opened.version < 1 { try database.execute(Schema.tables + Schema.views) }
      if opened.version < 2 { try database.execute(Schema.checksums) }
      if opened.version == 1 {
        // Existing rows have no checksums. Written immediately, so that a start after a crash here knows it.
        var facts = opened.facts
        facts.unchecked = try Journal.lastRow(in: database)
        try facts.write(to: database)
      }
      try database.execute(
        "PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = \(Schema.version)")
    }
    // A file without tables is damaged from now on.
    _ = try database.checkpoint(.truncate)
  }
}
