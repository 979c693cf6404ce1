import FeedJSON
import FeedModel

/// The daemon without its edges: requests and the clock come in, bytes to write and events come out.
///
/// It makes no system call, so a simulator can drive it. One turn of its owner's loop is: `receive` what arrived,
/// `endTurn`, write what `takePendingOutput` names, `finishWrites`. Everything here runs on one thread, which is what
/// guards all its state; nothing is locked.
public final class Engine {
  public internal(set) var limits: Limits
  public let identity: ServerIdentity
  /// All feeds.
  public let catalog: Catalog
  /// Told of events worth a line in the log.
  public var log: (EngineEvent) -> Void = { _ in }

  /// Who may do what.
  var access: AccessControl
  /// The definitions of the configuration that was applied last.
  var configured = ConfiguredFeeds()

  /// Connections by `ConnectionID.rawValue`; empty places are reused.
  var sessions: [Session?] = []
  var freeIDs: [Int] = []
  /// Connections that count for the limits: those that were refused do not.
  var connectionCount = 0
  /// Connections and waiting bytes of each user.
  var users: [UInt32: UserUsage] = [:]

  /// Whether what may change something is stored before it is executed.
  public let isDurable: Bool
  /// The requests of this turn that must be stored.
  var journal = ByteBuffer()
  /// The time at which everything of a durable turn is executed.
  var turnTime: Instant?
  /// Why nothing can be stored in this turn; nil when it can.
  var storageFailure: String?
  /// Whether the turn has yet to execute what `beginTurn` decided on.
  var hasPrepared = false
  /// Before this moment no eviction is tried: the last could not be stored.
  var evictionsResumeAt = Instant(nanoseconds: 0)
  /// What the daemon itself does in this turn, and what it has yet to do in the next.
  var prepared: [InternalRequest] = []
  var submitted: [InternalRequest] = []
  /// Rows of managed feeds that wait for the log.
  var managed = ManagedQueue()
  /// Whether stored requests are being executed again: nobody is answered.
  var isReplaying = false

  /// Working memory of the request at hand.
  var scanner: JSONScanner
  var scratch = ByteBuffer()
  var now: Instant

  /// This turn's answers and whatever else goes to one connection only.
  let answers = TurnBuffer()
  /// Sessions that have something to write.
  var dirty: [Session] = []
  /// Users that hold too much.
  var overQuota: [UInt32] = []
  /// All watches.
  var watches: Watches
  /// The hints of the operations under way on how to show their changes, JSON strings; a feed's `mark` counts them.
  var animations: [[UInt8]] = []
  /// Sessions whose answer or batch is being worked out in parts.
  var workingSessions: [Session] = []
  /// Sessions whose input was refused and may be offered again.
  var resumed: [ConnectionID] = []
  var counters = Counters()
  let startedAt: Instant
  /// When bookmarks and half frames are next looked at.
  var nextSweep: Instant

  /// - Parameters:
  ///   - seed: of the hashes of identities; a secret of the process.
  ///   - isDurable: whether the owner stores each turn's `journalBatch` before it calls `receive`.
  public init(limits: Limits, identity: ServerIdentity, seed: UInt64, isDurable: Bool = false, now: Instant) {
    self.isDurable = isDurable
    self.limits = limits
    self.identity = identity
    access = AccessControl(owner: identity.uid)
    self.now = now
    startedAt = now
    watches = Watches(now: now)
    nextSweep = now.adding(seconds: 1)
    catalog = Catalog(limits: limits, seed: seed)
    scanner = JSONScanner(maxDepth: limits.maxDepth)
    catalog.observer = self
    catalog.observesOnlyChannels = true
  }

  func session(_ id: ConnectionID) -> Session? {
    sessions.indices.contains(id.rawValue) ? sessions[id.rawValue] : nil
  }

  func report(_ level: EngineEvent.Level, _ message: String) {
    log(EngineEvent(level: level, message: message))
  }
}
