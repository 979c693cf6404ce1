import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedStorage

/// Other programs change the files of the log while the daemon uses them.
@Suite struct SegmentFilesTests {
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
    let size = FileSize.of(segment) ?? 0
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
    for id in 0..<30 { #expect(try push(daemon, id).has("result")) }
    try make(change)
    for id in 100..<103 {
      let error = try push(daemon, id)["error"]
      #expect(error["code"].int == -32008 && error["message"].string?.contains("segment") == true, "\(error)")
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
      #expect(try push(daemon, 1).has("result"))
    }
    let state = daemon.visibleState
    try expectEqual(difference(DurableEngine(path).visibleState, state), nil)
  }
}
