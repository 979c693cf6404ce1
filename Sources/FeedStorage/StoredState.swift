import FeedJSON
import FeedSQLite
import FeedSystem

/// What a state directory holds, found before anything is read from it or written to it.
///
///     var state = try StoredState(directory, files, access: .write, boot: boot)
///     state.beginning                       // whether the history continues
///     var recovery = Recovery(state, into: target)
struct StoredState {
  /// The image, and a log beside it that is in the same file.
  enum Image {
    /// There is none: the state of the first batch is empty.
    case none
    case file(Database, StateFacts, schema: Int64)
    /// A database whose log is a table.
    case journal(JournalDatabase)

    var database: Database? {
      switch self {
      case .none: nil
      case .file(let database, _, _): database
      case .journal(let journal): journal.database
      }
    }
  }

  let directory: String
  let image: Image
  let chain: SegmentChain
  let boot: String
  /// Whether the log is cut where it does not verify.
  let skipsDamaged: Bool
  private(set) var beginning: StateBeginning

  var path: String { StateFile.path(in: directory) }

  /// The database with the image; nil if there is none.
  var database: Database? { image.database }

  /// The database whose log is a table; nil if the log is in segments.
  var journal: JournalDatabase? { if case .journal(let journal) = image { journal } else { nil } }

  /// The version of the schema of the file; that of this program if there is none.
  var schema: Int64 {
    switch image {
    case .none: Schema.version
    case .file(_, _, let schema): schema
    case .journal(let journal): journal.version
    }
  }

  var facts: StateFacts {
    switch image {
    case .none: StateFacts()
    case .file(_, let facts, _): facts
    case .journal(let journal): journal.facts
    }
  }

  /// The epoch in which the stored batches were made; nil if there are none and no image.
  var epoch: String? { chain.segments.last?.header.epoch ?? facts.epoch }

  /// The version of the program that wrote the newest part.
  var software: String? { chain.segments.last?.header.software ?? facts.software }

  /// Whether an image must be written before the daemon serves: what the state was read from is replaced by it.
  var needsImage: Bool {
    switch beginning {
    case .backup, .skipped, .damaged: true
    case .new, .continued, .cut: journal != nil
    }
  }

  /// Reads the facts about the files of a directory. Refuses what is foreign, newer, damaged or incomplete.
  init(
    _ directory: String, _ files: any LogDirectory, access: JournalDatabase.Access, boot: String, vfs: String? = nil,
    skipsDamaged: Bool = false
  ) throws(StorageError) {
    (self.directory, self.boot, self.skipsDamaged) = (directory, boot, skipsDamaged)
    let path = StateFile.path(in: directory)
    image = try Self.openImage(path, access, boot: boot, vfs: vfs)
    var base = SegmentChain.Base(batch: 0, epoch: nil)
    var other: StateBeginning?
    switch image {
    case .none: break
    case .file(let database, let facts, _):
      base.epoch = facts.epoch
      base.batch = try Self.covered(by: database)
      if facts.isBackup { other = .backup }
    case .journal(let journal):
      base.epoch = journal.facts.epoch
      base.batch = UInt64(try JournalDatabase.lastRow(in: journal.database))
      if journal.beginning != .continued { other = journal.beginning }
    }
    if other == .backup, let database = image.database {
      // What the log of the replaced state holds is not continued.
      chain = try SegmentChain(ofBackup: database, in: directory, replacing: files)
    } else {
      chain = try SegmentChain(
        files, in: directory, after: base, boot: boot, skipsDamaged: skipsDamaged, keepsOpen: access != .write)
    }
    if chain.segments.isEmpty, other == nil {
      if case .file = image, !skipsDamaged {
        throw StorageError(.lost, path: directory, reason: "the log that continues the image is missing")
      }
      beginning = base.epoch == nil ? .new : .continued
    } else {
      beginning = other ?? (chain.mayBeCut ? .cut : .continued)
    }
    if other == .new, !chain.segments.isEmpty { beginning = chain.mayBeCut ? .cut : .continued }
    if skipsDamaged && beginning != .backup { beginning = .damaged }
    if access == .write { try refuseLinked() }
  }

