import FeedModel
import Glibc
import TestSupport
import Testing

@testable import FeedStorage

/// Missing acknowledged rows are detected, and a history that may be truncated does not continue.
@Suite struct StateMarkTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("state.sqlite") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func open(boot: String = "first", durability: Durability = .process) throws -> SQLiteLog {
    try SQLiteLog.open(path, durability: durability, freshEpoch: "another", software: "1", boot: boot)
  }

  /// Stores batches of `bytes` bytes each.
  private func append(_ count: UInt64, bytes: Int, to log: SQLiteLog) throws {
    try log.start(Limits())
    try log.store([UInt8](repeating: 0x20, count: bytes), times: count)
  }

  /// Stores some batches and ends abruptly, like a killed daemon. Returns the epoch.
  private func live(boot: String = "first", durability: Durability = .process) throws -> String {
    let log = try SQLiteLog.open(path, durability: durability, freshEpoch: "fresh", software: "1", boot: boot)
    try append(20, bytes: 20_000, to: log)
    return log.epoch
  }

  private func failure(boot: String = "first") -> StorageError? {
    do {
      _ = try open(boot: boot)
      return nil
    } catch {
      return error as? StorageError
    }
  }

  private func bytes(_ name: String) -> [UInt8] {
    guard let file = fopen(name, "rb") else { return [] }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 4 << 20)
    return Array(bytes[..<fread(&bytes, 1, bytes.count, file)])
  }

  @Test func markIsReadAsWritten() {
    for sequence in [0, 1, 9, 10, Int64.max] {
      for (isSynced, isClean) in [(false, false), (false, true), (true, false), (true, true)] {
        var mark = StateMark(epoch: "e", boot: "", isSynced: isSynced, sequence: sequence)
        mark.isClean = isClean
        #expect(StateMark(mark.text) == mark)
        #expect(mark.text.utf8.dropFirst(mark.offsetOfSequence).first.map { $0 >= 0x30 && $0 <= 0x39 } == true)
      }
    }
    for text in ["", "feedd-mark 1", "feedd-mark 2\n\n\n\n\n\n", String(repeating: "\n", count: 9)] {
      #expect(StateMark(text) == nil)
    }
  }

  @Test(arguments: [true, false], [true, false]) func verdicts(isSynced: Bool, isClean: Bool) {
    var mark = StateMark(epoch: "e", boot: "b", isSynced: isSynced, sequence: 7)
    mark.isClean = isClean
    func verdict(_ sequence: Int64, _ boot: String = "b", _ epoch: String = "e") -> StateMark.Verdict {
      StateMark.verdict(mark, epoch: epoch, sequence: sequence, boot: boot)
    }
    #expect(verdict(7) == .whole && verdict(8) == .whole && verdict(4) == .lost(3))
    #expect(verdict(9, "b", "other") == .cut)
    let vouched = isSynced || isClean
    #expect(verdict(7, "later") == (vouched ? .whole : .cut))
    #expect(verdict(6, "later") == (vouched ? .lost(1) : .cut))
    mark.boot = ""
    #expect(verdict(7, "") == (vouched ? .whole : .cut))
    #expect(StateMark.verdict(nil, epoch: "e", sequence: 0, boot: "b") == .cut)
  }

  @Test func epochContinuesAfterAKill() throws {
    #expect(try live() == "fresh")
    for _ in 0..<3 {
      let store = try open()
      #expect(store.epoch == "fresh" && store.beginning == .continued && store.lastRow >= 60)
    }
  }

  /// Ways in which the log loses its end. The start refuses each and leaves all files unchanged.
  @Test(arguments: ["damaged", "cut", "gone", "headless"]) func logThatLostItsEndIsRefused(_ way: String) throws {
    _ = try live()
    let log = path + "-wal"
    let length = bytes(log).count
    #expect(length > 400_000)
    switch way {
    case "gone": #expect(unlink(log) == 0)
    case "cut": #expect(truncate(log, off_t(length / 2)) == 0)
    default:
      let file = try #require(fopen(log, "r+"))
      fseek(file, way == "headless" ? 0 : length / 2, SEEK_SET)
      fwrite([UInt8](repeating: 0x5a, count: 64), 1, 64, file)
      fclose(file)
    }
    let before = (bytes(path), bytes(log), bytes(path + "-mark"))
    for _ in 0..<2 {
      let error = try #require(failure())
      #expect(error.kind == .lost && error.description.contains("remove \(path)-mark"))
    }
    #expect((bytes(path), bytes(log), bytes(path + "-mark")) == before)
    // Accepting the loss begins a new epoch, so that new revisions are not confused with lost ones.
    #expect(unlink(path + "-mark") == 0)
    #expect(try open().epoch == "another")
  }

  @Test(arguments: [true, false]) func emptiedDatabaseIsRefused(isThere: Bool) throws {
    _ = try live()
    let log = bytes(path + "-wal")
    if isThere { #expect(truncate(path, 0) == 0) } else { #expect(unlink(path) == 0) }
    #expect(failure()?.kind == .lost)
    #expect(unlink(path + "-mark") == 0)
    #expect(failure()?.kind == .lost)
    #expect(bytes(path + "-wal") == log)
    #expect(throws: StorageError.self) { try StateBackup.copy(path, to: directory.file("copy")) }
    #expect(bytes(path + "-wal") == log)
  }

  @Test func lossOfPowerBeginsANewEpoch() throws {
    _ = try live()
    #expect(truncate(path + "-wal", 200_000) == 0)
    let store = try open(boot: "second")
    #expect(store.epoch == "another" && store.beginning == .cut)
  }

  @Test func syncedBatchesContinueAfterALossOfPower() throws {
    _ = try live(durability: .disk)
    #expect(try open(boot: "second", durability: .disk).epoch == "fresh")
    // The end of the log may not have been synced.
    #expect(bytes(path + "-wal").isEmpty)
  }

  @Test func syncedBatchesThatAreMissingAfterALossOfPowerAreNoticed() throws {
    _ = try live(durability: .disk)
    #expect(truncate(path + "-wal", 200_000) == 0)
    #expect(failure(boot: "second")?.kind == .lost)
  }

  @Test func cleanStopContinuesAfterAReboot() throws {
    do {
      let store = try open()
      try append(1, bytes: 100, to: store)
      store.close(within: .max)
    }
    let store = try open(boot: "second")
    #expect(store.epoch == "another" && store.beginning == .continued)
  }
}
