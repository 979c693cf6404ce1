import FeedSystem

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
