import Glibc

/// Delays the signals that end this process while it has files that it must remove first.
///
///     let signals = DelayedSignals()
///     try copy(isCancelled: { signals.arePending })
///     signals.deliver()  // ends the process by a signal that arrived
///
/// Signals that the process ignores, such as SIGHUP after nohup(1), stay ignored.
public final class DelayedSignals {
  private static let numbers = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
  private var delayed = sigset_t()
  private var former = sigset_t()

  /// Blocks SIGINT, SIGTERM, SIGHUP and SIGQUIT.
  /// - Precondition: the process has one thread; another one would still receive the signals.
  public init() {
    sigemptyset(&delayed)
    for number in Self.numbers {
      // The kernel keeps an ignored signal while it is blocked, so it must not be blocked.
      if SignalQueue.isIgnored(number) { continue }
      sigaddset(&delayed, number)
    }
    pthread_sigmask(SIG_BLOCK, &delayed, &former)
  }

  /// Whether a delayed signal has arrived.
  public var arePending: Bool {
    var pending = sigset_t()
    guard sigpending(&pending) == 0 else { return false }
    return Self.numbers.contains { sigismember(&delayed, $0) == 1 && sigismember(&pending, $0) == 1 }
  }

  /// Ends the delay. Signals that have arrived take effect before this method returns.
  public func deliver() { pthread_sigmask(SIG_SETMASK, &former, nil) }
}
