import FeedJSON
import FeedModel
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedStorage

/// Several runs of a daemon on one state directory, each of which changes something, writes an image or does neither, and ends
/// in any way.
struct LivesTests {
  private enum End: CaseIterable {
    case kill, stop, lossOfPower, stopAndLossOfPower
  }

  private static let rounds = TestEffort.count(40, long: 20_000)

  /// A start is never refused. It continues the epoch only if nothing acknowledged is missing.
  @Test(arguments: [Durability.process, .disk]) func everyStartHasWhatItPromises(_ durability: Durability) throws {
    for seed in 0..<Self.rounds { try play(durability, seed: UInt64(seed)) }
  }

  private func play(_ durability: Durability, seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let folder = try TemporaryDirectory()
    let path = folder.file("state")
    try PrivateDirectory.make(path)
    let files = SyncedDirectory(path)
    var boot = 1
    var lives: [String] = []
    /// What was acknowledged last: the epoch, the revision and the digest of the feed.
    var acknowledged: (epoch: String, revision: UInt64, answer: String)?
    var wasLost = false
    for life in 0..<Int.random(in: 2...6, using: &random) {
      let daemon: DurableEngine
      do {
        daemon = try DurableEngine(
          path, durability: durability, epoch: "epoch \(life)", files: files, boot: "boot \(boot)")
      } catch {
        Issue.record("seed \(seed), \(durability): after \(lives.joined(separator: ", ")): \(error)")
        return
      }
      if let before = acknowledged {
        let isWhole = daemon.catalog.revision == before.revision && Self.answer(daemon) == before.answer
        let mayLose = wasLost && durability == .process
        expect(isWhole || mayLose, "seed \(seed): after \(lives.joined(separator: ", "))")
        expect(
          isWhole || daemon.log.epoch != before.epoch,
          "seed \(seed): the epoch goes on without a change after \(lives.joined(separator: ", "))")
        expect(mayLose || daemon.log.epoch == before.epoch, "seed \(seed): after \(lives.joined(separator: ", "))")
      } else {
        daemon.ask("define", #"{"feed":"f","kind":"collection"}"#)
      }
      var deeds: [String] = []
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        if Int.random(in: 0..<3, using: &random) > 0 {
          deeds.append("change")
          let id = Int.random(in: 0..<9, using: &random)
          daemon.ask("update", #"{"feed":"f","element":{"id":\#(id),"in":\#(life)}}"#)
        } else {
          deeds.append("image")
          expect(daemon.writeImage())
        }
      }
      acknowledged = (daemon.log.epoch, daemon.catalog.revision, Self.answer(daemon))
      let end = End.allCases.randomElement(using: &random) ?? .kill
      if end == .stop || end == .stopAndLossOfPower { daemon.stop() }
      wasLost = end == .lossOfPower
      if end == .lossOfPower || end == .stopAndLossOfPower {
        files.losePower(keepsUnsynced: Bool.random(using: &random))
        boot += 1
      }
      lives.append((deeds + ["\(end)"]).joined(separator: "+"))
    }
  }

  private static func answer(_ daemon: DurableEngine) -> String { daemon.ask("verify", #"{"feed":"f"}"#, later: 0) }
}

/// A directory whose segments are in memory, and which knows what of them is synced. Other files are those of the system.
private final class SyncedDirectory: LogDirectory {
  /// The content of a file.
  private struct Content {
    var bytes: [UInt8]
    /// What a loss of power leaves.
    var synced: [UInt8]
  }

  private struct State {
    var contents: [Content] = []
    /// The indices in `contents` by name, and those that a loss of power leaves.
    var names: [String: Int] = [:]
    var syncedNames: [String: Int] = [:]
  }

  private let system: SystemDirectory
  private let state = Guarded(State())

  init(_ path: String) { system = SystemDirectory(path) }

  /// The power fails. What is not synced was written by chance, or is gone.
  func losePower(keepsUnsynced: Bool) {
    state.withLock { state in
      if keepsUnsynced {
        state.syncedNames = state.names
        for index in state.contents.indices { state.contents[index].synced = state.contents[index].bytes }
      } else {
        state.names = state.syncedNames
        for index in state.contents.indices { state.contents[index].bytes = state.contents[index].synced }
      }
    }
  }

  func names() throws(SystemError) -> [String] { state.withLock { $0.names.keys.sorted() } }
  func sync() throws(SystemError) { state.withLock { $0.syncedNames = $0.names } }
  var freeBytes: Int { 1 << 40 }

  func open(_ name: String) throws(SystemError) -> any LogFile {
    guard let index = state.withLock({ $0.names[name] }) else {
      throw SystemError(code: ENOENT, operation: "open", path: name)
    }
    return File(index, self)
  }

  func create(_ name: String, size: Int, isZeroed: Bool) throws(SystemError) -> any LogFile {
    let zeros = [UInt8](repeating: 0, count: size)
    return state.withLock { state in
      state.contents.append(Content(bytes: zeros, synced: zeros))
      state.names[name] = state.contents.count - 1
      return File(state.contents.count - 1, self)
    }
  }

  func rename(_ name: String, to other: String) throws(SystemError) {
    guard name.hasPrefix("log-") else { return try system.rename(name, to: other) }
    state.withLock { $0.names[other] = $0.names.removeValue(forKey: name) }
  }

  func remove(_ name: String) throws(SystemError) {
    guard name.hasPrefix("log-") else { return try system.remove(name) }
    state.withLock { $0.names[name] = nil }
  }

  private final class File: LogFile {
    private let index: Int
    private let directory: SyncedDirectory

    init(_ index: Int, _ directory: SyncedDirectory) { (self.index, self.directory) = (index, directory) }

    func size(named name: String) -> Int? {
      directory.state.withLock { $0.names[name] == index ? $0.contents[index].bytes.count : nil }
    }

    func write(
      _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
    ) throws(SystemError) -> Int {
      let bytes = Array(first) + Array(second)
      directory.state.withLock {
        $0.contents[index].bytes.replaceSubrange(offset..<offset + bytes.count, with: bytes)
      }
      return bytes.count
    }

    func read(_ space: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
      let bytes = directory.state.withLock { Array($0.contents[index].bytes[offset...].prefix(space.count)) }
      space.copyBytes(from: bytes)
      return bytes.count
    }

    func sync() throws(SystemError) {
      directory.state.withLock { $0.contents[index].synced = $0.contents[index].bytes }
    }
  }
}
