import FeedSystem

/// Pushes and reads on one thread. The pusher keeps a window of unanswered pushes full, and every connection is read when
/// bytes arrive. Messages are counted by length only, so that the server and not the load limits the measurement.
final class LoadLoop {
  private let poll: EventPoll
  private let connections: UnsafeMutableBufferPointer<LoadConnection>
  private let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 4096)
  private let job: PushJob
  /// The name of the server, for errors.
  private let server: String
  private let pushes: Texts
  private let fence: Texts?
  /// The number of bytes of pushes that were sent. The pushes are sent repeatedly.
  private var sentBytes = 0
  /// The number of connections that are not done.
  private var open: Int

  init(_ server: some Server, _ job: PushJob, pusher: UnixStream, watchers: [UnixStream]) throws {
    (self.job, self.server) = (job, server.name)
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

  /// Pushes all updates and reads until every watcher received all of them.
  /// - Returns: the number of deltas that the watchers read; a delta may combine several updates.
  func run() throws -> Int {
    try push(answered: 0)
    while open > 0 {
      let count = try poll.wait(milliseconds: 10_000)
      guard count > 0 else { throw timeout }
      for index in 0..<count {
        let token = UInt(poll.event(at: index).token)
        if let slot = UnsafeMutablePointer<LoadConnection>(bitPattern: token) { try read(slot) }
      }
    }
    return connections.dropFirst().reduce(0) { $0 + $1.counter.count - $1.counter.shortCount }
  }

  /// Names a connection that waits for messages.
  private var timeout: BenchmarkError {
    let place = connections.firstIndex { !$0.isDone } ?? 0
    let counter = connections[place].counter
    let connection = place == 0 ? "that pushes" : "of watcher \(place)"
    return BenchmarkError(
      """
      cannot measure \(server): \(open) connections received nothing for 10 s; the one \(connection) has \(counter.count) of \
      \(job.count) messages
      """)
  }

  private func read(_ slot: UnsafeMutablePointer<LoadConnection>) throws {
    switch SocketIO.read(slot.pointee.stream.descriptor, scratch) {
    case .bytes(let count): slot.pointee.counter.count(UnsafeRawBufferPointer(rebasing: scratch[..<count]))
    case .wouldBlock: return
    case .end: throw BenchmarkError("the server closed a connection")
    case .failed(let code): throw SystemError(code: code, operation: "read from the server")
    }
    if slot.pointee.isPusher {
      let answered = slot.pointee.counter.count
      // NATS may also send a PING, which counts as an answer.
      if answered >= job.count { try finishPushing(slot) } else { try push(answered: answered) }
    } else if fence == nil ? slot.pointee.counter.count >= job.count : slot.pointee.counter.shortCount > 0 {
      finish(slot)
    }
  }

  private func finish(_ slot: UnsafeMutablePointer<LoadConnection>) {
    if slot.pointee.isDone { return }
    slot.pointee.isDone = true
    open -= 1
  }

  /// Sends a fence to the watchers after all pushes were answered.
  private func finishPushing(_ pusher: UnsafeMutablePointer<LoadConnection>) throws {
    finish(pusher)
    guard let fence else { return }
    for connection in connections.dropFirst() { try connection.stream.writeAll(fence[0]) }
  }

  /// Sends as many pushes as the window and the socket allow.
  private func push(answered: Int) throws {
    let goal = position(min(answered + job.window, job.count))
    while sentBytes < goal {
      let start = sentBytes % pushes.bytes
      let length = min(goal - sentBytes, pushes.bytes - start)
      let part = UnsafeRawBufferPointer(rebasing: pushes.joined[start..<(start + length)])
      // The socket is full. Reading the next answer calls this function again.
      guard let count = try connections[0].stream.write(part) else { return }
      sentBytes += count
    }
  }

  private func position(_ index: Int) -> Int {
    index / pushes.count * pushes.bytes + pushes.offset(of: index % pushes.count)
  }
}

/// One connection of the load. It is in raw memory, and the event queue holds its address.
struct LoadConnection {
  let stream: UnixStream
  var counter: MessageCounter
  let isPusher: Bool
  /// Whether all expected messages arrived.
  var isDone = false
}

/// Counts messages in a stream of bytes by their lengths only.
struct MessageCounter {
  /// The length of each message; 0 for frames: a big-endian length of four bytes, followed by that many bytes.
  private let fixedLength: Int
  /// The maximum size of a short frame: an answer among deltas.
  private let shortLength: Int
  /// The number of complete messages.
  private(set) var count = 0
  /// The number of short frames that began.
  private(set) var shortCount = 0
  /// The number of bytes missing from the present message.
  private var rest = 0
  /// The bytes of a length that arrived in pieces, and their number.
  private var length: UInt32 = 0
  private var lengthBytes = 0

  /// A counter of frames of feedd.
  init(shortLength: Int = 0) { (fixedLength, self.shortLength) = (0, shortLength) }

  /// A counter of messages of one length.
  init(length: Int) { (fixedLength, shortLength, rest) = (length, 0, length) }

  mutating func count(_ bytes: UnsafeRawBufferPointer) {
    if fixedLength > 0 { return countFixed(bytes.count) }
    var offset = 0
    while offset < bytes.count {
      if rest > 0 {
        let part = min(rest, bytes.count &- offset)
        rest &-= part
        offset &+= part
        if rest == 0 { count &+= 1 }
      } else if lengthBytes == 0, bytes.count &- offset >= 4 {
        begin(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
        offset &+= 4
      } else {
        length = length << 8 | UInt32(bytes[offset])
        lengthBytes += 1
        offset &+= 1
        if lengthBytes == 4 { begin(length) }
      }
    }
  }

  private mutating func countFixed(_ bytes: Int) {
    let received = fixedLength - rest + bytes
    count += received / fixedLength
    rest = fixedLength - received % fixedLength
  }

  @inline(__always)
  private mutating func begin(_ length: UInt32) {
    rest = Int(length)
    lengthBytes = 0
    if rest <= shortLength { shortCount &+= 1 }
  }
}
