import FeedSystem

/// Ends the process when a signal asks for it before the event loop runs.
///
/// A start may read a large state and execute its journal for minutes, on the thread that will run the loop. This thread waits
/// for the signals meanwhile. Ending at once loses nothing: it is the same as a crash, which every state survives, and a
/// crash of the process keeps the epoch.
final class StartGuard: Sendable {
  private let wakeUp: WakeUp
  private let thread: Thread

  /// Starts the thread.
  /// - Parameters:
  ///   - signals: a descriptor that is readable when a signal has arrived; open until ``stop()``.
  ///   - next: takes the next signal and returns its cause; nil when there is none.
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

  /// Leaves signals that were not taken to the event loop. A second call does nothing.
  func stop() {
    wakeUp.signal()
    thread.join()
  }
}
