import FeedJSON
import Testing

@testable import FeedGroup

/// What the servers tell of a stream.
@Suite struct StreamStateTests {
  private func state(replicas: Int, metadata: String) throws -> StreamState {
    let text =
      "{\"config\":{\"description\":\"d\",\"num_replicas\":\(replicas)\(metadata)},"
      + "\"state\":{\"first_seq\":3,\"last_seq\":9},\"cluster\":{\"leader\":\"n1\"}}"
    return try #require(JSONObject(text).flatMap(StreamState.init))
  }

  @Test func serversBefore211DoNotTellTheirVersion() throws {
    let old = try state(replicas: 3, metadata: "")
    #expect(old.version == nil && !old.isSafeInCluster)
    #expect((old.first, old.last, old.leader) == (3, 9, "n1"))
    let new = try state(replicas: 3, metadata: ",\"metadata\":{\"_nats.level\":\"5\",\"_nats.ver\":\"2.15.1\"}")
    #expect(new.version == "2.15.1" && new.isSafeInCluster)
    // What a user wrote there says nothing.
    #expect(try !state(replicas: 3, metadata: ",\"metadata\":{\"owner\":\"a\"}").isSafeInCluster)
  }

  @Test func oneCopyIsEqualToItself() throws {
    #expect(try state(replicas: 1, metadata: "").isSafeInCluster)
  }
}
