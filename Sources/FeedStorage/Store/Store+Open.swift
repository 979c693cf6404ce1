import FeedSQLite
import FeedSystem

extension Store {
  /// How the history goes on that a store has.
  public enum Beginning: Equatable, Sendable {
    /// There was nothing.
    case new
    /// Everything that was acknowledged is there.
    case continued
    /// The last changes before a loss of power may be missing, or nobody can tell: a new epoch.
    case cut
    /// The file is a backup that was put back: a new epoch.
    case backup
  }

  /// Opens the file at `path`, or makes it with a new epoch.
  /// - Parameters:
  ///   - freshEpoch: a random name for a new history.
  ///   - boot: the run of the system (`BootIdentity`).
  ///   - vfs: SQLite's system layer, for tests; nil is its own.
  public static func open(
    _ path: String, durability: Durability, freshEpoch: String, policy: ImagePolicy = ImagePolicy(), software: String,
    boot: String = BootIdentity.current, vfs: String? = nil
  ) throws(StorageError) -> Store {
    let mark = StateMarkFile.read(of: path)
    let database = try StateFile.openToWrite(path, mark, boot: boot, vfs: vfs)
    let beginning = try beginning(of: database, mark, boot: boot)
    return try StorageError.naming(path) { () throws(SQLiteError) in
      let epoch = try begin(database, beginning, freshEpoch, software)
      let store = try Store(
        database: database, path: path, epoch: epoch, beginning: beginning, durability: durability, policy: policy,
        boot: boot, vfs: vfs)
      try store.applyDurability()
      return store
    }
  }

  /// Looks, before anything is written, how the file goes on.
  private static func beginning(
    of database: Database, _ mark: StateMark?, boot: String
  ) throws(StorageError) -> Beginning {
    let path = database.path
    let (epoch, isBackup, sequence) = try StorageError.naming(path) { () throws(SQLiteError) in
      (
        try database.text("SELECT value FROM meta WHERE key = 'epoch'"),
        try database.integer("SELECT value FROM meta WHERE key = 'backup'") != nil, try lastSequence(database)
      )
    }
    guard let epoch else {
      try StateFile.refuseEmptied(path, "without content", mark, boot: boot)
      return .new
    }
    if isBackup { return .backup }
    switch StateMark.verdict(mark, epoch: epoch, sequence: sequence, boot: boot) {
    case .whole: return .continued
    case .cut: return .cut
    case .lost(let count): throw .lost(count, path: path)
    }
  }

  /// The last row of the journal, those included that an image has taken the place of.
  static func lastSequence(_ database: Database) throws(SQLiteError) -> Int64 {
    max(
      try database.integer("SELECT max(seq) FROM journal") ?? 0,
      try database.integer("SELECT max(journal) FROM image") ?? 0)
  }

  /// Writes what the file says of itself, and returns the epoch.
  private static func begin(
    _ database: Database, _ beginning: Beginning, _ fresh: String, _ software: String
  ) throws(SQLiteError) -> String {
    if beginning == .continued, let known = try database.text("SELECT value FROM meta WHERE key = 'epoch'") {
      try set("software", software, in: database)
      return known
    }
    try database.execute("BEGIN IMMEDIATE; DELETE FROM meta WHERE key = 'backup'")
    do throws(SQLiteError) {
      try set("epoch", fresh, in: database)
      try set("software", software, in: database)
      if beginning == .new { try database.execute("INSERT INTO meta VALUES ('failures', 0)") }
      try database.execute("COMMIT")
    } catch {
      database.rollBack()
      throw error
    }
    return fresh
  }

  /// Writes one entry of `meta`, if it is another than before.
  private static func set(_ key: String, _ value: String, in database: Database) throws(SQLiteError) {
    let statement = try database.prepare(
      """
      INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE value <> excluded.value
      """, isKept: false)
    try statement.bind(key, at: 1)
    try statement.bind(value, at: 2)
    try statement.run()
  }

  /// Has commits synced as the operator chose.
  func applyDurability() throws(SQLiteError) {
    try database.execute(durability == .disk ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL")
  }
}

extension StorageError {
  static func lost(_ count: Int64, path: String) -> StorageError {
    StorageError(
      .lost, path: path,
      reason: "\(count) rows of the journal that were acknowledged are missing; its log \(path)-wal is damaged or gone")
  }
}
