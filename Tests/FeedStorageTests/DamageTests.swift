import FeedEngine
import FeedModel
import FeedSQLite
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedStorage

/// Damaged files are either refused or recovered without a wrong answer.
@Suite struct DamageTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("state.sqlite") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  private static let files = ["state.sqlite", "state.sqlite-wal", "state.sqlite-mark", "state.sqlite-shm"]

  private func contents() throws -> [String: [UInt8]] {
    var all: [String: [UInt8]] = [:]
    for name in Self.files { all[name] = try? SmallFile.read(directory.file(name)) }
    return all
  }

  private func restore(_ files: [String: [UInt8]]) throws {
    unlink(path + "-shm")
    for (name, bytes) in files { try SmallFile.replace(directory.file(name), with: bytes) }
  }

  /// Creates the state of a killed daemon: an image and a journal after it.
  private func live() throws -> [String] {
    let daemon = try DurableEngine(path, durability: .disk)
    var requests = RandomRequests(seed: 11)
    for definition in RandomRequests.definitions { daemon.ask("define", definition) }
    daemon.ask("set", #"{"feed":"c","elements":\#(requests.elements(100))}"#)
    daemon.writeImage()
    for _ in 0..<30 { _ = daemon.turn([requests.next()]) }
    return daemon.engine.content
  }

  private static var emptyEngine: Engine {
    let identity = ServerIdentity(version: "0", epoch: "", pid: 1, uid: 0, durability: "memory")
    return Engine(limits: Limits(), identity: identity, seed: 3, now: Instant(nanoseconds: 0))
  }

  private static let rounds = TestEffort.count(100, long: 1_000)

  @Test func flippedBitsAndTruncationsNeverGiveWrongAnswers() throws {
    let state = try live()
    let sound = try contents()
    var random = SeededRandom(seed: 5)
    var refused = 0
    for round in 0..<Self.rounds {
      var damaged = sound
      let name = Self.files[Int.random(in: 0..<Self.files.count, using: &random)]
      guard var bytes = damaged[name], !bytes.isEmpty else { continue }
      let place = Int.random(in: 0..<bytes.count, using: &random)
      if round % 5 == 0 {
        bytes.removeLast(bytes.count - place)
      } else {
        bytes[place] ^= UInt8(1 << Int.random(in: 0..<8, using: &random))
      }
      damaged[name] = bytes
      try restore(damaged)
      do {
        let scratch = Self.emptyEngine
        _ = try StateCheck.run(path, into: Filler(scratch))
        #expect(difference(scratch.content, state) == nil, "check, round \(round): \(name) at \(place)")
      } catch {
        // A refused start is not a wrong answer.
      }
      do {
        let daemon = try DurableEngine(path)
        #expect(difference(daemon.engine.content, state) == nil, "round \(round): \(name) at \(place)")
      } catch {
        refused += 1
        #expect(error is StorageError, "round \(round): \(name) at \(place): \(error)")
      }
    }
    #expect(refused > Self.rounds / 4)
  }

  /// A request in the journal is altered without damage to the structure of the database.
  @Test func alteredRequestIsRefusedByItsChecksum() throws {
    _ = try live()
    let database = try Database(path: path, access: .readWrite)
    let row = try #require(try database.integer("SELECT max(seq) - 3 FROM journal"))
    try database.execute(
      "UPDATE journal SET requests = CAST(replace(CAST(requests AS TEXT), 'e', 'f') AS BLOB) WHERE seq = \(row)")
    let error = #expect(throws: StorageError.self) { try DurableEngine(path, durability: .disk) }
    #expect(error?.kind == .corrupt)
    #expect(error?.reason == "row \(row) of the journal does not match its checksum")
    #expect(throws: StorageError.self) {
      try StateCheck.run(path, into: Filler(DurableEngine(directory.file("scratch")).engine))
    }
  }

  @Test(
    arguments: [
      "UPDATE element SET text = replace(text, '1', '2') "
        + "WHERE id = (SELECT max(id) FROM element WHERE instr(CAST(text AS TEXT), '1') > 0)",
      "UPDATE element SET arrival = arrival + 1 WHERE id = (SELECT max(id) FROM element)",
      "DELETE FROM element WHERE id = (SELECT max(id) FROM element)",
      "UPDATE section_rows SET numbers = '[' || substr(numbers, 4) WHERE id = (SELECT max(id) FROM section_rows)",
      "UPDATE image_feed SET revision = revision + 1 WHERE name = 'c'", "UPDATE image SET revision = revision + 1",
      "UPDATE image SET complete = 0", "DELETE FROM image_feed WHERE name = 'slots'",
      "UPDATE limits SET json = json || ' '", "UPDATE meta SET value = 'other' WHERE key = 'epoch'",
      "UPDATE meta SET key = 'backus' WHERE key = 'epoch'", "DELETE FROM meta WHERE key = 'epoch'",
      "PRAGMA user_version = 1",
      "CREATE TRIGGER lose AFTER INSERT ON journal BEGIN DELETE FROM journal WHERE seq = new.seq; END",
    ])
  func alteredImageIsRefused(_ sql: String) throws {
    _ = try live()
    try Database(path: path, access: .readWrite).execute(sql)
    #expect(throws: StorageError.self, "\(sql)") { try StateCheck.run(path, into: Filler(Self.emptyEngine)) }
    #expect(throws: StorageError.self, "\(sql)") { try DurableEngine(path, durability: .disk) }
  }

  /// The log of a killed daemon is deleted: the check refuses the state like a start, and creates no file.
  @Test func checkRefusesADeletedLog() throws {
    do {
      let daemon = try DurableEngine(path)
      daemon.ask("define", #"{"feed":"list","kind":"array"}"#)
    }
    for name in ["-wal", "-shm"] { unlink(path + name) }
    let error = #expect(throws: StorageError.self) {
      try StateCheck.run(path, into: Filler(DurableEngine(directory.file("scratch")).engine))
    }
    #expect(error?.kind == .lost)
    #expect(FileSize.of(path + "-wal") == nil && FileSize.of(path + "-shm") == nil)
    #expect(throws: StorageError.self) { try DurableEngine(path) }
  }

  @Test func journalOfOtherRulesIsRefusedUntilAnImageCoversIt() throws {
    func setRules(_ rules: Int64) throws {
      let database = try Database(path: path, access: .readWrite)
      var facts = try StateFacts(database, version: Schema.version)
      facts.rules = rules
      try database.transaction { () throws(SQLiteError) in try facts.write(to: database) }
    }
    let state = try live()
    try setRules(Schema.rules + 1)
    let error = #expect(throws: StorageError.self) { try DurableEngine(path, durability: .disk) }
    #expect(error?.kind == .otherRules && error?.description.contains("stop it with SIGTERM") == true)
    try setRules(Schema.rules)
    do {
      let daemon = try DurableEngine(path, durability: .disk)
      daemon.stop()
    }
    try setRules(Schema.rules + 1)
    #expect(try difference(DurableEngine(path, durability: .disk).engine.content, state) == nil)
  }

  /// The rows of the first schema have no checksums, so their readers refuse what no daemon wrote.
  @Test(
    "a selection or a revision that no daemon wrote is refused",
    arguments: [
      ("selection = '[[1,2]]'", "the selection is not a list of rows of the feed in ascending order"),
      ("selection = '[[0,1],[0,0]]'", "the selection is not a list of rows of the feed in ascending order"),
      ("selection = '[[0,0],[0,0]]'", "the selection is not a list of rows of the feed in ascending order"),
      ("selection = '[0,1]'", "the selection cannot be read"), ("selection = '[[0]]'", "the selection cannot be read"),
      ("selection = '[[0,-1]]'", "the selection cannot be read"), ("selection = ''", "the selection cannot be read"),
      ("bin_revisions = '[1.5]'", "the revisions of the bins cannot be read"),
      ("bin_revisions = '{}'", "the revisions of the bins cannot be read"),
      ("revision = 22222220, history_bases = 22222220", "the revision 22222220 is later than that of the image, 34"),
    ])
  func alteredSelectionIsRefused(_ change: String, _ reason: String) throws {
    let corpus = FilePath.directory(of: #filePath) + "/Corpus/both/"
    for end in ["", "-wal", "-mark"] {
      try SmallFile.replace(path + end, with: try SmallFile.read(corpus + "feedd.sqlite" + end))
    }
    try Database(path: path, access: .readWrite).execute("UPDATE image_feed SET \(change) WHERE name = 'list'")
    let error = #expect(throws: StorageError.self) { try StateCheck.run(path, into: Filler(Self.emptyEngine)) }
    #expect(error?.kind == .corrupt)
    #expect(error?.reason == "feed \"list\": \(reason)")
    #expect(throws: StorageError.self) { try DurableEngine(path, durability: .disk) }
  }

  /// States of the first schema: killed without an image, stopped cleanly, and killed after an image.
  @Test(arguments: ["journal", "image", "both"]) func statesOfTheFirstSchemaOpen(_ name: String) throws {
    let corpus = FilePath.directory(of: #filePath) + "/Corpus/\(name)/"
    for end in ["", "-wal", "-mark"] {
      try SmallFile.replace(path + end, with: try SmallFile.read(corpus + "feedd.sqlite" + end))
    }
    let digests = String(decoding: try SmallFile.read(corpus + "digests"), as: UTF8.self)
    func check(_ daemon: DurableEngine) throws {
      for line in digests.split(separator: "\n") {
        let words = line.split(separator: " ")
        let answer = try JSONValue(daemon.ask("verify", #"{"feed":"\#(words[0])"}"#, later: 0))["result"]
        #expect(
          answer["revision"].int == Int(words[1]) && answer["digest"].string == String(words[2]), "\(line): \(answer)")
      }
    }
    let scratch = try DurableEngine(directory.file("scratch"))
    #expect(try StateCheck.run(path, into: Filler(scratch.engine)).schema == 1)
    try check(scratch)
    do {
      let daemon = try DurableEngine(path, durability: .disk)
      #expect(daemon.log.beginning == .continued)
      try check(daemon)
      #expect(daemon.log.isImageOverdue && daemon.writeImage())
    }
    let again = try DurableEngine(path, durability: .disk)
    #expect(again.found.batches == 0)
    try check(again)
  }
}
