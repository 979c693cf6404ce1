import FeedModel
import FeedSQLite
import FeedSystem
import Foundation
import Glibc
import TestSupport
import Testing

@testable import FeedStorage

/// Unexpected files: each error names the file and the next step, and no file is changed.
@Suite struct StoreTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("state.sqlite") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func open() throws -> SQLiteLog {
    try SQLiteLog.open(path, durability: .process, freshEpoch: "fresh", software: "1")
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
    let file = try #require(fopen(path, "rb"))
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    return Array(bytes[..<fread(&bytes, 1, bytes.count, file)])
  }

  @Test func epochContinuesInTheNextProcess() throws {
    #expect(try open().epoch == "fresh")
    #expect(try SQLiteLog.open(path, durability: .disk, freshEpoch: "other", software: "2").epoch == "fresh")
  }

  @Test func backupBeginsANewEpoch() throws {
    #expect(try open().epoch == "fresh")
    try StateBackup.copy(path, to: directory.file("backup"))
    let copy = try SQLiteLog.open(directory.file("backup"), durability: .process, freshEpoch: "other", software: "2")
    #expect(copy.epoch == "other")
    #expect(throws: StorageError.self) { try StateBackup.copy(path, to: directory.file("backup")) }
  }

  @Test func fileOfANewerSchemaIsRefused() throws {
    try fill(1)
    try Database(path: path, access: .readWrite).execute("PRAGMA user_version = 99")
    let error = try #require(failure())
    #expect(error.kind == .newerVersion)
    #expect(error.description.contains("schema 99") && error.description.contains("use that version of feedd"))
  }

  @Test func foreignDatabaseIsRefused() throws {
    try Database(path: path, access: .create).execute("CREATE TABLE song (title)")
    #expect(failure()?.kind == .foreign)
    #expect(try Database(path: path, access: .readOnly).integer("SELECT count(*) FROM sqlite_schema") == 1)
  }

  @Test func fileThatIsNotADatabaseIsRefused() throws {
    let file = try #require(fopen(path, "w"))
    fputs(String(repeating: "not a database. ", count: 1000), file)
    fclose(file)
    #expect(failure()?.kind == .foreign)
    #expect(try contents().count == 16_000)
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
        #expect(error.kind == .corrupt && error.description.contains("restore a backup"), "\(error)")
        #expect(throws: StorageError.self, "page \(page)") { try check() }
      }
      #expect(try contents() == bytes, "page \(page)")
    }
    #expect(refused >= 9)
  }

  private func write(_ bytes: [UInt8]) throws {
    let file = try #require(fopen(path, "wb"))
    fwrite(bytes, 1, bytes.count, file)
    fclose(file)
    for name in ["-wal", "-shm"] { unlink(path + name) }
  }

  private func check() throws -> StateCheck.Findings {
    try StateCheck.run(path, into: Filler(DurableEngine(directory.file("scratch")).engine))
  }

  @Test func checkReportsTheState() throws {
    try fill(20)
    let found = try check()
    #expect(found.recovery.elements == 20 && found.recovery.batches == 0 && found.epoch.hasPrefix("epoch"))
  }

  @Test func journalWithAMissingRowIsRefused() throws {
    do {
      let daemon = try DurableEngine(path)
      daemon.ask("define", #"{"feed":"list","kind":"array"}"#)
      for _ in 0..<3 { daemon.ask("insert", #"{"feed":"list","elements":[1]}"#) }
    }
    try Database(path: path, access: .readWrite).execute("DELETE FROM journal WHERE seq = 2")
    #expect(failure()?.kind == .doesNotFit)
  }

  @Test func batchWithAnotherRevisionIsRefused() throws {
    do {
      let daemon = try DurableEngine(path)
      daemon.ask("define", #"{"feed":"list","kind":"array"}"#)
      daemon.ask("insert", #"{"feed":"list","elements":[1]}"#)
    }
    try Database(path: path, access: .readWrite).execute("UPDATE journal SET revision = 0 WHERE seq = 2")
    let error = try #require(failure())
    #expect(error.kind == .corrupt && error.reason == "row 2 of the journal does not match its checksum")
  }

  @Test func removedFilesAreNoticed() throws {
    let daemon = try DurableEngine(path)
    daemon.ask("define", #"{"feed":"list","kind":"array"}"#)
    for name in ["state.sqlite", "state.sqlite-wal"] {
      #expect(rename(directory.file(name), directory.file("moved-\(name)")) == 0)
      let answer = daemon.ask("insert", #"{"feed":"list","elements":[1]}"#)
      let error = try JSONValue(answer)["error"]
      #expect(error["code"].int == -32008 && error["message"].string?.contains("was removed") == true)
      #expect(rename(directory.file("moved-\(name)"), directory.file(name)) == 0)
      #expect(try JSONValue(daemon.ask("insert", #"{"feed":"list","elements":[1]}"#))["result"].has("added"))
    }
  }

  @Test func databaseViewsShowTheNewestImage() throws {
    try fill(2)
    let database = try Database(path: path, access: .readOnly)
    #expect(try database.text("SELECT name FROM feeds") == "c")
    #expect(try database.integer("SELECT json_extract(text, '$.id') FROM elements WHERE feed = 'c' LIMIT 1") == 0)
    #expect(
      try database.text(#"SELECT group_concat(section || '/' || "row") FROM rows WHERE feed = 'c'"#) == "0/0,0/1")
  }

  /// Another user could exchange the file that SQLite opens by its name.
  @Test func backupIntoADirectoryOfOthersIsCopied() throws {
    try fill(3)
    let open = directory.file("open")
    #expect(mkdir(open, 0o700) == 0 && chmod(open, 0o777) == 0)
    let copy = "\(open)/backup"
    try StateBackup.copy(path, to: copy)
    var status = stat()
    #expect(stat(copy, &status) == 0 && status.st_mode & 0o777 == 0o600 && status.st_nlink == 1)
    // Nothing else is in the directory.
    #expect(rename(copy, directory.file("moved")) == 0 && rmdir(open) == 0)
    let moved = try SQLiteLog.open(
      directory.file("moved"), durability: .process, freshEpoch: "other", software: "2")
    #expect(moved.epoch == "other")
    #expect(mkdir(open, 0o700) == 0 && chmod(open, 0o777) == 0 && symlink(path, copy) == 0)
    let error = #expect(throws: StorageError.self) { try StateBackup.copy(path, to: copy) }
    #expect(error?.kind == .exists)
    let absent = #expect(throws: StorageError.self) { try StateBackup.copy(path, to: "\(open)/none/backup") }
    #expect(absent?.kind == .noDirectory)
    #expect(
      absent?.description
        == "\(open)/none/backup: no such file or directory; create the directory \(open)/none, or choose another one")
  }

  /// Whether others control the directory decides where the temporary files are.
  @Test("a cancelled backup removes its files", arguments: [false, true]) func cancelledBackup(isOpen: Bool) throws {
    try fill(2000)
    let target = directory.file("target")
    let name = "backup-\(try Random.hex128())"
    #expect(mkdir(target, 0o700) == 0 && chmod(target, isOpen ? 0o777 : 0o700) == 0)
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
    #expect(wasThere && !isThere())
    #expect(rmdir(target) == 0)
  }

  /// The longest name whose journal SQLite can still name.
  @Test func backupWithTheLongestName() throws {
    try fill(3)
    let copy = directory.file(String(repeating: "é", count: 123) + "b")
    try StateBackup.copy(path, to: copy)
    #expect(try SQLiteLog.open(copy, durability: .process, freshEpoch: "other", software: "2").epoch == "other")
  }

  /// A backup is renamed to its final name when it is complete, and follows no symbolic link.
  @Test func backupFollowsNoSymbolicLink() throws {
    try fill(3)
    let target = directory.file("target")
    #expect(symlink(target, directory.file("backup")) == 0)
    let error = #expect(throws: StorageError.self) { try StateBackup.copy(path, to: directory.file("backup")) }
    #expect(error?.kind == .exists)
    #expect(access(target, F_OK) != 0)
    try StateBackup.copy(path, to: directory.file("copy"))
    var status = stat()
    #expect(stat(directory.file("copy"), &status) == 0 && status.st_mode & 0o777 == 0o600 && status.st_nlink == 1)
  }
}