  /// Refuses files with several names; see ``StateFile/refuseLinked(_:_:)``.
  func refuseLinked() throws(StorageError) {
    try StateFile.refuseLinked(path, "the database file")
    for segment in chain.segments where segment.isFile {
      try StateFile.refuseLinked("\(directory)/\(segment.name)", "the segment")
    }
  }

  /// Reads the facts about a file with an image whose log is elsewhere. Nil if there is no file.
  init?(imageIn directory: String) throws(StorageError) {
    self.directory = directory
    boot = ""
    skipsDamaged = false
    image = try Self.openImage(StateFile.path(in: directory), .unlocked, boot: "", vfs: nil)
    guard case .file = image else { return nil }
    chain = SegmentChain(directory)
    beginning = .continued
  }

  /// Lets recovery skip a batch.
  mutating func skip(_ batch: Int64) { beginning = .skipped(batch) }

  private static func openImage(
    _ path: String, _ access: JournalDatabase.Access, boot: String, vfs: String?
  ) throws(StorageError) -> Image {
    if access == .write { try StateFile.refuseLinked(path, "the database file") }
    guard let (database, version) = try StateFile.open(path, vfs: vfs), version > 0 else {
      try JournalDatabase.refuseEmptied(path, boot: boot)
      return .none
    }
    if version <= Schema.lastWithJournal { return .journal(try JournalDatabase(path, access, boot: boot)) }
    let facts = try StateFacts(database, version: version)
    guard facts.epoch != nil else { throw StorageError(.corrupt, path: path, reason: "the database has no epoch") }
    return .file(database, facts, schema: version)
  }

  /// The last batch that the image in a database covers.
  static func covered(by database: Database) throws(StorageError) -> UInt64 {
    let (images, found) = try StorageError.naming(database.path) { () throws(SQLiteError) in
      (
        try database.integer("SELECT count(*) FROM image") ?? 0,
        try database.integer("SELECT max(journal) FROM image WHERE complete")
      )
    }
    // A backup that was made before the first image has none.
    if images == 0 { return 0 }
    guard let found, found >= 0 else {
      throw StorageError(.corrupt, path: database.path, reason: "the image is not complete")
    }
    return UInt64(found)
  }
}

extension SegmentChain {
  /// Reads and verifies all segments that a start would use, one after the other, for a copy of them.
  /// - Parameters:
  ///   - directory: that of the segments, or of the backup, for errors.
  /// - Returns: the segments, and the bytes of each up to the end of its last record.
  func readLog(in directory: String, boot: String) throws(StorageError) -> [(segment: Segment, count: Int)] {
    var found: [(segment: Segment, count: Int)] = []
    for (place, segment) in segments.enumerated() {
      let path = "\(directory)/\(segment.name)"
      let bytes = try StorageError.ofFile(path, try segment.load())
      let next = place + 1 < segments.count ? segments[place + 1].header.firstBatch : nil
      var reader = SegmentReader(
        bytes.bytes, segment.header, checksum: segment.checksum, trust: trust(of: segment, boot: boot))
      while reader.nextBatch != next, reader.next() != nil {}
      found.append((segment, reader.offset))
      if let problem = problem(after: reader, at: place, wanting: segment.header.firstBatch) {
        // A start leaves out what follows, which was lost with the power.
        guard mayBeCut else { throw problem }
        break
      }
    }
    return found
  }

  /// The chain of the copies in a backup.
  init(ofBackup database: Database, in directory: String) throws(StorageError) {
    self.init(directory)
    let hasCopies = try StorageError.naming(database.path) { () throws(SQLiteError) in
      try database.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'log'") ?? 0 > 0
    }
    guard hasCopies else { return }
    let rows = try database.reading("SELECT number, segment FROM log ORDER BY number")
    while try rows.next(database.path) { try addCopy(rows.integer(0), rows.blobBytes(1), database.path) }
  }

