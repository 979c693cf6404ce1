import FeedSystem
import Glibc
import TestSupport
import Testing

/// A database of a managed feed that takes long to read.
@Suite("Slow databases") struct SlowDatabaseTests {
  private static let depth = 14

  /// A chain of views, each of which reads the one below twice. SQLite takes a second to compile a query over the last one,
  /// and cannot be interrupted meanwhile.
  private static let views =
    (0..<8).map { "CREATE TABLE t\($0) (id); INSERT INTO t\($0) VALUES (1);" }.joined()
    + "CREATE VIEW v0 AS SELECT t0.id FROM \((0..<8).map { "t\($0)" }.joined(separator: ","));"
    + (0..<depth).map {
      "CREATE VIEW v\($0 + 1) AS SELECT (SELECT id FROM v\($0)) + (SELECT id FROM v\($0)) AS id;"
    }.joined()

  /// Counts until the query has taken the most steps that one look may take, some tens of seconds.
  private static let endless =
    "(WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c)"

  private static let list = #"{"feed": "list", "kind": "array"}"#
  private static let slow = """
    {"feed": "slow", "kind": "managed", "database": "contacts.sqlite",
     "query": "SELECT v\(depth).id, \(endless) AS n FROM v\(depth)"}
    """

  @Test("nothing waits for a slow database: clients, the store, a reload and the end")
  func nothingWaits() throws {
    let set = try ConfiguredDaemon(#"{"feeds": [\#(Self.list), \#(Self.slow)]}"#, contacts: Self.views, isKept: true)
    func isReading() throws -> Bool {
      try set.ask("describe", #"{"feed":"slow"}"#)["result"]["source"]["status"].string == "starting"
    }
    /// Waits until the store has acknowledged a change, and so all changes of the configuration before it.
    func insert() throws {
      try expect(set.ask("insert", #"{"feed":"list","elements":[1]}"#)["result"].has("revision"))
    }
    try insert()
    try expect(isReading())
    try set.reload(#"{"feeds": [{"feed": "more", "kind": "array"}, \#(Self.list), \#(Self.slow)]}"#)
    try insert()
    try expect(set.ask("describe", #"{"feed":"more"}"#).has("result"))
    try expect(isReading())
    // The thread of a feed that goes ends after its query. Another one begins with the feed.
    try set.reload(#"{"feeds": [\#(Self.list)]}"#)
    try insert()
    try expectEqual(set.ask("describe", #"{"feed":"slow"}"#)["error"]["code"].int, -32000)
    try set.reload(#"{"feeds": [\#(Self.list), \#(Self.slow)]}"#)
    try insert()
    try expect(isReading())
    try set.restart(signal: SIGTERM)
    try expect(isReading())
    try insert()
    try expectEqual(set.daemon.stop(), 0)
    expect(!set.daemon.log.contains("managed feed slow"))
  }
}
