import FeedJSON
import TestSupport
import Testing

@testable import FeedGroup

/// What the servers tell of a stream.
struct StreamStateTests {
  private func state(replicas: Int, metadata: String, gaps: String = "") throws -> StreamState {
    let text =
      "{\"config\":{\"description\":\"d\",\"num_replicas\":\(replicas)\(metadata)},"
      + "\"state\":{\"first_seq\":3,\"last_seq\":9\(gaps)},\"cluster\":{\"leader\":\"n1\"}}"
    return try require(JSONObject(text).flatMap(StreamState.init))
  }

  @Test func serversBefore211DoNotTellTheirVersion() throws {
    let old = try state(replicas: 3, metadata: "")
    expect(old.version == nil && !old.isSafeInCluster)
    expect((old.first, old.last, old.leader) == (3, 9, "n1"))
    let new = try state(replicas: 3, metadata: ",\"metadata\":{\"_nats.level\":\"5\",\"_nats.ver\":\"2.15.1\"}")
    expect(new.version == "2.15.1" && new.isSafeInCluster)
    // What a user wrote there says nothing.
    try expect(!state(replicas: 3, metadata: ",\"metadata\":{\"owner\":\"a\"}").isSafeInCluster)
  }

  @Test func noMessageIsMissingBehindTheLastGap() throws {
    try expectEqual(state(replicas: 1, metadata: "").unbroken, 3)
    try expectEqual(state(replicas: 1, metadata: "", gaps: ",\"deleted\":[5,7,6],\"num_deleted\":3").unbroken, 8)
    try expectEqual(state(replicas: 1, metadata: "", gaps: ",\"deleted\":[]").unbroken, 3)
  }

  @Test func oneCopyIsEqualToItself() throws {
    try expect(state(replicas: 1, metadata: "").isSafeInCluster)
  }
}
