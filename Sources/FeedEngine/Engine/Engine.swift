import FeedJSON
import FeedModel

/// What the daemon says of itself in the answer to `hello`.
public struct ServerIdentity: Sendable {
  public let version: String
  /// A random string naming one unbroken history of revisions.
  public let epoch: String
  public let pid: Int32
  /// The user the daemon runs as: it and root may use the reserved connections.
  public let uid: UInt32
  public let durability: String
  /// The directory of the state; nil when nothing is kept.
  public let state: String?

  public init(version: String, epoch: String, pid: Int32, uid: UInt32, durability: String, state: String? = nil) {
    self.version = version
    self.epoch = epoch
    self.pid = pid
    self.uid = uid
    self.durability = durability
    self.state = state
  }
}

/// The time that the engine works with. It only changes between the steps of a turn.
struct EngineTime {
  /// The time of the turn: for throttles, timeouts and bookmarks.
  var now: Instant
  /// The time at which commits happen: that of the batch that is executed, or of the turn if nothing is stored.
  var moment: Instant
  /// When bookmarks and incomplete frames are next looked at.
  var nextSweep: Instant

  init(now: Instant) {
    self.now = now
    moment = now
    nextSweep = now.adding(seconds: 1)
  }
}

/// What requests do: feeds, sessions, watches and answers.
///
/// The engine makes no system call. A ``Turn`` drives it: the turn says when which request is executed, and when what was made
/// is written. All state is guarded by the thread that runs the turn; nothing is locked.
///
/// The engine is a composition. Each part is a type of its own that keeps its state private and its invariant; the parts are
/// not private because the handlers of requests, in other files, work on several of them.
public final class Engine {
  public internal(set) var limits: Limits
  public let identity: ServerIdentity
  /// All feeds.
  public let catalog: Catalog
  /// Who may do what.
  var access: AccessControl
  /// What the daemon itself changes: feeds of the configuration, rows of managed feeds, evictions.
  var ownWork: OwnWork
  var sessions: Sessions
  var quotas = Quotas()
  var outbox = Outbox()
  var watches: Watches
  var longAnswers = LongAnswers()
  var status: Status
  var time: EngineTime

  /// - Parameters:
  ///   - seed: of the hashes of identities; a secret of the process.
  ///   - isDurable: whether the log of the turn stores requests before they are executed.
  public init(limits: Limits, identity: ServerIdentity, seed: UInt64, isDurable: Bool = false, now: Instant) {
    self.limits = limits
    self.identity = identity
    access = AccessControl(owner: identity.uid)
    ownWork = OwnWork(isStored: isDurable)
    sessions = Sessions(now: now)
    watches = Watches(now: now)
    status = Status(startedAt: now)
    time = EngineTime(now: now)
    catalog = Catalog(limits: limits, seed: seed)
  }

  var now: Instant { time.now }
  /// Whether what may change something is stored before it is executed.
  public var isDurable: Bool { ownWork.isStored }

  /// Told of events worth a line in the log.
  public var log: (EngineEvent) -> Void {
    get { status.log }
    set { status.log = newValue }
  }

  /// Stops a debug build if the parts disagree about the sessions. O(connections).
  func checkInvariants() {
    #if CHECK_INVARIANTS
      sessions.checkInvariants()
      quotas.checkInvariants(sessions.all)
      outbox.checkInvariants(sessions.all)
      longAnswers.checkInvariants(sessions.all)
      for session in sessions.all {
        session.line.checkInvariants()
        precondition(!session.isClosing || session.input.held.count == 0, "a closing connection holds input")
      }
    #endif
  }
}
