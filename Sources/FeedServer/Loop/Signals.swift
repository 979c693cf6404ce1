import FeedModel
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

/// The phases of the daemon's end.
///
/// The first request to end begins draining: `bye` is sent and queued output is written, for at most `drainTimeout`. A
/// second request ends draining immediately.
struct Shutdown {
  private enum Phase {
    case serving
    case draining(until: Instant)
    case over
  }

  private let drainTimeout: Duration
  private var phase = Phase.serving
  /// Whether the end was requested more than once. Then nothing that takes time is done.
  private(set) var isHurried = false
  /// Whether the state cannot be continued, and is loaded again from the group by another start.
  var mustRejoin = false

  init(drainTimeout: Duration) { self.drainTimeout = drainTimeout }

  /// Begins draining at the first request to end.
  /// - Returns: false if the daemon was already ending. It then ends immediately.
  mutating func request(now: Instant) -> Bool {
    switch phase {
    case .serving:
      phase = .draining(until: now.adding(nanoseconds: drainTimeout.clampedNanoseconds))
      return true
    case .draining:
      isHurried = true
      phase = .draining(until: now)
      return false
    case .over: return false
    }
  }

  /// Whether draining is over: no connection is left, or it timed out.
  func isDue(openConnections: Int, now: Instant) -> Bool {
    guard case .draining(let end) = phase else { return false }
    return openConnections == 0 || end <= now
  }

  /// Records that the daemon has ended.
  mutating func finish() { phase = .over }

  var isOver: Bool { if case .over = phase { true } else { false } }

  /// The time when draining times out; nil while serving.
  var deadline: Instant? { if case .draining(let end) = phase { end } else { nil } }
}
