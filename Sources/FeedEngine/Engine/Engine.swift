import FeedChange
import FeedJSON
import FeedModel

/// The facts about the daemon in the answer to `hello`.
public struct ServerIdentity: Sendable {
  public let version: String
  /// A random string that names one unbroken history of revisions.
  public let epoch: String
  public let pid: Int32
  /// The uid of the daemon. This user and root may use the reserved connections.
  public let uid: UInt32
  public let durability: String
  /// The state directory; nil if nothing is stored.
  public let state: String?

  public init(version: String, epoch: String, pid: Int32, uid: UInt32, durability: String, state: String? = nil) {
    (self.version, self.epoch, self.pid, self.uid, self.durability) = (version, epoch, pid, uid, durability)
    self.state = state
  }
}

/// The time as the engine sees it. It changes only between the steps of a turn.
struct EngineTime {
  /// The time of the turn: for throttles, timeouts and bookmarks.
  var now: Instant
  /// The time of commits: that of the batch, or of the turn if nothing is stored. Replay repeats it, so no change depends on `now`.
  var moment: Instant
  /// The time of the next sweep, which does the work that is checked once a second.
  var nextSweep: Instant

  init(now: Instant) {
    self.now = now
    moment = now
    nextSweep = now.adding(seconds: 1)
  }
}

/// Executes requests on feeds, sessions, watches and answers.
///
/// The engine makes no system call. A ``Turn`` drives it: the turn decides when each request is executed and when
/// output is written. Only the thread of the turn may use it; nothing is locked.
///
/// The engine is a composition. Each part is a type of its own with private state and an invariant. The parts
/// themselves are not private, because the handlers of requests in other files work on several of them.
public final class Engine {
  public package(set) var limits: Limits {
    didSet { status.greeting = Greeting(identity, limits) }
  }
  public let catalog: Catalog
  /// The commit of the catalog, held here too: reaching it through the catalog counts a reference for each request.
  let commit: Commit
  var access: AccessControl
  /// Changes by the daemon itself: feeds of the configuration, rows of managed feeds, evictions.
  var ownWork: OwnWork
  var sessions: Sessions
  var outbox = Outbox()
  /// The buffer of this turn's answers, held here too: reaching it through the outbox counts a reference for each request.
  let answers: TurnBuffer
  /// The text of the revision that was written last.
  var revisionText = DecimalText()
  var watches: Watches
  var longAnswers = LongAnswers()
  /// The request that changes feeds and takes several turns.
  var longWork: LongWork
  /// The owner of the engine sets the functions in it.
  package var status: Status
  var time: EngineTime

  /// - Parameters:
  ///   - seed: the seed of identity hashes; secret.
  ///   - isDurable: whether the log of the turn stores requests before they are executed.
  public init(limits: Limits, identity: ServerIdentity, seed: UInt64, isDurable: Bool = false, now: Instant) {
    self.limits = limits
    access = AccessControl(owner: identity.uid)
    ownWork = OwnWork(isStored: isDurable)
    sessions = Sessions(now: now)
    watches = Watches(now: now)
    status = Status(identity, limits, startedAt: now)
    time = EngineTime(now: now)
    catalog = Catalog(limits: limits, seed: seed)
    commit = catalog.commit
    answers = outbox.answers
    longWork = LongWork(catalog.commit)
  }

  /// Breaks the cycles of references between a feed and its channel, and between a channel or payers and their watches.
  deinit {
    for session in sessions.all {
      for watch in session.watches {
        _ = watch.charge.payers?.remove(watch)
        watches.end(watch)
      }
    }
    let list = try? catalog.feed(named: FeedName.feeds)
    for feed in catalog.feeds.values { for feed in [feed] + feed.kind.bins { feed.channel = nil } }
    list?.channel = nil
  }

  var now: Instant { time.now }
  /// The facts for the answer to `hello`.
  public var identity: ServerIdentity { status.identity }
  /// Whether requests that may change something are stored before they are executed.
  public var isDurable: Bool { ownWork.isStored }

  /// Traps in a debug build if the parts disagree about the sessions. O(connections).
  package func checkInvariants() {
    #if CHECK_INVARIANTS
      sessions.checkInvariants()
      sessions.quotas.checkInvariants(sessions.all)
      sessions.longTexts.checkInvariants(sessions.all)
      outbox.checkInvariants(sessions.all)
      longAnswers.checkInvariants(sessions.all)
      for session in sessions.all {
        session.line.checkInvariants()
        precondition(!session.isClosing || session.input.held.count == 0, "a closing connection holds input")
      }
    #endif
  }
}

// MARK: - What the simulator checks

extension Engine {
  /// The number of commits since the daemon started.
  package var commitCount: UInt64 { status.counters.commits }

  /// The bytes of the longest queue of output. O(connections).
  package var longestQueue: Int { sessions.all.reduce(0) { max($0, $1.output.count) } }

  /// Counts that are 0 without connections.
  package var connectionGauges: [(name: String, count: Int)] {
    [
      ("sessions", sessions.count), ("connections", sessions.quotas.connections), ("watches", watches.count),
      ("users over quota", sessions.quotas.hasOverLimit ? 1 : 0), ("long answers", longAnswers.count),
      ("resumable sessions", sessions.hasResumable ? 1 : 0),
    ]
  }
}
