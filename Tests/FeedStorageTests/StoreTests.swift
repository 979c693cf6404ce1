import FeedModel
import FeedSQLite
import FeedSystem
import Foundation
import Glibc
import TestSupport
import Testing

@testable import FeedStorage

/// Unexpected files: each error names the file and the next step, and no file is changed.
struct StoreTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("state") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  private var database: String { StateFile.path(in: path) }

  /// Starts a log in the directory, as a daemon does.
  private func open(_ durability: Durability = .process, fresh epoch: String = "fresh", _ path: String? = nil) throws
    -> FileLog
  {
    let path = path ?? self.path
    try PrivateDirectory.make(path)
    let log = try FileLog.open(path, durability: durability, freshEpoch: epoch, software: "1")
    let engine = try DurableEngine(directory.file("scratch")).engine
    _ = try log.recover(into: Filler(engine))
    try log.start(Limits())
    return log
  }

  /// Puts a backup where a daemon looks for its state. Returns the directory.
  private func restore(_ backup: String) throws -> String {
    let other = directory.file("other")
    try PrivateDirectory.make(other)
    expectEqual(rename(backup, StateFile.path(in: other)), 0)
    return other
  }

  /// The error of opening and recovering the file; nil if it succeeds.
  private func failure() -> StorageError? {
    do {
      _ = try DurableEngine(path)
      return nil
    } catch {
      return error as? StorageError
    }
  }

  private func fill(_ count: Int) throws {
    let daemon = try DurableEngine(path)
    daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
    for number in 0..<count {
      daemon.ask("update", #"{"feed":"c","element":{"id":\#(number),"text":"\#(String(repeating: "x", count: 200))"}}"#)
    }
    daemon.stop()
  }

  private func contents() throws -> [UInt8] {
    let file = try require(fopen(database, "rb"))
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    return Array(bytes[..<fread(&bytes, 1, bytes.count, file)])
  }

  @Test func epochContinuesInTheNextProcess() throws {
    try expectEqual(open().epoch, "fresh")
    try expectEqual(open(.disk, fresh: "other").epoch, "fresh")
  }

  @Test func backupBeginsANewEpoch() throws {
    try expectEqual(open().epoch, "fresh")
    let copy = directory.file("backup")
    try StateBackup.copy(path, to: copy)
    #expect(throws: StorageError.self) { try StateBackup.copy(path, to: copy) }
    let state = try restore(copy)
    let log = try FileLog.open(state, durability: .process, freshEpoch: "other", software: "2")
    expect(log.epoch == "other" && log.beginning == .backup && log.isImageOverdue == false)
  }

  /// A backup has the image and the log after it. What a directory holds of another log is not continued.
  @Test func backupHasImageAndLog() throws {
    var state: [String] = []
    do {
      let daemon = try DurableEngine(path)
      daemon.ask("define", #"{"feed":"list","kind":"array"}"#)
      daemon.ask("insert", #"{"feed":"list","elements":["a"]}"#)
      expect(daemon.writeImage())
      daemon.ask("insert", #"{"feed":"list","elements":["b"]}"#)
      state = daemon.visibleState
      try StateBackup.copy(path, to: directory.file("backup"))
      daemon.ask("insert", #"{"feed":"list","elements":["c"]}"#)
    }
    expectEqual(rename(directory.file("backup"), database), 0)
    do {
      let daemon = try DurableEngine(path, epoch: "restored")
      expect(daemon.log.beginning == .backup && daemon.log.epoch == "restored")
      expectEqual(difference(daemon.visibleState, state), nil)
      expect(daemon.log.mustWriteImage && daemon.writeImage())
      daemon.ask("insert", #"{"feed":"list","elements":["d"]}"#)
      state = daemon.visibleState
    }
    let again = try DurableEngine(path, epoch: "another")
    expect(again.log.beginning == .continued && again.log.epoch == "restored")
    expectEqual(difference(again.visibleState, state), nil)
  }

  @Test func fileOfANewerSchemaIsRefused() throws {
    try fill(1)
    try Database(path: database, access: .readWrite).execute("PRAGMA user_version = 99")
    let error = try require(failure())
    expectEqual(error.kind, .newerVersion)
    expect(error.description.contains("schema 99") && error.description.contains("use that version of feedd"))
  }

  @Test func foreignDatabaseIsRefused() throws {
    try PrivateDirectory.make(path)
    try Database(path: database, access: .create).execute("CREATE TABLE song (title)")
    expectEqual(failure()?.kind, .foreign)
    try expectEqual(Database(path: database, access: .readOnly).integer("SELECT count(*) FROM sqlite_schema"), 1)
  }

  @Test func fileThatIsNotADatabaseIsRefused() throws {
    try PrivateDirectory.make(path)
    let file = try require(fopen(database, "w"))
    fputs(String(repeating: "not a database. ", count: 1000), file)
    fclose(file)
    expectEqual(failure()?.kind, .foreign)
    try expectEqual(contents().count, 16_000)
  }

  /// A file with a damaged page is recovered correctly if the page is unused, or refused. It is never written.
  @Test func damagedPageIsNeverOverwritten() throws {
    try fill(300)
    let sound = try contents()
    var refused = 0
    for page in 1..<(sound.count / 8192) {
      var bytes = sound
      for offset in 0..<400 { bytes[page * 8192 + offset] ^= 0x5a }
      try write(bytes)
      if let error = failure() {
        refused += 1
        expect(error.kind == .corrupt && error.description.contains("restore a backup"), "\(error)")
        #expect(throws: StorageError.self, "page \(page)") { try check() }
      }
      try expectEqual(contents(), bytes, "page \(page)")
    }
    expect(refused >= 9)
  }

  private func write(_ bytes: [UInt8]) throws {
    let file = try require(fopen(database, "wb"))
    fwrite(bytes, 1, bytes.count, file)
    fclose(file)
  }

  private func check() throws -> StateCheck.Findings {
    let engine = try DurableEngine(directory.file("scratch")).engine
    return try StateCheck.run(path) { Filler(engine) }.found
  }

  /// Another daemon could use the file by its other name.
  @Test(
    "a check refuses a file with another name, as a start does",
    arguments: [StateFile.name, SegmentHeader.name(of: 1)])
  func fileWithAnotherName(_ name: String) throws {
    try fill(3)
    let (file, other) = ("\(path)/\(name)", directory.file("other"))
    expectEqual(link(file, other), 0)
    expectEqual(failure()?.kind, .linked)
    expectEqual(#expect(throws: StorageError.self) { try check() }?.kind, .linked)
    expect(unlink(file) == 0 && symlink(other, file) == 0)
    expectEqual(failure()?.kind, .redirected)
    expectEqual(#expect(throws: StorageError.self) { try check() }?.kind, .redirected)
  }

  @Test func checkReportsTheState() throws {
    try fill(20)
    let found = try check()
    expect(found.recovery.elements == 20 && found.recovery.batches == 0 && found.epoch.hasPrefix("epoch"))
  }

  @Test func databaseViewsShowTheNewestImage() throws {
    try fill(2)
    let database = try Database(path: database, access: .readOnly)
    try expectEqual(database.text("SELECT name FROM feeds"), "c")
    try expectEqual(database.integer("SELECT json_extract(text, '$.id') FROM elements WHERE feed = 'c' LIMIT 1"), 0)
    try expectEqual(
      database.text(#"SELECT group_concat(section || '/' || "row") FROM rows WHERE feed = 'c'"#), "0/0,0/1")
  }

  /// Another user could exchange the file that SQLite opens by its name.
  @Test func backupIntoADirectoryOfOthersIsCopied() throws {
    try fill(3)
    let open = directory.file("open")
    expect(mkdir(open, 0o700) == 0 && chmod(open, 0o777) == 0)
    let copy = "\(open)/backup"
    try StateBackup.copy(path, to: copy)
    var status = stat()
    expect(stat(copy, &status) == 0 && status.st_mode & 0o777 == 0o600 && status.st_nlink == 1)
    // Nothing else is in the directory.
    let moved = try FileLog.open(restore(copy), durability: .process, freshEpoch: "other", software: "2")
    expect(moved.epoch == "other" && rmdir(open) == 0)
    expect(mkdir(open, 0o700) == 0 && chmod(open, 0o777) == 0 && symlink(path, copy) == 0)
    let error = #expect(throws: StorageError.self) { try StateBackup.copy(path, to: copy) }
    expectEqual(error?.kind, .exists)
    let absent = #expect(throws: StorageError.self) { try StateBackup.copy(path, to: "\(open)/none/backup") }
    expectEqual(absent?.kind, .noDirectory)
    expectEqual(
      absent?.description,
      "\(open)/none/backup: no such file or directory; create the directory \(open)/none, or choose another one")
  }

  @Test("a backup of a directory that does not exist says so") func backupOfNothing() throws {
    try SmallFile.replace(directory.file("file"), with: [])
    for state in [directory.file("none"), directory.file("file")] {
      let absent = #expect(throws: StorageError.self) { try StateBackup.copy(state, to: directory.file("backup")) }
      expectEqual(absent?.description, "\(state): there is no state here; name the directory of a state with --state")
    }
  }

  @Test("a backup of a member of a group without an image says how to get one") func backupWithoutImage() throws {
    let state = directory.file("member")
    let images = StateImages.directory(ofGroup: "g", in: state)
    func message() -> String? {
      let error = #expect(throws: StorageError.self) { try StateBackup.copy(images, to: directory.file("backup")) }
      return error?.description
    }
    expectEqual(message(), "\(images): there is no state here; name the directory of a state with --state")
    expect(mkdir(state, 0o700) == 0 && mkdir(images, 0o700) == 0)
    expectEqual(
      message(),
      "\(images): this member of a group has written no image yet; write one with feedclient group image, and try again"
    )
    let outside = #expect(throws: StorageError.self) { try StateBackup.copy(state, to: directory.file("backup")) }
    expectEqual(
      outside?.description,
      "\(state): there is no state here, but that of a group in \(images); name that directory with --state")
  }

  /// Whether others control the directory decides where the temporary files are.
  @Test("a cancelled backup removes its files", arguments: [false, true]) func cancelledBackup(isOpen: Bool) throws {
    try fill(2000)
    let target = directory.file("target")
    let name = "backup-\(try Random.hex128())"
    expect(mkdir(target, 0o700) == 0 && chmod(target, isOpen ? 0o777 : 0o700) == 0)
    let staging = isOpen ? "/var/tmp" : target
    /// Whether a file of this copy is there. Other tests make files in `/var/tmp` at the same time.
    func isThere() -> Bool {
      let files = try? FileManager.default.contentsOfDirectory(atPath: staging)
      return files?.contains { $0.contains(name) } ?? false
    }
    var wasThere = false
    #expect(throws: StorageError.self) {
      try StateBackup.copy(path, to: "\(target)/\(name)") {
        wasThere = isThere()
        return wasThere
      }
    }
    expect(wasThere && !isThere())
    expectEqual(rmdir(target), 0)
  }

  /// The longest name whose journal SQLite can still name.
  @Test func backupWithTheLongestName() throws {
    try fill(3)
    let copy = directory.file(String(repeating: "é", count: 123) + "b")
    try StateBackup.copy(path, to: copy)
    try expectEqual(open(fresh: "other", restore(copy)).epoch, "other")
  }

  /// A backup is renamed to its final name when it is complete, and follows no symbolic link.
  @Test func backupFollowsNoSymbolicLink() throws {
    try fill(3)
    let target = directory.file("target")
    expectEqual(symlink(target, directory.file("backup")), 0)
    let error = #expect(throws: StorageError.self) { try StateBackup.copy(path, to: directory.file("backup")) }
    expectEqual(error?.kind, .exists)
    expect(access(target, F_OK) != 0)
    try StateBackup.copy(path, to: directory.file("copy"))
    var status = stat()
    expect(stat(directory.file("copy"), &status) == 0 && status.st_mode & 0o777 == 0o600 && status.st_nlink == 1)
  }
}
