import FeedEngine
import FeedModel
import FeedSQLite
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedStorage

/// Damaged files are either refused or recovered without a wrong answer.
struct DamageTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("state") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  private var database: String { StateFile.path(in: path) }

  private func contents() throws -> [String: [UInt8]] {
    var all: [String: [UInt8]] = [:]
    for name in try SystemDirectory(path).names() where !name.hasPrefix(".") {
      all[name] = try SmallFile.read("\(path)/\(name)")
    }
    return all
  }

  private func restore(_ files: [String: [UInt8]]) throws {
    try PrivateDirectory.make(path)
    for name in try SystemDirectory(path).names() where !name.hasPrefix(".") { unlink("\(path)/\(name)") }
    for (name, bytes) in files { try SmallFile.replace("\(path)/\(name)", with: bytes) }
  }

  /// Creates the state of a killed daemon: an image and two segments after it.
  private func live() throws -> [String] {
    let daemon = try DurableEngine(path, durability: .disk)
    var requests = RandomRequests(seed: 11)
    for definition in RandomRequests.definitions { daemon.ask("define", definition) }
    daemon.ask("set", #"{"feed":"c","elements":\#(requests.elements(100))}"#)
    daemon.writeImage()
    for _ in 0..<30 { _ = daemon.turn([requests.next()]) }
    let text = String(repeating: "x", count: 600_000)
    for id in ["a", "b", "c", "d"] {
      daemon.ask("update", #"{"feed":"c","element":{"id":"\#(id)","text":"\#(text)"}}"#)
    }
    for _ in 0..<3 { _ = daemon.turn([requests.next()]) }
    return daemon.engine.content
  }

  private func check() throws -> [String] {
    try StateCheck.run(path) { Filler(Self.emptyEngine) }.target.engine.content
  }

  private static var emptyEngine: Engine {
    let identity = ServerIdentity(version: "0", epoch: "", pid: 1, uid: 0, durability: "memory")
    return Engine(limits: Limits(), identity: identity, seed: 3, now: Instant(nanoseconds: 0))
  }

  private static let rounds = TestEffort.count(30, long: 1_000)

  @Test func flippedBitsAndTruncationsNeverGiveWrongAnswers() throws {
    let state = try live()
    let sound = try contents()
    let names = sound.keys.sorted()
    expectEqual(names.count { SegmentHeader.number(in: $0) != nil }, 2)
    var random = SeededRandom(seed: 5)
    var refused = 0
    for round in 0..<Self.rounds {
      var damaged = sound
      let name = names[Int.random(in: 0..<names.count, using: &random)]
      guard var bytes = damaged[name], !bytes.isEmpty else { continue }
      // Half of the damage is where the records are, most of a segment is empty.
      let range = round % 2 == 0 ? bytes.count : (bytes.lastIndex { $0 != 0 } ?? 0) + 1
      let place = Int.random(in: 0..<range, using: &random)
      if round % 5 == 0 {
        bytes.removeLast(bytes.count - place)
      } else {
        bytes[place] ^= UInt8(1 << Int.random(in: 0..<8, using: &random))
      }
      damaged[name] = bytes
      try restore(damaged)
      do {
        try expectEqual(difference(check(), state), nil, "check, round \(round): \(name) at \(place)")
      } catch {
        // A refused start is not a wrong answer.
      }
      do {
        let daemon = try DurableEngine(path)
        expectEqual(difference(daemon.engine.content, state), nil, "round \(round): \(name) at \(place)")
      } catch {
        refused += 1
        expect(error is StorageError, "round \(round): \(name) at \(place): \(error)")
        try expectEqual(contents(), damaged, "round \(round): a refused start changes nothing")
      }
    }
    expect(refused > Self.rounds / 4)
  }

  /// What other programs may do to the files of a daemon that does not run.
  enum Change: CaseIterable {
    case firstRemoved, lastRemoved, allRemoved, imageRemoved, lastCopied, firstCopiedOverLast, lastCopiedOverFirst
    case lastEmptied, firstTruncated
  }

  @Test("removed, copied and emptied files are refused, or without effect", arguments: Change.allCases)
  func files(_ change: Change) throws {
    let state = try live()
    var files = try contents()
    let segments = files.keys.filter { SegmentHeader.number(in: $0) != nil }.sorted()
    let (first, last) = (segments[0], segments[1])
    switch change {
    case .firstRemoved: files[first] = nil
    case .lastRemoved: files[last] = nil
    case .allRemoved: for name in segments { files[name] = nil }
    case .imageRemoved: files[StateFile.name] = nil
    case .lastCopied: files[SegmentHeader.name(of: 3)] = files[last]
    case .firstCopiedOverLast: files[last] = files[first]
    case .lastCopiedOverFirst: files[first] = files[last]
    case .lastEmptied: files[last] = []
    case .firstTruncated: files[first]?.removeLast(5000)
    }
    try restore(files)
    if change == .imageRemoved {
      // The log is complete from the first batch on.
      try expectEqual(difference(check(), state), nil)
      try expectEqual(difference(DurableEngine(path).engine.content, state), nil)
      return
    }
    #expect(throws: StorageError.self) { try check() }
    let error = #expect(throws: StorageError.self) { try DurableEngine(path, durability: .disk) }
    expectEqual(error?.description.contains("--skip-damaged"), true, "\(error as Any)")
    try expectEqual(contents(), files)
    // What verifies is kept when the operator says so.
    let daemon = try DurableEngine(path, durability: .disk, epoch: "after", skipsDamaged: true)
    expect(daemon.log.beginning == .damaged && daemon.log.epoch == "after")
    expect(daemon.log.mustWriteImage && daemon.writeImage())
    let kept = daemon.visibleState
    daemon.stop()
    let again = try DurableEngine(path, durability: .disk)
    expect(again.log.beginning == .continued && again.log.epoch == "after")
    expectEqual(difference(again.visibleState, kept), nil)
  }

  @Test(
    "a directory in the place of a file is named, with what to do",
    arguments: ["log-spare", "log-reserve", "log-new", "log-000001", "feedd.sqlite"])
  func directoriesInTheWay(name: String) throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("state")
    let daemon = try DurableEngine(path)
    daemon.ask("define", #"{"feed":"a","kind":"array"}"#)
    daemon.stop()
    _ = unlink("\(path)/\(name)")
    expectEqual(mkdir("\(path)/\(name)", 0o700), 0)
    let error = #expect(throws: StorageError.self) { try DurableEngine(path) }
    expectEqual(error?.kind, .obstructed)
    expectEqual(error?.description.contains("is a directory; move that directory away"), true, "\(error as Any)")
    expectEqual(error?.description.contains(name), true, "\(error as Any)")
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
      "CREATE TRIGGER lose AFTER INSERT ON element BEGIN DELETE FROM element WHERE id = new.id; END",
    ])
  func alteredImageIsRefused(_ sql: String) throws {
    _ = try live()
    try Database(path: database, access: .readWrite).execute(sql)
    #expect(throws: StorageError.self, "\(sql)") { try check() }
    #expect(throws: StorageError.self, "\(sql)") { try DurableEngine(path, durability: .disk) }
  }

  /// Writes a segment again, with another header around the same batches.
  private func rewrite(_ name: String, _ change: (inout SegmentHeader) -> Void) throws {
    let bytes = try SmallFile.read("\(path)/\(name)")
    var out: [UInt8] = []
    try bytes.withUnsafeBytes { bytes in
      let (header, checksum) = try SegmentHeader.decode(bytes)
      var changed = header
      change(&changed)
      let encoded = changed.encode()
      out = encoded.bytes
      var reader = SegmentReader(bytes, header, checksum: checksum, trust: .sameBoot)
      while let batch = reader.next() {
        var record = [UInt8](repeating: 0, count: RecordHeader.byteCount)
        record.withUnsafeMutableBytes { batch.header.encode(in: encoded.checksum, into: $0) }
        out += record + Array(batch.requests)
      }
      expect(reader.ending != .damaged)
    }
    out += [UInt8](repeating: 0, count: bytes.count - out.count)
    try SmallFile.replace("\(path)/\(name)", with: out)
  }

  @Test func logOfOtherRulesIsRefusedUntilAnImageCoversIt() throws {
    let daemon = try DurableEngine(path)
    daemon.ask("define", #"{"feed":"list","kind":"array"}"#)
    let state = daemon.engine.content
    daemon.log.close(within: .max)
    let name = SegmentHeader.name(of: 1)
    let sound = try contents()
    try rewrite(name) { $0.rules += 1 }
    for _ in 0..<2 {
      let error = #expect(throws: StorageError.self) { try DurableEngine(path) }
      expect(error?.kind == .otherRules && error?.description.contains("stop it with SIGTERM") == true)
      #expect(throws: StorageError.self) { try check() }
    }
    try restore(sound)
    do { try DurableEngine(path).stop() }
    try rewrite(name) { $0.rules += 1 }
    try expectEqual(difference(DurableEngine(path).engine.content, state), nil)
  }

  /// Members that rules 1 ignored are not judged now: the log is executed, or refused where it has one.
  @Test(
    arguments: [
      (#"update"#, #"{"feed":"c","element":{"id":1,"v":2},"where":"@.v == 5"}"#, "where"),
      (#"update"#, #"{"feed":"c","element":{"id":1,"v":2},"absent":true}"#, "absent"),
      (#"delete"#, #"{"feed":"c","id":1,"where":"@.v == 5"}"#, "where"),
      (#"patch"#, #"{"feed":"c","id":1,"patch":{},"where":"@.v == 1"}"#, "where"),
      (#"update"#, #"{"feed":"c","element":{"id":1,"v":2},"result":"counts"}"#, "result"),
      ("transaction", #"{"ops":[{"method":"delete","params":{"feed":"c","id":1,"where":"@.v == 1"}}]}"#, "where"),
      ("delete", #"{"feed":"c","where":"@.v == 1"}"#, nil), ("update", #"{"feed":"c","element":{"id":1,"v":2}}"#, nil),
    ] as [(String, String, String?)])
  func logOfFormerRulesIsExecutedUnlessTheyDiffer(_ method: String, _ params: String, _ member: String?) throws {
    let daemon = try DurableEngine(path)
    daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
    daemon.ask("update", #"{"feed":"c","element":{"id":1,"v":1}}"#)
    daemon.ask(method, params)
    let state = daemon.engine.content
    daemon.log.close(within: .max)
    try rewrite(SegmentHeader.name(of: 1)) { $0.rules = 1 }
    guard let member else {
      try expectEqual(difference(DurableEngine(path).engine.content, state), nil)
      return
    }
    let error = #expect(throws: StorageError.self) { try DurableEngine(path) }
    expect(error?.kind == .doesNotFit && error?.description.contains("its \"\(member)\" meant nothing") == true)
  }

  @Test func segmentOfANewerFormatIsRefused() throws {
    do { try DurableEngine(path).ask("define", #"{"feed":"list","kind":"array"}"#) }
    let name = SegmentHeader.name(of: 1)
    var bytes = try SmallFile.read("\(path)/\(name)")
    bytes[8] = 2
    bytes.withUnsafeMutableBytes { bytes in
      let count = Int(bytes.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
      bytes.storeBytes(of: 0, toByteOffset: 16, as: UInt32.self)
      let checksum = CRC32C.of(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[..<count]))
      bytes.storeBytes(of: checksum, toByteOffset: 16, as: UInt32.self)
    }
    try SmallFile.replace("\(path)/\(name)", with: bytes)
    let error = #expect(throws: StorageError.self) { try DurableEngine(path) }
    expect(error?.kind == .newerVersion && error?.description.contains("format 2") == true)
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
    try copyCorpus("both")
    try Database(path: database, access: .readWrite).execute("UPDATE image_feed SET \(change) WHERE name = 'list'")
    let error = #expect(throws: StorageError.self) { try check() }
    expectEqual(error?.kind, .corrupt)
    expectEqual(error?.reason, "feed \"list\": \(reason)")
    #expect(throws: StorageError.self) { try DurableEngine(path, durability: .disk) }
  }

  private func copyCorpus(_ name: String) throws {
    let corpus = FilePath.directory(of: #filePath) + "/Corpus/\(name)/"
    try PrivateDirectory.make(path)
    for end in ["", "-wal", "-mark"] {
      try SmallFile.replace(database + end, with: try SmallFile.read(corpus + "feedd.sqlite" + end))
    }
  }

  /// States of older schemas: killed without an image, stopped cleanly, and killed after an image. If the rules by which
  /// requests are executed changed, this fails: then increment `ExecutionRules.current`.
  @Test(arguments: ["journal", "image", "both", "schema2-journal", "schema2-both"])
  func statesOfOlderSchemasAreConverted(_ name: String) throws {
    try copyCorpus(name)
    let corpus = FilePath.directory(of: #filePath) + "/Corpus/\(name)/"
    let digests = String(decoding: try SmallFile.read(corpus + "digests"), as: UTF8.self)
    func check(_ daemon: DurableEngine) throws {
      for line in digests.split(separator: "\n") {
        let words = line.split(separator: " ")
        let answer = try JSONValue(daemon.ask("verify", #"{"feed":"\#(words[0])"}"#, later: 0))["result"]
        expect(
          answer["revision"].int == Int(words[1]) && answer["digest"].string == String(words[2]), "\(line): \(answer)")
      }
    }
    let scratch = try DurableEngine(directory.file("scratch"))
    let found = try StateCheck.run(path) { Filler(scratch.engine) }.found
    expectEqual(found.schema, (name.hasPrefix("schema2") ? 2 : 1))
    try check(scratch)
    let epoch: String
    do {
      let daemon = try DurableEngine(path, durability: .disk)
      expectEqual(daemon.log.beginning, .continued)
      try check(daemon)
      expect(daemon.log.mustWriteImage && daemon.writeImage())
      epoch = daemon.log.epoch
    }
    try expectEqual(SystemDirectory(path).names().filter { $0.hasPrefix("feedd.sqlite") }, ["feedd.sqlite"])
    let again = try DurableEngine(path, durability: .disk)
    expect(again.found.batches == 0 && again.log.epoch == epoch)
    try check(again)
  }

  /// A daemon that is killed between the beginning of the log and the image converts again.
  @Test(arguments: ["journal", "both"]) func conversionIsRepeated(_ name: String) throws {
    try copyCorpus(name)
    var state: [String] = []
    for life in 0..<3 {
      let daemon = try DurableEngine(path)
      expect(daemon.log.beginning == .continued && daemon.log.mustWriteImage)
      if life > 0 { expectEqual(difference(daemon.visibleState, state), nil) }
      state = daemon.visibleState
    }
    do {
      let daemon = try DurableEngine(path)
      expect(daemon.writeImage())
      daemon.ask("insert", #"{"feed":"list","elements":["new"],"at":[0]}"#)
      state = daemon.visibleState
    }
    let again = try DurableEngine(path)
    expect(again.found.batches == 1 && difference(again.visibleState, state) == nil)
  }

  /// An image of schema 3 has the recent changes in plain form. The next image has them packed.
  @Test func recentChangesOfSchema3AreRead() throws {
    let corpus = FilePath.directory(of: #filePath) + "/Corpus/schema3/"
    try PrivateDirectory.make(path)
    for name in ["feedd.sqlite", "log-000001"] {
      try SmallFile.replace("\(path)/\(name)", with: try SmallFile.read(corpus + name))
    }
    let scratch = try DurableEngine(directory.file("scratch"))
    try expectEqual(StateCheck.run(path) { Filler(scratch.engine) }.found.schema, 3)
    func resumptions(_ daemon: DurableEngine) -> [String] {
      daemon.feedNames.flatMap { feed in
        (0...daemon.catalog.revision).map { revision in
          daemon.resume(feed, from: revision, epoch: daemon.log.epoch)
            .map { $0.replacing(#/"id":\d+/#, with: "") }.joined(separator: "\n")
        }
      }
    }
    let (state, resumed): ([String], [String])
    do {
      let daemon = try DurableEngine(path)
      expect(daemon.log.beginning == .continued && !daemon.log.mustWriteImage)
      for line in String(decoding: try SmallFile.read(corpus + "digests"), as: UTF8.self).split(separator: "\n") {
        let words = line.split(separator: " ")
        let answer = try JSONValue(daemon.ask("verify", #"{"feed":"\#(words[0])"}"#, later: 0))["result"]
        expect(
          answer["revision"].int == Int(words[1]) && answer["digest"].string == String(words[2]), "\(line): \(answer)")
      }
      (state, resumed) = (daemon.visibleState, resumptions(daemon))
      expect(resumed.count { $0.contains(#""resumed":true"#) } > 100)
      expect(daemon.writeImage())
    }
    let again = try DurableEngine(path)
    expect(again.found.batches == 0 && difference(again.visibleState, state) == nil)
    expectEqual(difference(resumptions(again), resumed), nil)
    try expectEqual(Database(path: database, access: .readOnly).integer("PRAGMA user_version"), 4)
  }
}