  /// The chain of the copies in a backup. The segments in the directory are not needed any more.
  init(ofBackup database: Database, in directory: String, replacing files: any LogDirectory) throws(StorageError) {
    try self.init(ofBackup: database, in: directory)
    replace(try StorageError.ofFile(directory, try files.names()).compactMap(SegmentHeader.number(in:)).sorted())
  }
}

/// Whether the stored history continues or a new epoch begins.
public enum StateBeginning: Equatable, Sendable {
  /// There was no stored history.
  case new
  /// All acknowledged changes are stored.
  case continued
  /// The last changes before a power failure may be missing: a new epoch begins.
  case cut
  /// The file is a restored backup: a new epoch begins.
  case backup
  /// A batch of the log is skipped, named by its number: a new epoch begins.
  case skipped(Int64)
  /// The log does not verify from some place on, and the rest of it is skipped: a new epoch begins.
  case damaged
}

/// The file of a state directory that holds the image.
public enum StateFile {
  public static let name = "feedd.sqlite"
  /// The name under which a new image is written.
  static let freshName = "feedd.sqlite.new"
  /// The maximum bytes of the path of a directory in which an image can be written, absolute and without symbolic links.
  public static var maxDirectoryBytes: Int { Database.maxPathBytes - freshName.utf8.count - 1 }

  public static func path(in directory: String) -> String { "\(directory)/\(name)" }

  /// Opens the file, and recognises what it is. Writes nothing.
  /// - Returns: nil if there is no file.
  static func open(_ path: String, vfs: String? = nil) throws(StorageError) -> (Database, version: Int64)? {
    guard let size = FilePath.size(of: path) else { return nil }
    try refuseDirectory(path)
    // An immutable file is read without its log, which belongs to an older schema.
    guard size > 0 else { return nil }
    let database = try StorageError.naming(path) { () throws(SQLiteError) in
      try Database(path: path, access: .immutable, vfs: vfs)
    }
    return (database, try recognise(database))
  }

  /// Refuses a file with several names. Another daemon could use it by another name: the lock of a daemon is that of its
  /// directory.
  /// - Parameter what: the file, for the error.
  static func refuseLinked(_ path: String, _ what: String) throws(StorageError) {
    if FileIdentity(at: path)?.isSymbolicLink == true {
      throw StorageError(.redirected, path: path, reason: "\(what) is a symbolic link")
    }
    try refuseDirectory(path)
    guard let count = FilePath.nameCount(of: path), count > 1 else { return }
    throw StorageError(.linked, path: path, reason: "\(what) has \(count) names")
  }

  private static func refuseDirectory(_ path: String) throws(StorageError) {
    guard (try? FileIdentity(following: path))?.isDirectory == true else { return }
    throw StorageError(.obstructed, path: path, reason: "the file is a directory")
  }

  /// The schema version of the file; 0 if it is empty.
  static func recognise(_ database: Database) throws(StorageError) -> Int64 {
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
    let (triggers, checksums, logs) = try StorageError.naming(path) { () throws(SQLiteError) in
      (
        try database.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'") ?? 0,
        try database.integer("SELECT count(*) FROM pragma_table_info('image') WHERE name = 'checksum'") ?? 0,
        try database.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'log'") ?? 0
      )
    }
    // They could change rows that others write.
    guard triggers == 0 else {
      throw StorageError(.corrupt, path: path, reason: "the database has \(triggers) triggers")
    }
    guard (checksums > 0) == (schema >= 2), (logs > 0) == (schema > Schema.lastWithJournal) else {
      throw StorageError(.corrupt, path: path, reason: "the database has schema \(schema), but the tables of another")
    }
    return schema
  }
}
