import FeedEngine
import FeedJSON
import FeedModel
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedStorage

/// Other programs change the files of the log while the daemon uses them.
struct SegmentFilesTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("state") }
  private var segment: String { "\(path)/\(SegmentHeader.name(of: 1))" }

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// A change of the files by another program.
  enum Change: CaseIterable {
    case emptied, shortened, withoutLastByte, longer, removed, replaced, moved, directoryMoved
  }

  private func make(_ change: Change) throws {
    let size = FilePath.size(of: segment) ?? 0
    switch change {
    case .emptied: expectEqual(truncate(segment, 0), 0)
    case .shortened: expectEqual(truncate(segment, off_t(size / 2)), 0)
    case .withoutLastByte: expectEqual(truncate(segment, off_t(size - 1)), 0)
    case .longer: expectEqual(truncate(segment, off_t(size + 1)), 0)
    case .removed: expectEqual(unlink(segment), 0)
    case .replaced: try SmallFile.replace(segment, with: try SmallFile.read(segment))
    case .moved: expectEqual(rename(segment, segment + "-moved"), 0)
    case .directoryMoved: expectEqual(rename(path, path + "-moved"), 0)
    }
  }

  private func push(_ daemon: DurableEngine, _ id: Int) throws -> JSONValue {
    try JSONValue(daemon.ask("update", #"{"feed":"c","element":{"id":\#(id)}}"#))
  }

  @Test("a change of the files is noticed at the next request that changes a feed", arguments: Change.allCases)
  func nextRequest(_ change: Change) throws {
    let daemon = try DurableEngine(path)
    daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
    for id in 0..<30 { try expect(push(daemon, id).has("result")) }
    try make(change)
    for id in 100..<103 {
      let error = try push(daemon, id)["error"]
      expect(error["code"].int == -32008 && error["message"].string?.contains("segment") == true, "\(error)")
    }
    try expectEqual(JSONValue(daemon.ask("get", #"{"feed":"c","id":1}"#))["result"]["element"], #"{"id":1}"#)
  }

  @Test func filesThatComeBackAreUsedAgain() throws {
    let daemon = try DurableEngine(path)
    daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
    for (from, to) in [(segment, segment + "-moved"), (path, path + "-moved")] {
      expectEqual(rename(from, to), 0)
      try expectEqual(push(daemon, 1)["error"]["code"].int, -32008)
      expectEqual(rename(to, from), 0)
      try expect(push(daemon, 1).has("result"))
    }
    let state = daemon.visibleState
    try expectEqual(difference(DurableEngine(path).visibleState, state), nil)
  }

  /// Another daemon may use the directory that was put in place of one that was moved away.
  @Test func directoryInItsPlaceIsLeftAlone() throws {
    let first = try DurableEngine(path, epoch: "first")
    first.ask("define", #"{"feed":"c","kind":"collection"}"#)
    try expect(push(first, 1).has("result"))
    expectEqual(rename(path, path + "-moved"), 0)
    var state: [String] = []
    do {
      let second = try DurableEngine(path, epoch: "second")
      second.ask("define", #"{"feed":"d","kind":"array"}"#)
      try expectEqual(push(first, 2)["error"]["code"].int, -32008)
      expect(!first.writeImage())
      first.stop()
      second.ask("insert", #"{"feed":"d","elements":["a"]}"#)
      state = second.visibleState
    }
    try expectEqual(difference(DurableEngine(path).visibleState, state), nil)
    try expectEqual(push(DurableEngine(path + "-moved"), 1)["result"]["updated"], "[]")
  }

  @Test("what waits for its use may have any content, as after a loss of power")
  func spareThatIsNotZero() throws {
    try PrivateDirectory.make(path)
    try SmallFile.replace("\(path)/log-spare", with: [UInt8](repeating: 1, count: 2 << 20))
    var state: [String] = []
    do {
      // The spare becomes the first segment.
      let daemon = try DurableEngine(path)
      daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
      try expect(push(daemon, 1).has("result"))
      state = daemon.visibleState
    }
    let daemon = try DurableEngine(path)
    expectEqual(daemon.found.batches, 2)
    expectEqual(difference(daemon.visibleState, state), nil)
  }

  @Test("a file that is longer than any segment that waits is not used as one")
  func spareThatIsTooLong() throws {
    try PrivateDirectory.make(path)
    try SmallFile.replace("\(path)/log-spare", with: [])
    expectEqual(truncate("\(path)/log-spare", 1 << 33), 0)
    let daemon = try DurableEngine(path)
    daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
    try expect(push(daemon, 1).has("result"))
    expect((FilePath.size(of: segment) ?? .max) <= 4 << 20)
  }

  /// In a copy of a directory that was made of hard links, the spare may be what became a segment later.
  @Test(arguments: SpareSegments.names) func segmentIsNotUsedByAnotherName(_ name: String) throws {
    var state: [String] = []
    do {
      let daemon = try DurableEngine(path)
      daemon.ask("define", #"{"feed":"c","kind":"collection"}"#)
      try expect(push(daemon, 1).has("result"))
      state = daemon.visibleState
    }
    let copy = path + "-copy"
    try PrivateDirectory.make(copy)
    expectEqual(link(segment, "\(copy)/\(name)"), 0)
    do {
      let daemon = try DurableEngine(copy)
      daemon.ask("define", #"{"feed":"d","kind":"array"}"#)
    }
    try expectEqual(difference(DurableEngine(path).visibleState, state), nil)
  }

  /// Each start with other limits begins a segment.
  @Test func logHasMoreSegmentsThanAProcessMayOpenFiles() throws {
    for life in 0..<40 {
      var limits = Limits()
      limits.maxFeeds += life
      let daemon = try DurableEngine(path, limits: limits)
      if life == 0 { daemon.ask("define", #"{"feed":"c","kind":"collection"}"#) }
      try expect(push(daemon, life).has("result"))
    }
    let files = CountingDirectory(path)
    for durability in [Durability.process, .disk] {
      let daemon = try DurableEngine(path, durability: durability, files: files)
      expectEqual(daemon.found.batches, durability == .process ? 41 : 42)
      try expect(push(daemon, 100).has("result"))
      expect(files.most < 8, "\(files.most) files are open")
    }
  }

  @Test("a segment that cannot be opened is not left out of what a start syncs again")
  func segmentThatCannotBeOpenedAgain() throws {
    for life in 0..<2 {
      var limits = Limits()
      limits.maxFeeds += life
      let daemon = try DurableEngine(path, durability: .disk, limits: limits)
      if life == 0 { daemon.ask("define", #"{"feed":"c","kind":"collection"}"#) }
      try expect(push(daemon, life).has("result"))
    }
    let log = try FileLog.open(path, durability: .disk, freshEpoch: "e", software: "0")
    let identity = ServerIdentity(version: "0", epoch: log.epoch, pid: 1, uid: 0, durability: "disk")
    let engine = Engine(limits: Limits(), identity: identity, seed: 3, isDurable: true, now: Instant(nanoseconds: 1))
    _ = try log.recover(into: Filler(engine))
    expectEqual(unlink(segment), 0)
    #expect(throws: StorageError.self) { try log.start(Limits()) }
  }
}

/// A directory of the system that counts the files that are open at a time.
private final class CountingDirectory: LogDirectory, @unchecked Sendable {
  private let base: SystemDirectory
  private let counts = Guarded<(now: Int, most: Int)>((0, 0))
  /// The highest number of files that were open.
  var most: Int { counts.withLock { $0.most } }

  init(_ path: String) { base = SystemDirectory(path) }

  func names() throws(SystemError) -> [String] { try base.names() }
  func rename(_ name: String, to other: String) throws(SystemError) { try base.rename(name, to: other) }
  func remove(_ name: String) throws(SystemError) { try base.remove(name) }
  func sync() throws(SystemError) { try base.sync() }
  var freeBytes: Int { base.freeBytes }

  func open(_ name: String) throws(SystemError) -> any LogFile { CountedFile(try base.open(name), self) }
  func create(_ name: String, size: Int, isZeroed: Bool) throws(SystemError) -> any LogFile {
    CountedFile(try base.create(name, size: size, isZeroed: isZeroed), self)
  }

  func count(_ change: Int) {
    counts.withLock { counts in
      counts.now += change
      counts.most = max(counts.most, counts.now)
    }
  }
}

private final class CountedFile: LogFile {
  private let base: any LogFile
  private let directory: CountingDirectory

  init(_ base: any LogFile, _ directory: CountingDirectory) {
    self.base = base
    self.directory = directory
    directory.count(1)
  }

  deinit { directory.count(-1) }

  func size(named name: String) -> Int? { base.size(named: name) }
  func read(_ space: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
    try base.read(space, at: offset)
  }
  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int { try base.write(first, second, at: offset) }
  func sync() throws(SystemError) { try base.sync() }
}
