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

/// Ends the process if a signal requests it before the event loop runs.
///
/// A start may read a large state and replay its journal for minutes, on the thread that will run the loop. Meanwhile
/// this thread waits for signals. Ending immediately loses nothing: it is like a crash of the process, which every
/// state survives and which keeps the epoch.
final class StartGuard: Sendable {
  private let wakeUp: WakeUp
  private let thread: Thread

  /// Starts the thread.
  /// - Parameters:
  ///   - signals: a descriptor that is readable when a signal has arrived; open until ``stop()``.
  ///   - next: returns the cause of the next signal; nil if there is none.
  ///   - end: ends the process. Called once, on the thread of the guard.
  init(
    _ signals: Int32, next: @escaping @Sendable () -> String?, end: @escaping @Sendable (_ cause: String) -> Void
  ) throws(SystemError) {
    let wakeUp = try WakeUp()
    self.wakeUp = wakeUp
    thread = try Thread("start guard") {
      var list = WaitList()
      while true {
        list.removeAll()
        list.add(signals, .readable)
        list.add(wakeUp.descriptor, .readable)
        guard (try? list.wait(until: nil)) != nil, list.ready(wakeUp.descriptor).isEmpty, !list.isBroken(signals)
        else { return }
        if let cause = next() { return end(cause) }
      }
    }
  }

  /// Ends the thread, and leaves pending signals to the event loop. A second call does nothing.
  func stop() {
    wakeUp.signal()
    thread.join()
  }
}
