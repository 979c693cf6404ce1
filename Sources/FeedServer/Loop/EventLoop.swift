import FeedEngine
import FeedModel
import FeedStorage
import FeedSystem

/// The daemon's main thread: it waits for sockets, timers and signals, and lets the turn do the work.
///
/// A cycle is: wait, handle signals and reports of other threads, run the turn, look after timers and images. No call but the
/// wait for events ever blocks.
struct EventLoop: ~Copyable {
  var turn: Turn
  var link: SocketLink
  /// The state directory, held until the loop is gone; nil when nothing is kept.
  private let state: DurableState?
  let clock: ServerClock
  let log: Log
  let signals: Signals
  var health = LogHealth()
  var shutdown: Shutdown
  var service: ServiceManager
  var sources = ManagedSources()
  /// The file that SIGHUP reads again; nil when there is none.
  var configurationFile: ConfigurationFile?
  /// The time of this cycle.
  var now: Instant
  /// Cycles so far, for the log.
  var cycles = 0

  init(
    engine: Engine, state: DurableState?, clock: ServerClock, listener: UnixListener,
    signals: consuming Signals, notify: Notify, log: Log, drainTimeout: Duration
  ) throws(SystemError) {
    let commitLog: any CommitLog = state?.log ?? NoLog()
    let link = try SocketLink(listener, log)
    try link.add(signals.descriptor, as: .signals)
    if let descriptor = commitLog.descriptor { try link.add(descriptor, as: .commitLog) }
    now = clock.now
    turn = Turn(engine, log: commitLog, now: now)
    self.link = link
    self.signals = signals
    self.clock = clock
    self.state = state
    self.log = log
    shutdown = Shutdown(drainTimeout: drainTimeout)
    service = ServiceManager(notify, log, now: now)
  }

  var engine: Engine { turn.engine }

  /// Where changes are stored; nil when nothing is kept.
  var storage: SQLiteLog? { state?.log }
}
