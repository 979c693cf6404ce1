import FeedJSON
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedClient

struct ConnectionTests {
  /// Returns a connection and the daemon's end of it. The daemon can answer in advance, because requests are numbered from 1.
  private func pair() throws -> (client: Connection, daemon: RawClient) {
    var ends: [Int32] = [-1, -1]
    try require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    let client = try Connection(UnixStream(owning: Descriptor(owning: ends[0])))
    return (client, RawClient(UnixStream(owning: Descriptor(owning: ends[1]))))
  }

  private func revisions(_ client: Connection) throws -> [Int] {
    var revisions: [Int] = []
    while case .notification(let notification)? = try client.next() {
      revisions.append(notification.params.member("revision")?.int ?? -1)
    }
    return revisions
  }

  private func bookmark(_ revision: Int) -> String {
    "{\"jsonrpc\":\"2.0\",\"method\":\"bookmark\",\"params\":{\"feed\":\"f\",\"revision\":\(revision)}}"
  }

  private func call(_ client: Connection, deadline: UInt64? = nil) throws -> Int? {
    try client.call("ping", params: { $0.append("{\"n\":1}") }, deadline: deadline) { $0.member("n")?.int }
  }

  @Test func callsReceiveTheirAnswersAndNotificationsStayInOrder() throws {
    let (client, daemon) = try pair()
    try daemon.send(bookmark(1))
    try daemon.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"n\":11}}")
    try daemon.send(bookmark(2))
    try expectEqual(call(client), 11)
    try daemon.send("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"n\":12}}")
    try daemon.send(bookmark(3))
    try expectEqual(call(client), 12)
    try expectEqual(revisions(client), [1, 2, 3])
    let request = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"n\":1}}"
    try expectEqual(daemon.receive(), request)
  }

  @Test func refusedCallsThrow() throws {
    let (client, daemon) = try pair()
    try daemon.send(
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"no\",\"data\":{\"feed\": \"f\"}}}")
    let refusal = RemoteError(code: -32000, message: "no", data: utf8("{\"feed\":\"f\"}"))
    #expect(throws: ClientError.refused(refusal)) { try call(client) }
    // An error without an id refers to the last request, which the daemon could not parse.
    try daemon.send("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"what?\"}}")
    #expect(throws: ClientError.refused(RemoteError(code: -32700, message: "what?"))) { try call(client) }
  }

  @Test func framesBeforeTheEndAreDelivered() throws {
    let (client, daemon) = try pair()
    try daemon.send(bookmark(1))
    try daemon.send(
      "{\"jsonrpc\":\"2.0\",\"method\":\"bye\",\"params\":{\"reason\":\"shutdown\",\"message\":\"good night\"}}")
    daemon.stream.shutDown(.both)
    let bye = Bye(reason: "shutdown", message: "good night")
    #expect(throws: ClientError.closed(bye)) { try call(client) }
    expectEqual(client.bye, bye)
    let (other, silent) = try pair()
    silent.stream.shutDown(.both)
    #expect(throws: ClientError.closed(nil)) { try call(other) }
  }

  @Test func timeoutsAndInvalidFramesThrow() throws {
    let (client, daemon) = try pair()
    #expect(throws: ClientError.timedOut) { try call(client, deadline: MonotonicClock.now) }
    try daemon.send("{\"jsonrpc\":\"2.0\"")
    #expect(throws: ClientError.self) { try call(client) }
    let (other, confused) = try pair()
    try confused.send("[]")
    #expect(throws: ClientError.malformed(MalformedMessage("a message that is neither a response nor a notification")))
    {
      try call(other)
    }
  }

  @Test func requestLargerThanTheSocketBufferIsSentInPieces() throws {
    let (client, daemon) = try pair()
    let text = String(repeating: "x", count: 4 << 20)
    client.send("update") { $0.append(string: "\"\(text)\"") }
    try client.flush()
    expect(client.hasOutput)
    // The daemon must read before the rest can be sent, and both ends are on this thread.
    let head = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"update\",\"params\":"
    let expected = RawClient.frame(Array("\(head)\"\(text)\"}".utf8))
    var taken: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 20)
    while taken.count < expected.count {
      let count = try chunk.withUnsafeMutableBytes { try daemon.stream.read(into: $0) } ?? 0
      taken += chunk[..<count]
      try client.flush()
    }
    expectEqual(taken, expected)
    expect(!client.hasOutput)
  }

  @Test("a daemon that speaks another version of the protocol is refused") func otherVersion() throws {
    let (client, daemon) = try pair()
    try daemon.send(#"{"jsonrpc":"2.0","id":1,"result":{"protocol":2,"epoch":"e","revision":0}}"#)
    let reason = MalformedMessage("version 2; this client speaks version 1")
    #expect(throws: ClientError.malformed(reason)) { try client.hello(client: "test") }
  }

  @Test("a request above the daemon's maxFrame is refused and not queued") func tooLong() throws {
    let (client, daemon) = try pair()
    let hello = "{\"protocol\":1,\"epoch\":\"e\",\"revision\":0,\"limits\":{\"maxFrame\":100}}"
    try daemon.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\(hello)}")
    _ = try client.hello(client: "test")
    _ = try daemon.receive()
    func request(_ id: Int, _ text: String) -> String {
      "{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"put\",\"params\":\"\(text)\"}"
    }
    func send(_ text: String) throws -> Int {
      try client.sendIfAccepted("put") { $0.append(string: "\"\(text)\"") }
    }
    let longest = String(repeating: "x", count: 100 - request(2, "").utf8.count)
    let refusal = RemoteError(
      code: -32600,
      message: "invalid request: put has 101 bytes, and the daemon accepts 100; "
        + "send less at once, or start feedd with a larger --max-frame")
    #expect(throws: ClientError.refused(refusal)) { try send(longest + "x") }
    #expect(throws: ClientError.refused(refusal)) {
      try client.call("put", params: { $0.append(string: "\"\(longest)x\"") }) { _ in }
    }
    expect(!client.hasOutput)
    try expectEqual(send(longest), 2)
    try client.flush()
    try expectEqual(daemon.receive(), request(2, longest))
  }
}
