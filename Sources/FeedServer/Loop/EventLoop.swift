import FeedEngine
import FeedModel
import FeedStorage
import FeedSystem

/// The daemon's one thread: it waits for sockets, timers and signals, hands what came to the engine, and writes what the
/// engine has.
///
/// A turn is: wait, read, let the engine end its turn, write each connection once, look after what is to be closed. No call
/// but the wait for events ever waits.
struct EventLoop: ~Copyable {
  let engine: Engine
  /// The state directory, held until the loop is gone; nil when nothing is kept.
  private let state: DurableState?
  let clock: ServerClock
  let log: Log
  let poll: EventPoll
  let signals: Signals
  let writer = SliceWriter()
  let slices: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>
  /// What is read from sockets in a turn lands here, one connection behind the other; only what was not executed is kept
  /// beyond the turn.
  let scratch: UnsafeMutableRawBufferPointer
  /// Bytes of it that this turn has used.
  var scratchUsed = 0
  /// What this turn has to execute, in order.
  var inputs: [TurnInput] = []
  var health = LogHealth()
  var listener: UnixListener?
  var reserve: ReserveDescriptor
  var connections = ConnectionTable()
  var now: Instant
  var shutdown: Shutdown
  var service: ServiceManager
  /// Until when no connection is accepted because there are no descriptors; nil when all is well.
  var acceptanceResumesAt: Instant?
  /// The file that SIGHUP has read again; nil when there is none.
  var configurationFile: ConfigurationFile?
  var sources = ManagedSources()

  /// Connections whose input the engine did not want.
  var parked: [ConnectionSlot] = []
  /// Connections whose socket takes bytes again.
  var writable: [ConnectionSlot] = []
  /// Connections that may have to be closed at the end of the turn.
  var noted: [ConnectionSlot] = []

  /// Clients turned away since the log said so, and when it may again.
  var turnedAway = 0
  var nextRefusalLine: Instant

  /// Counted for the log.
  var turns = 0
  var accepted = 0

  /// What the event queue hands back for descriptors that are no connections; an address is never so small.
  static let listenerToken: UInt64 = 1
  static let signalToken: UInt64 = 2
  static let fileEventToken: UInt64 = 3
  static let sourceReportToken: UInt64 = 4
  /// Bytes taken from one connection in a turn, so that one that never stops does not keep the others waiting.
  static let bytesPerTurn = 64 << 10
  /// Bytes taken from all connections in a turn, and so the most that is stored at once, but for frames longer than that.
  static let turnCapacity = 1 << 20
  /// The beginning of a frame that is copied in front of what is read next; a longer one is read to where it lies.
  static let shortInput = 4096

  init(
    engine: Engine, state: DurableState?, clock: ServerClock, listener: UnixListener,
    signals: consuming Signals, notify: Notify, log: Log, drainTimeout: Duration
  ) throws(SystemError) {
    let poll = try EventPoll()
    try poll.add(signals.descriptor, .readable, token: Self.signalToken)
    try poll.add(listener.descriptor, .readable, token: Self.listenerToken)
    self.poll = poll
    self.signals = signals
    self.listener = listener
    self.engine = engine
    self.clock = clock
    self.state = state
    self.log = log
    shutdown = Shutdown(drainTimeout: drainTimeout)
    slices = .allocate(capacity: SliceWriter.capacity)
    slices.initialize(repeating: UnsafeRawBufferPointer(start: nil, count: 0))
    reserve = ReserveDescriptor()
    scratch = .allocate(byteCount: Self.turnCapacity, alignment: 4096)
    now = clock.now
    nextRefusalLine = now
    service = ServiceManager(notify, log, now: now)
  }

  deinit {
    scratch.deallocate()
    slices.deallocate()
  }

  /// Where changes are stored; nil when nothing is kept.
  var store: Store? { state?.store }
}
