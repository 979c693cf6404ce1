import FeedSQLite
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedStorage

/// Other programs change the files of the database while the daemon uses them.
@Suite struct DatabaseFilesTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("state.sqlite") }
  private var log: String { path + "-wal" }

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// A change of the files by another program.
  enum Change: CaseIterable {
    case logEmptied, logShortened, logWithoutLastByte, logRemoved, logReplaced
    case logEmptiedAndGrown, logShortenedAndGrown, logEndOverwritten
    case databaseEmptied, databaseShortened, databaseRemoved, databaseReplaced
  }

  private func size(_ file: String) -> Int { FileSize.of(file) ?? 0 }

  private func make(_ change: Change) throws {
    switch change {
    case .logEmptied: #expect(truncate(log, 0) == 0)
    case .logShortened: #expect(truncate(log, off_t(size(log) / 2)) == 0)
    case .logWithoutLastByte: #expect(truncate(log, off_t(size(log) - 1)) == 0)
    case .logRemoved: #expect(unlink(log) == 0)
    case .logReplaced: try SmallFile.replace(log, with: try SmallFile.read(log))
    case .logEmptiedAndGrown: try shortenAndGrow(to: 0)
    case .logShortenedAndGrown: try shortenAndGrow(to: size(log) / 2)
    case .logEndOverwritten: try shortenAndGrow(to: size(log) - 3000)
    case .databaseEmptied: #expect(truncate(path, 0) == 0)
    case .databaseShortened: #expect(truncate(path, off_t(size(path) / 2)) == 0)
    case .databaseRemoved: #expect(unlink(path) == 0)
    case .databaseReplaced: try SmallFile.replace(path, with: try SmallFile.read(path))
    }
  }

  private func shortenAndGrow(to length: Int) throws {
    let size = size(log)
    #expect(truncate(log, off_t(length)) == 0 && truncate(log, off_t(size)) == 0)
  }

  private func push(_ daemon: DurableEngine, _ id: Int) throws -> JSONValue {
    try JSONValue(daemon.ask("update", #"{"feed":"c","element":{"id":\#(id)}}"#))
  }

  private func fill(_ daemon: DurableEngine) throws {
    daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
    for id in 0..<30 { #expect(try push(daemon, id).has("result")) }
  }

  @Test("a change of the files is noticed at the next request that changes a feed", arguments: Change.allCases)
  func nextRequest(_ change: Change) throws {
    let daemon = try DurableEngine(path)
    try fill(daemon)
    try make(change)
    for id in 100..<103 {
      let error = try push(daemon, id)["error"]
      #expect(error["code"].int == -32008 && error["message"].string?.contains("the database") == true)
    }
    #expect(try JSONValue(daemon.ask("get", #"{"feed":"c","id":1}"#))["result"]["element"] == #"{"id":1}"#)
  }

  @Test("a change of the files is noticed before the first request after a kill", arguments: Change.allCases)
  func afterAKill(_ change: Change) throws {
    do { try fill(DurableEngine(path)) }
    let daemon = try DurableEngine(path)
    try make(change)
    #expect(try push(daemon, 100)["error"]["code"].int == -32008)
  }

  /// The parts of an image restore the length of a shortened WAL.
  @Test("an image does not hide a shortened log", arguments: [Change.logEmptied, .logShortened, .logEndOverwritten])
  func image(_ change: Change) throws {
    let daemon = try DurableEngine(path)
    try fill(daemon)
    try make(change)
    #expect(!daemon.writeImage())
    #expect(try push(daemon, 100)["error"]["code"].int == -32008)
    daemon.stop()
    // What was acknowledged is missing, so a start refuses the state.
    let error = #expect(throws: StorageError.self) { try DurableEngine(path) }
    #expect(error?.kind == .lost)
  }

  @Test(
    "what another program does through SQLite is accepted",
    arguments: [
      "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA wal_checkpoint(RESTART)", "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)",
      "CREATE TABLE note (t); DROP TABLE note",
    ])
  func otherProgram(_ sql: String) throws {
    var state: [String] = []
    do {
      let daemon = try DurableEngine(path)
      try fill(daemon)
      for round in 0..<3 {
        let other = try Database(path: path, access: .readWrite, busyTimeout: 60_000)
        other.keepLogWhenClosing()
        for statement in sql.split(separator: ";") {
          let query = try other.prepare(String(statement), isKept: false)
          while try query.step() {}
        }
        for id in 0..<20 { #expect(try push(daemon, 100 * round + id).has("result"), "\(sql)") }
        #expect(daemon.writeImage())
      }
      state = daemon.visibleState
    }
    #expect(try difference(DurableEngine(path).visibleState, state) == nil)
  }
}
