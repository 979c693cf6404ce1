import FeedSystem

/// The signals that control the daemon, as requests to the loop.
struct Signals: ~Copyable {
  /// What a signal asks for, with a description of the signal and its sender.
  enum Request: Equatable {
    /// SIGHUP: read the configuration file again.
    case reload(cause: String)
    /// SIGTERM or SIGINT: end.
    case end(cause: String)
  }

  private let queue: SignalQueue

  /// Blocks the signals and queues them. Call before the process starts threads.
  init() throws(SystemError) {
    queue = try SignalQueue([SignalQueue.terminate, SignalQueue.interrupt, SignalQueue.hangUp])
  }

  /// The descriptor to poll for reading.
  var descriptor: Int32 { queue.descriptor }

  /// The next request; nil when no signal is pending.
  func next() throws(SystemError) -> Request? { try queue.next().map(Self.request) }

  static func request(_ arrival: SignalQueue.Arrival) -> Request {
    let sender = arrival.pid == 0 ? "" : " from pid \(arrival.pid) (uid \(arrival.uid))"
    let cause = SignalQueue.name(arrival.signal) + sender
    return arrival.signal == SignalQueue.hangUp ? .reload(cause: cause) : .end(cause: cause)
  }
}
