import FeedSystem

/// The signals that control the daemon, as requests to the loop.
struct Signals: ~Copyable {
  /// The request of a signal, with a description of the signal and its sender.
  enum Request: Equatable {
    /// SIGHUP: reload the configuration file.
    case reload(cause: String)
    /// SIGTERM or SIGINT: end.
    case end(cause: String)
  }

  private let ends: SignalQueue
  private let reloads: SignalQueue

  /// Blocks the signals and queues them. Must be called before the process starts threads.
  init() throws(SystemError) {
    let ends = try SignalQueue([SignalQueue.terminate, SignalQueue.interrupt])
    reloads = try SignalQueue([SignalQueue.hangUp])
    self.ends = ends
  }

  /// The descriptors to poll for reading.
  var descriptors: [Int32] { [ends.descriptor, reloads.descriptor] }

  /// Returns the next request; nil if no signal is pending.
  func next() throws(SystemError) -> Request? {
    if let arrival = try ends.next() { return Self.request(arrival) }
    return try reloads.next().map(Self.request)
  }

  /// Calls `end` for a signal to end during the start. Other signals wait for the event loop.
  func guardStart(_ end: @escaping @Sendable (_ cause: String) -> Void) throws(SystemError) -> StartGuard {
    let descriptor = ends.descriptor
    return try StartGuard(
      descriptor,
      next: {
        guard let arrival = (try? SignalQueue.next(from: descriptor)).flatMap(\.self) else { return nil }
        return Self.cause(arrival)
      }, end: end)
  }

  static func request(_ arrival: SignalQueue.Arrival) -> Request {
    arrival.signal == SignalQueue.hangUp ? .reload(cause: cause(arrival)) : .end(cause: cause(arrival))
  }

  private static func cause(_ arrival: SignalQueue.Arrival) -> String {
    let sender = arrival.pid == 0 ? "" : " from pid \(arrival.pid) (uid \(arrival.uid))"
    return SignalQueue.name(arrival.signal) + sender
  }
}
