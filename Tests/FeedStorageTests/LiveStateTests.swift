import FeedJSON
import FeedModel
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedStorage

/// Reading a state while a daemon writes it: what a check and a backup take for a fault.
struct LiveStateTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("state") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// Makes two segments: two lives with different limits, with two batches and one.
  private func makeSegments() throws {
    for life in 0..<2 {
      var limits = Limits()
      limits.maxFeeds += life
      let daemon = try DurableEngine(path, limits: limits)
      if life == 0 { daemon.ask("define", #"{"feed":"c","kind":"collection"}"#) }
      daemon.ask("update", #"{"feed":"c","element":{"id":\#(life)}}"#)
    }
  }

  /// Reads the state as a backup does, and then as a check does.
  /// - Parameter meanwhile: called when the names of the segments were read.
  private func read(
    _ files: any LogDirectory, meanwhile: () -> Void = {}
  ) throws -> (segments: [UInt64], batches: Int) {
    let state = try StoredState(path, files, access: .locked, boot: BootIdentity.current)
    meanwhile()
    let copied = try state.chain.readLog(in: path, boot: state.boot).map(\.segment.header.number)
    var recovery = Recovery(state, into: Filler(try DurableEngine(directory.file("scratch")).engine))
    try recovery.run()
    return (copied, recovery.progress.batches)
  }

  /// The names as they were before the daemon began the second segment.
  private var earlyNames: EarlyNames { EarlyNames(path, without: SegmentHeader.name(of: 2)) }

  @Test("a segment that is begun while the log is read is no fault") func segmentBegunMeanwhile() throws {
    try makeSegments()
    try expect(read(earlyNames) == ([1], 2))
  }

  @Test("segments that an image replaces while the log is read are read all the same")
  func segmentsRemovedMeanwhile() throws {
    try makeSegments()
    let found = try read(SystemDirectory(path, isReadOnly: true)) {
      for number: UInt64 in 1...2 { expectEqual(unlink("\(path)/\(SegmentHeader.name(of: number))"), 0) }
    }
    expect(found == ([1, 2], 3))
  }

  @Test("a segment that the one before it names, and that does not exist, is missed") func missingSegment() throws {
    try makeSegments()
    expectEqual(unlink("\(path)/\(SegmentHeader.name(of: 2))"), 0)
    let error = #expect(throws: StorageError.self) { _ = try read(earlyNames) }
    expect(error?.kind == .lost && error?.path == "\(path)/\(SegmentHeader.name(of: 2))")
  }

  /// How often a state is read that always fails with an error.
  private func attempts(_ kind: StorageError.Kind, change: @escaping () -> Void = {}) -> Int {
    var count = 0
    #expect(throws: StorageError.self) {
      try LiveState.read(path) { () throws(StorageError) -> Void in
        count += 1
        change()
        throw StorageError(kind, path: path, reason: "a fault")
      }
    }
    return count
  }

  @Test("a state is read again only while it changes, and only for faults that a change explains")
  func attemptsToRead() throws {
    try makeSegments()
    var size: off_t = 0
    func change() {
      size += 1
      _ = truncate("\(path)/\(SegmentHeader.name(of: 1))", size)
    }
    expectEqual(attempts(.lost), 2)
    expectEqual(attempts(.lost, change: change), 20)
    expectEqual(attempts(.corrupt, change: change), 1)
  }
}

/// A directory as it was before a file appeared in it.
private final class EarlyNames: LogDirectory, @unchecked Sendable {
  private let base: SystemDirectory
  /// The name that the first reading of the names does not find.
  private let later: Guarded<String?>

  init(_ path: String, without later: String) {
    base = SystemDirectory(path, isReadOnly: true)
    self.later = Guarded(later)
  }

  func names() throws(SystemError) -> [String] {
    let missing = later.withLock { $0.take() }
    return try base.names().filter { $0 != missing }
  }
  func open(_ name: String) throws(SystemError) -> any LogFile { try base.open(name) }
  func create(_ name: String, size: Int, isZeroed: Bool) throws(SystemError) -> any LogFile {
    try base.create(name, size: size, isZeroed: isZeroed)
  }
  func rename(_ name: String, to other: String) throws(SystemError) { try base.rename(name, to: other) }
  func remove(_ name: String) throws(SystemError) { try base.remove(name) }
  func sync() throws(SystemError) { try base.sync() }
  var freeBytes: Int { base.freeBytes }
}
