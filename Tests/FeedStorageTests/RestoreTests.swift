import FeedModel
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedStorage

/// Restoring a backup: what is damaged replaces nothing, and a daemon in the directory is noticed.
struct RestoreTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("state") }
  private var backup: String { directory.file("backup") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// Makes a backup of an image with "in the image" and a log with two batches. Returns the state.
  private func makeBackup() throws -> [String] {
    let daemon = try DurableEngine(path, epoch: "first", boot: "first")
    daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
    daemon.ask("update", #"{"feed":"c","element":{"id":1,"text":"in the image"}}"#)
    expect(daemon.writeImage())
    for text in ["in the log", "behind it"] {
      daemon.ask("update", #"{"feed":"c","element":{"id":"\#(text)"}}"#)
    }
    try StateBackup.copy(path, to: backup)
    return daemon.engine.content
  }

  /// Changes a byte of the backup.
  private func damage(at text: String) throws {
    var bytes = try SmallFile.read(backup)
    let words = Array(text.utf8)
    let place = try require(bytes.indices.first { bytes[$0...].starts(with: words) })
    bytes[place] ^= 1
    try SmallFile.replace(backup, with: bytes)
  }

  private func files() throws -> [String: [UInt8]] {
    var files: [String: [UInt8]] = [:]
    for name in try SystemDirectory(path).names() where !name.hasPrefix(".") {
      files[name] = try SmallFile.read("\(path)/\(name)")
    }
    return files
  }

  @Test func restoredBackupHasItsState() throws {
    let state = try makeBackup()
    try StateBackup.restore(backup, to: path, replacing: true)
    try expectEqual(difference(DurableEngine(path, epoch: "second", boot: "second").engine.content, state), nil)
  }

  /// A version before rules 6 stored it.
  @Test func storedFeedKeepsAFilterWithManyCharacterRanges() throws {
    let long = (0..<200).map { #"[\\\\p{L}]\#($0)"# }.joined(separator: "|")
    let daemon = try DurableEngine(path, epoch: "first", boot: "first")
    daemon.engine.catalog.commit.rules = 5
    let bin = #"{"name":"all","filter":"search(@.a,'\#(long)')"}"#
    daemon.ask("define", #"{"feed":"c","kind":"collection","bins":[\#(bin)]}"#)
    daemon.ask("update", #"{"feed":"c","element":{"id":1,"a":"x7"}}"#)
    daemon.stop()
    let again = try DurableEngine(path, epoch: "second", boot: "second")
    expectEqual(try again.engine.catalog.feed(named: "c").count, 1)
    again.ask("update", #"{"feed":"c","element":{"id":2,"a":"y8"}}"#)
    expectEqual(try again.engine.catalog.feed(named: "c").count, 2)
  }

  @Test("a log whose middle was lost with the power is copied as far as a start would read it")
  func copyAfterALossOfPower() throws {
    // Each start with other limits begins a segment.
    for life in 0..<3 {
      var limits = Limits()
      limits.maxFeeds += life
      let daemon = try DurableEngine(path, limits: limits, epoch: "first", boot: "first")
      if life == 0 { daemon.ask("define", #"{"feed":"c","kind":"collection"}"#) }
      try expect(JSONValue(daemon.ask("update", #"{"feed":"c","element":{"id":\#(life)}}"#)).has("result"))
    }
    // The records of the second segment did not reach the disk, those of the third one did.
    let name = SegmentHeader.name(of: 2)
    let segment = try SystemDirectory(path).open(name)
    let header = try SegmentHeader.read(segment).get().header
    try segment.writeZeros(header.byteCount..<header.fileBytes)
    try StateBackup.copy(path, to: backup)
    let other = directory.file("other")
    try StateBackup.restore(backup, to: other, replacing: false)
    let restored = try DurableEngine(other, epoch: "second")
    expectEqual(restored.found.batches, 2)
    try expectEqual(difference(restored.engine.content, DurableEngine(path, epoch: "second").engine.content), nil)
  }

  /// A directory that a daemon can use can be restored. What a restore that was killed left behind does no harm.
  @Test func directoryWithTheLongestPath() throws {
    let state = try makeBackup()
    let middle = directory.file(String(repeating: "m", count: 240))
    let name = String(repeating: "n", count: StateFile.maxDirectoryBytes - middle.utf8.count - 1)
    let long = "\(middle)/\(name)"
    try PrivateDirectory.make(long)
    for left in [StateFile.freshName, "\(StateFile.freshName)-journal"] {
      try SmallFile.replace("\(long)/\(left)", with: [1, 2, 3])
    }
    try StateBackup.restore(backup, to: long, replacing: false)
    try expectEqual(SystemDirectory(long).names().sorted(), [".", "..", StateFile.name])
    try expectEqual(difference(DurableEngine(long, epoch: "second", boot: "second").engine.content, state), nil)
  }

  @Test("a damaged backup replaces nothing", arguments: ["in the image", "in the log", "behind it"])
  func damagedBackup(_ place: String) throws {
    _ = try makeBackup()
    try damage(at: place)
    let before = try files()
    let error = #expect(throws: StorageError.self) { try StateBackup.restore(backup, to: path, replacing: true) }
    expect(error?.kind == .badBackup && error?.path == backup)
    try expectEqual(files(), before)
  }

  @Test(
    "a file that is no backup is named as one",
    arguments: [
      ("", "the file is empty"), (String(repeating: "text ", count: 1000), "file is not a database (SQLite 26)"),
    ])
  func noBackup(_ text: String, _ reason: String) throws {
    try SmallFile.replace(backup, with: utf8(text))
    let error = #expect(throws: StorageError.self) { try StateBackup.restore(backup, to: path, replacing: true) }
    expectEqual(
      error?.description,
      "\(backup): this is no backup: \(reason); nothing was changed; restore another backup")
    expect(FilePath.size(of: path) == nil)
  }

  @Test func directoryIsNoBackup() throws {
    try PrivateDirectory.make(backup)
    let error = #expect(throws: StorageError.self) { try StateBackup.restore(backup, to: path, replacing: true) }
    expect(error?.kind == .badBackup && error?.reason == "this is no backup but a directory")
  }

  /// The restart of the system explains no damage of a copy.
  @Test("damage of a backup is noticed on another boot", arguments: ["in the image", "in the log", "behind it"])
  func otherBoot(_ place: String) throws {
    _ = try makeBackup()
    try damage(at: place)
    let other = directory.file("other")
    try PrivateDirectory.make(other)
    expectEqual(rename(backup, StateFile.path(in: other)), 0)
    #expect(throws: StorageError.self) { try DurableEngine(other, epoch: "second", boot: "second") }
  }

  /// A daemon locks its directory too, in case its lock file is removed.
  @Test func daemonWithoutALockFileIsNoticed() throws {
    _ = try makeBackup()
    let before = try files()
    guard let lock = try DirectoryLock.acquire(path) else { return expectEqual("locked", "free") }
    let error = #expect(throws: StorageError.self) { try StateBackup.restore(backup, to: path, replacing: true) }
    expectEqual(error?.kind, .inUse)
    try expectEqual(files(), before)
    _ = consume lock
    try StateBackup.restore(backup, to: path, replacing: true)
  }
}
