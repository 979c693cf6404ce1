import FeedSystem

/// One message at a time, waited for.
enum RoundTrips {
  /// Sends a request that does nothing, again and again, each once the one before is answered.
  static func pings(_ server: some Server, count: Int) throws -> Latencies {
    var ping = try Ping(server)
    return try ping.run(count)
  }

  /// Pushes updates, each once the one before was answered and was read by a watcher.
  static func updates(_ server: some Server, _ job: PushJob) throws -> Latencies {
    try server.prepare()
    let pusher = try server.connect()
    let watcher = try server.subscribe()
    let pushes = server.pushes(job)
    var answers = server.answerCounter(job)
    var deliveries = server.deliveryCounter(job)
    var latencies = Latencies()
    for index in 0..<job.count {
      let start = MonotonicClock.now
      try pusher.writeAll(pushes[index % pushes.count])
      try receive(&deliveries, index + 1, watcher)
      try receive(&answers, index + 1, pusher)
      latencies.add(MonotonicClock.now - start)
    }
    return latencies
  }

  /// Reads until so many messages have come in all.
  static func receive(_ counter: inout MessageCounter, _ count: Int, _ stream: UnixStream) throws {
    try withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 16) { space in
      while counter.count < count {
        let read = try stream.read(into: space) ?? 0
        guard read > 0 else { throw BenchError("the server closed a connection") }
        counter.take(UnsafeRawBufferPointer(rebasing: space[..<read]))
      }
    }
  }
}

/// A connection that pings.
struct Ping: ~Copyable {
  private let stream: UnixStream
  private let request: Texts
  private var counter: MessageCounter
  private var sent = 0

  init(_ server: some Server) throws {
    stream = try server.connect()
    request = server.ping
    counter = server.pingCounter
  }

  mutating func run(_ count: Int) throws -> Latencies {
    var latencies = Latencies()
    for _ in 0..<count { latencies.add(try once()) }
    return latencies
  }

  /// Pings once; returns nanoseconds.
  mutating func once() throws -> UInt64 {
    let start = MonotonicClock.now
    try stream.writeAll(request[0])
    sent += 1
    try RoundTrips.receive(&counter, sent, stream)
    return MonotonicClock.now - start
  }
}
