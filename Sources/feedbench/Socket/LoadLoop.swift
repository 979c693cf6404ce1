import FeedSystem

/// One thread that pushes and reads: the pusher keeps a window of unanswered pushes full, every connection is read as its
/// bytes come, and messages are counted by their lengths, so that the server and not the load is what is measured.
final class LoadLoop {
  private let poll: EventPoll
  private let connections: UnsafeMutableBufferPointer<LoadConnection>
  private let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
  private let job: PushJob
  private let pushes: Texts
  private let fence: Texts?
  /// Bytes of pushes sent so far; pushes are sent again and again from the first.
  private var sentBytes = 0
  private var hasFenced = false
  /// Connections that are not done.
  private var open: Int

  /// - Parameter watchers: connections that are subscribed already.
  init(_ server: some Server, _ job: PushJob, pusher: UnixStream, watchers: [UnixStream]) throws {
    self.job = job
    pushes = server.pushes(job)
    fence = server.fence
    poll = try EventPoll()
    open = watchers.count + 1
    connections = .allocate(capacity: open)
    let streams = [pusher] + watchers
    for (place, stream) in streams.enumerated() {
      try stream.setNonblocking(true)
      let counter = place == 0 ? server.answerCounter(job) : server.deliveryCounter(job)
      let slot = connections.baseAddress.unsafelyUnwrapped + place
      slot.initialize(to: LoadConnection(stream: stream, counter: counter, isPusher: place == 0))
      try poll.add(stream.descriptor, .readable, token: UInt64(UInt(bitPattern: slot)))
    }
  }

  deinit {
    connections.deinitialize()
    connections.deallocate()
    scratch.deallocate()
  }

  /// Pushes everything and reads until every watcher has everything.
  /// - Returns: deltas or messages that the watchers read; one may stand for several updates.
  func run() throws -> Int {
    try push(answered: 0)
    while open > 0 {
      let count = try poll.wait(milliseconds: 10_000)
      guard count > 0 else { throw BenchError("nothing came for ten seconds; \(open) connections wait") }
      for index in 0..<count {
        let token = UInt(poll.event(at: index).token)
        if let slot = UnsafeMutablePointer<LoadConnection>(bitPattern: token) { try read(slot) }
      }
    }
    return connections.dropFirst().reduce(0) { $0 + $1.counter.count - $1.counter.shortCount }
  }

  private func read(_ slot: UnsafeMutablePointer<LoadConnection>) throws {
    switch SocketIO.read(slot.pointee.stream.descriptor, scratch) {
    case .bytes(let count): slot.pointee.counter.take(UnsafeRawBufferPointer(rebasing: scratch[..<count]))
    case .wouldBlock: return
    case .end: throw BenchError("the server closed a connection")
    case .failed(let code): throw SystemError(code: code, operation: "read from the server")
    }
    if slot.pointee.isPusher {
      let answered = slot.pointee.counter.count
      if answered == job.count { try finishPushing(slot) } else { try push(answered: answered) }
    } else if fence == nil ? slot.pointee.counter.count == job.count : slot.pointee.counter.shortCount > 0 {
      finish(slot)
    }
  }

  private func finish(_ slot: UnsafeMutablePointer<LoadConnection>) {
    if slot.pointee.isDone { return }
    slot.pointee.isDone = true
    open -= 1
  }

  /// All pushes are answered: the watchers are asked to say when they have everything.
  private func finishPushing(_ pusher: UnsafeMutablePointer<LoadConnection>) throws {
    finish(pusher)
    guard fence != nil else { return }
    for connection in connections.dropFirst() { try sendFence(connection.stream) }
  }

  private func sendFence(_ stream: UnixStream) throws {
    if let fence { try stream.writeAll(fence[0]) }
  }

  /// Sends as many pushes as the window has room for and the socket takes.
  private func push(answered: Int) throws {
    let goal = position(min(answered + job.window, job.count))
    while sentBytes < goal {
      let start = sentBytes % pushes.bytes
      let length = min(goal - sentBytes, pushes.bytes - start)
      let part = UnsafeRawBufferPointer(rebasing: pushes.joined[start..<(start + length)])
      // Answers are under way when the socket is full, and what they bring about is the next try.
      guard let count = try connections[0].stream.write(part) else { return }
      sentBytes += count
    }
  }

  /// Where, in all that is to be sent, push number `index` begins.
  private func position(_ index: Int) -> Int {
    index / pushes.count * pushes.bytes + pushes.offset(of: index % pushes.count)
  }
}
