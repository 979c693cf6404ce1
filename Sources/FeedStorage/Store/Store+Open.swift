import FeedSQLite

extension Store {
  /// Opens the file at `path`, or makes it with a new epoch.
  /// - Parameters:
  ///   - freshEpoch: a random name for a new history; used when the file is new or is a backup that was put back.
  ///   - vfs: SQLite's system layer, for tests; nil is its own.
  public static func open(
    _ path: String, durability: Durability, freshEpoch: String, policy: ImagePolicy = ImagePolicy(), software: String,
    vfs: String? = nil
  ) throws(StorageError) -> Store {
    let database = try StateFile.openToWrite(path, vfs: vfs)
    return try StorageError.naming(path) { () throws(SQLiteError) in
      let epoch = try epoch(in: database, freshEpoch, software)
      let store = try Store(
        database: database, path: path, epoch: epoch, durability: durability, policy: policy, vfs: vfs)
      try store.applyDurability()
      return store
    }
  }

  /// The epoch of the file. A backup continues from an earlier state than its watchers may have seen, so it gets a new one.
  private static func epoch(
    in database: Database, _ fresh: String, _ software: String
  ) throws(SQLiteError) -> String {
    let known = try database.text("SELECT value FROM meta WHERE key = 'epoch'")
    let isBackup = try database.integer("SELECT value FROM meta WHERE key = 'backup'") != nil
    if let known, !isBackup {
      try set("software", software, in: database)
      return known
    }
    try database.execute("BEGIN IMMEDIATE; DELETE FROM meta WHERE key = 'backup'")
    do throws(SQLiteError) {
      try set("epoch", fresh, in: database)
      try set("software", software, in: database)
      if known == nil { try database.execute("INSERT INTO meta VALUES ('failures', 0)") }
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
