import FeedClient
import TestSupport
import Testing

@Suite("Feed, the asynchronous sequence")
struct FeedSequenceTests {
  private func rows(_ update: FeedUpdate?) -> [String]? {
    update?.mirror.map { mirror in
      mirror.sections.flatMap { $0.rows.map { String(decoding: $0.element, as: UTF8.self) } }
    }
  }

  @Test func sequenceDeliversSnapshotsDeltasAndInterruptions() async throws {
    let directory = try TemporaryDirectory()
    var daemon: DaemonProcess? = try DaemonProcess(directory: directory)
    let client = ClientCommand(socket: directory.file("feedd.sock"))
    try client.succeed("push", "f", "--define", "{\"id\":1}")
    var updates = Feed("f", socket: client.socket).makeAsyncIterator()
    let first = try await updates.next()
    expectEqual(rows(first), ["{\"id\":1}"])
    guard case .snapshot = first?.cause else { throw TestFailure("expected a snapshot: \(String(describing: first))") }
    // While the consumer does not iterate, changes are queued or composed. All of them arrive.
    for id in 2...5 { try client.succeed("push", "f", "{\"id\":\(id)}") }
    var last = first
    while rows(last)?.count != 5 {
      last = try await updates.next()
      guard case .delta = last?.cause else { throw TestFailure("expected a delta: \(String(describing: last))") }
    }
    // An earlier update keeps its rows.
    expectEqual(rows(first), ["{\"id\":1}"])
    try daemon?.stop()
    daemon = nil
    last = try await updates.next()
    guard case .interrupted = last?.cause else {
      throw TestFailure("expected an interruption: \(String(describing: last))")
    }
    expectEqual(rows(last)?.count, 5)
    daemon = try DaemonProcess(directory: directory)
    try client.succeed("push", "f", "--define", "{\"id\":9}")
    last = try await updates.next()
    while rows(last) != ["{\"id\":9}"] { last = try await updates.next() }
  }

  @Test("the delta that ends a feed is delivered before the interruption or the error", arguments: [true, false])
  func lastDelta(reconnects: Bool) async throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("push", "f", "--define", "{\"id\":1}")
    var updates = Feed("f", socket: client.socket, reconnects: reconnects).makeAsyncIterator()
    try await expectEqual(rows(updates.next()), ["{\"id\":1}"])
    try client.succeed("undefine", "f")
    let last = try await updates.next()
    guard case .delta(let delta) = last?.cause else {
      throw TestFailure("expected a delta: \(String(describing: last))")
    }
    expectEqual(delta.change.sectionsDeleted, [0])
    expectEqual(last?.mirror?.sections.count, 0)
    guard reconnects else {
      await #expect(throws: ClientError.self) { try await updates.next() }
      return
    }
    guard case .interrupted = try await updates.next()?.cause else { throw TestFailure("no interruption") }
    try client.succeed("push", "f", "--define", "{\"id\":2}")
    var next = try await updates.next()
    guard case .snapshot = next?.cause else {
      throw TestFailure("expected a snapshot: \(String(describing: next))")
    }
    while rows(next) != ["{\"id\":2}"] { next = try await updates.next() }
  }

  @Test func cancellationEndsTheLoop() async throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "f")
    let socket = client.socket
    let (begun, begin) = AsyncStream<Void>.makeStream()
    let loop = Task {
      var count = 0
      for try await _ in Feed("f", socket: socket) {
        count += 1
        begin.yield()
      }
      return count
    }
    for await _ in begun { break }
    loop.cancel()
    try await expectEqual(loop.value, 1)
  }

  @Test func refusedWatchThrows() async throws {
    let daemon = try DaemonProcess()
    var updates = Feed("absent", socket: daemon.socketPath, waits: false).makeAsyncIterator()
    await #expect(throws: ClientError.self) { try await updates.next() }
    try expect(await updates.next() == nil)
  }
}
