import FeedSQLite
import FeedSystem

/// Whether the stored history continues or a new epoch begins.
public enum StateBeginning: Equatable, Sendable {
  /// There was nothing.
  case new
  /// Everything that was acknowledged is there.
  case continued
  /// The last changes before a loss of power may be missing, or nothing tells whether they are: a new epoch.
  case cut
  /// The file is a restored backup: a new epoch.
  case backup
  /// A batch of the journal is left out, by its last row: a new epoch.
  case skipped(Int64)
}

/// The database file of a state directory: opened, recognised, migrated to the present schema.
public enum StateFile {
  /// Its name in the state directory.
  public static let name = "feedd.sqlite"
  /// Milliseconds to wait for a lock of another program.
  private static let patience: Int32 = 2000

  /// What is known of a file before anything of it is used.
  struct Opened {
    let database: Database
    /// The schema's version; 0 when the file is new.
    let version: Int64
    let facts: StateFacts
    fileprivate(set) var beginning: StateBeginning

    /// Has recovery leave out the batch that ends with a row of the journal.
    /// - Throws: when there is no such batch.
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

  /// Opens the file to write it, and creates it if it is missing. A foreign, newer, damaged or incomplete file is refused
  /// and stays as it is.
  static func openToWrite(_ path: String, boot: String, vfs: String?) throws(StorageError) -> Opened {
    let mark = StateMarkFile.read(of: path)
    try refuseEmptied(path, mark, boot: boot)
    let database = try StorageError.naming(path) { () throws(SQLiteError) in
      try Database(path: path, access: .create, busyTimeout: Checkpoints.busyTimeout, vfs: vfs)
    }
    database.keepLogWhenClosing()
    return try judge(database, mark, boot: boot)
  }

  /// How to read a file without creating one beside it.
  enum Reading {
    /// Under locks: a daemon may use the file and may be started meanwhile. SQLite notes its readers in the index of the
    /// log.
    case locked
    /// Without locks, so that nothing at all is written: no daemon uses the file.
    case unlocked

    /// The way to read the file at `path` that writes nothing, unless a daemon uses it. A daemon locks the index of its log.
    /// - Precondition: this process has no other connection to the file.
    static func quiet(_ path: String) -> Reading {
      FileSize.of(path + "-wal") != nil && RecordLocks.areHeld(on: path + "-shm") ? .locked : .unlocked
    }
  }

  /// Opens the file to read it, without creating anything.
  static func openToRead(_ path: String, _ reading: Reading = .locked) throws(StorageError) -> Opened {
    let (mark, boot) = (StateMarkFile.read(of: path), BootIdentity.current)
    try refuseEmptied(path, mark, boot: boot)
    guard let size = FileSize.of(path) else {
      throw StorageError(.absent, path: path, reason: "there is no state here")
    }
    // SQLite would remove the log of an empty file.
    guard size > 0 else { throw StorageError(.absent, path: path, reason: "the database is empty") }
    // A daemon that runs has a log. Without one, opening the database would create it.
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

  /// Reads what the file says about itself, before anything is written.
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
        throw StorageError(.corrupt, path: path, reason: "the database has \(rows) rows of journal and no epoch")
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

  /// Refuses a journal that was written under other rules, if there is any to replay: the same requests might lead elsewhere.
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
      reason: "feedd \(facts.software ?? "of another version") left \(waiting) rows of journal that need its rules "
        + "(\(facts.rules)), and this one has others (\(Schema.rules))")
  }

  /// Refuses a missing or empty database file beside a log or a mark that shows there was content: SQLite would begin anew
  /// and delete the log.
  private static func refuseEmptied(_ path: String, _ mark: StateMark?, boot: String) throws(StorageError) {
    guard FileSize.of(path) ?? 0 == 0 else { return }
    let what = FileSize.of(path) == nil ? "missing" : "empty"
    try refuseEmptied(path, what, mark, boot: boot)
    if FileSize.of(path + "-wal") ?? 0 > 0 {
      throw StorageError(.lost, path: path, reason: "the database is \(what), but its log \(path)-wal is not")
    }
  }

  /// Refuses a database without content although the mark shows that it had some.
  private static func refuseEmptied(
    _ path: String, _ what: String, _ mark: StateMark?, boot: String
  ) throws(StorageError) {
    guard let mark, case .lost(let count) = StateMark.verdict(mark, epoch: mark.epoch, sequence: 0, boot: boot)
    else { return }
    throw StorageError(.lost, path: path, reason: "the database is \(what), but it had \(count) rows of journal")
  }

  /// The schema of the file; 0 when it is new.
  private static func recognise(_ database: Database) throws(StorageError) -> Int64 {
    let path = database.path
    let (application, schema, tables) = try StorageError.naming(path) { () throws(SQLiteError) in
      // Pages are checked as they are read, and the file's own schema is not trusted to call functions.
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
    return schema
  }

  /// Migrates the file to the present schema, and writes what it says about itself from now on. Returns its epoch.
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

  /// Sets up the connection, and the file while it is new.
  private static func configure(_ database: Database) throws(SQLiteError) {
    try database.execute("PRAGMA page_size = \(Schema.pageSize)")
    _ = try database.text("PRAGMA journal_mode = WAL")
    // Deleted content is not wiped: that would write every freed page once more.
    _ = try database.integer("PRAGMA secure_delete = OFF")
    try database.execute("PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY")
    database.disableAutomaticCheckpoints()
  }

  /// Migrates an older schema to the present one, as one transaction.
  private static func migrate(_ opened: Opened) throws(SQLiteError) {
    let database = opened.database
    try database.transaction { () throws(SQLiteError) in
      if opened.version < 1 { try database.execute(Schema.tables + Schema.views) }
      if opened.version < 2 { try database.execute(Schema.checksums) }
      if opened.version == 1 {
        // Rows so far have no checksums. Written at once, so that a start after a crash here knows it.
        var facts = opened.facts
        facts.unchecked = try Journal.lastRow(in: database)
        try facts.write(to: database)
      }
      try database.execute(
        "PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = \(Schema.version)")
    }
    // From now on a file without tables is a damaged one.
    _ = try database.checkpoint(.truncate)
  }
}
