import FeedJSON
import FeedModel

/// What requests do: feeds, sessions, watches and answers.
///
/// The engine makes no system call. A ``Turn`` drives it: the turn says when which request is executed, and when what was made
/// is written. All state is guarded by the thread that runs the turn; nothing is locked.
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
  /// The generation of the session opened last.
  var generations: UInt32 = 0
  /// Connections that count for the limits: those that were refused do not.
  var connectionCount = 0
  /// Connections and waiting bytes of each user.
  var users: [UInt32: UserUsage] = [:]

  /// Whether what may change something is stored before it is executed.
  public let isDurable: Bool
  /// What the daemon itself has to do with the next batch.
  var internalRequests = InternalQueue()
  /// Rows of managed feeds that wait for the log.
  var managed = ManagedQueue()
  /// Working memory of the request at hand.
  var scratch = ByteBuffer()
  /// The time of the turn: for throttles, timeouts and bookmarks.
  var now: Instant
  /// The time at which commits happen: that of the batch that is executed, or of the turn if nothing is stored.
  var moment: Instant
  /// In the place of a peer that is gone, for requests that are executed all the same.
  let nobody: Session

  /// This turn's answers and whatever else goes to one connection only.
  let answers = TurnBuffer()
  /// Sessions that have something to write.
  var dirty: [Session] = []
  /// Users that hold too much.
  var overQuota: [UInt32] = []
  /// All watches.
  var watches: Watches
  /// Sessions whose answer or batch is being worked out in parts.
  var workingSessions: [Session] = []
  /// Sessions that were paused and whose requests can be taken again.
  private(set) var resumed: [SessionHandle] = []
  var counters = Counters()
  let startedAt: Instant
  /// When bookmarks and half frames are next looked at.
  var nextSweep: Instant

  /// - Parameters:
  ///   - seed: of the hashes of identities; a secret of the process.
  ///   - isDurable: whether the log of the turn stores requests before they are executed.
  public init(limits: Limits, identity: ServerIdentity, seed: UInt64, isDurable: Bool = false, now: Instant) {
    self.isDurable = isDurable
    self.limits = limits
    self.identity = identity
    access = AccessControl(owner: identity.uid)
    self.now = now
    moment = now
    nobody = Session(handle: .none, peer: Peer(uid: 0, gid: 0, pid: 0), connectedAt: now)
    startedAt = now
    watches = Watches(now: now)
    nextSweep = now.adding(seconds: 1)
    catalog = Catalog(limits: limits, seed: seed)
  }

  /// The session of a number; nil when there is none.
  func session(_ id: ConnectionID) -> Session? {
    sessions.indices.contains(id.rawValue) ? sessions[id.rawValue] : nil
  }

  /// The session of a handle; nil when it is closed.
  func session(_ handle: SessionHandle) -> Session? {
    guard handle.index < sessions.count, let session = sessions[Int(handle.index)],
      session.handle.generation == handle.generation
    else { return nil }
    return session
  }

  /// Whether no connection is open.
  var isEmpty: Bool { sessions.count == freeIDs.count }

  func forEachSession(_ body: (Session) -> Void) {
    for case let session? in sessions { body(session) }
  }

  /// Lists a paused session for the turn if its requests can be taken again.
  func resumeIfPossible(_ session: Session) {
    guard session.input.isPaused, wantsInput(session) else { return }
    resumed.append(session.handle)
  }

  /// The sessions that can be resumed.
  func takeResumed() -> [SessionHandle] {
    defer { resumed = [] }
    return resumed
  }

  func report(_ level: EngineEvent.Level, _ message: String) {
    log(EngineEvent(level: level, message: message))
  }
}

extension Engine {
  /// Checks, in debug builds, that what is counted and listed agrees with the sessions. O(connections).
  func checkInvariants() {
    #if CHECK_INVARIANTS
      var usage: [UInt32: UserUsage] = [:]
      var open = 0
      forEachSession { session in
        precondition(self.session(session.handle) === session)
        session.line.checkInvariants()
        precondition(!session.isClosing || session.input.held.count == 0, "a closing connection holds input")
        precondition(session.isDirty == dirty.contains { $0 === session })
        if session.isRefused { return }
        open += 1
        usage[session.peer.uid, default: UserUsage()].connections += 1
        usage[session.peer.uid, default: UserUsage()].holding += session.counted
      }
      precondition(open == connectionCount)
      precondition(sessions.count - freeIDs.count == sessions.count { $0 != nil })
      for (uid, usage) in usage {
        precondition(users[uid]?.connections == usage.connections && users[uid]?.holding == usage.holding)
      }
      precondition(users.count == usage.count)
    #endif
  }
}
