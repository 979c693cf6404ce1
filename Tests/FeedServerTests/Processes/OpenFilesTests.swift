import FeedModel
import FeedSQLite
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedServer

@Suite("Open files") struct OpenFilesTests {
  @Test("connections yield to managed feeds, one remains")
  func shares() {
    var limits = Limits()
    (limits.maxConnections, limits.reservedConnections) = (100, 4)
    let plenty = OpenFiles(limits) { $0 }
    expectEqual(plenty.connections(managedFeeds: 50).allowed, 100)
    expectEqual(plenty.connections(managedFeeds: 50).shortage, nil)
    let few = OpenFiles(limits) { min($0, 60) }
    expectEqual([0, 1, 3, 4, 100].map { few.connections(managedFeeds: $0).allowed }, [24, 18, 6, 1, 1])
    expectEqual(few.connections(managedFeeds: 1).shortage?.hasPrefix("only 60 files may be open"), true)
  }

  @Test("managed feeds that the configuration adds take descriptors from connections, not from the reserve")
  func managedFeeds() throws {
    let directory = try TemporaryDirectory()
    let (path, file) = (directory.file("s"), directory.file("feedd.json"))
    try Database(path: directory.file("d.sqlite"), access: .create).execute(
      "PRAGMA journal_mode = WAL; CREATE TABLE t (id); INSERT INTO t VALUES (1)")
    func configure(managedFeeds count: Int) throws {
      let feeds = (0..<count).map {
        #"{"feed":"m\#($0)","kind":"managed","database":"d.sqlite","query":"SELECT id FROM t"}"#
      }
      try SmallFile.replace(file, with: Array(#"{"feeds":[\#(feeds.joined(separator: ","))]}"#.utf8))
    }
    try configure(managedFeeds: 0)
    let process = try ChildProcess(
      "sh",
      [
        "-c", "ulimit -n 60; exec \"$@\"", "sh", try BuildProducts.program("feedd"), "--socket", path, "--state",
        directory.file("state"), "--config", file,
      ])
    try process.errors.wait(for: "listens at")
    let first = try RawClient(path: path)
    func maxConnections(_ client: RawClient) throws -> Int? {
      try client.send(#"{"jsonrpc":"2.0","id":1,"method":"hello"}"#)
      return try client.receiveJSON()["result"]["limits"]["maxConnections"].int
    }
    // Without 32 descriptors for the daemon and 4 in reserve.
    try expectEqual(maxConnections(first), 24)
    try configure(managedFeeds: 2)
    process.signal(SIGHUP)
    try process.errors.wait(for: "maxConnections is 12;")
    try expectEqual(maxConnections(first), 12)
    // The daemon's own user may use the reserve.
    let clients = try (0..<15).map { _ in try RawClient(path: path) }
    for (id, client) in clients.enumerated() { try client.ping(id) }
    let refused = try RawClient(path: path).receiveToEnd()
    try expectEqual(refused.map { try JSONValue($0)["params"]["reason"].string }, ["limit"])
    for feed in ["m0", "m1"] {
      try first.send(#"{"jsonrpc":"2.0","id":1,"method":"watch","params":{"feed":"\#(feed)"}}"#)
      _ = try first.receive(having: #"{"id":1}"#)
    }
    try configure(managedFeeds: 0)
    process.signal(SIGHUP)
    try process.errors.wait(for: "undefined m0, m1")
    try expectEqual(maxConnections(clients[0]), 24)
    try RawClient(path: path).ping(1)
    expect(!process.errors.text.contains("other limits"))
    process.signal(SIGTERM)
    try expectEqual(process.waitForExit(), 0)
  }
}
