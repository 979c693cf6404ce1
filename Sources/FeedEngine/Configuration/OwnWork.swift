import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Changes by the daemon itself: feeds of the configuration, rows of managed feeds, and evictions.
struct OwnWork {
  /// Whether the log stores these changes before they are executed.
  let isStored: Bool
  /// The definitions of the configuration.
  var configured = ConfiguredFeeds()
  /// What reading the configuration did.
  var reports = ConfigurationReports()
  /// Rows of managed feeds that wait for the log.
  var managed = ManagedQueue()
  /// The user that is charged for feeds that the batch under way defines; nil for the daemon itself.
  var owner: UInt32?
  /// Requests for the next batch.
  var queue = InternalQueue()

  init(isStored: Bool) { self.isStored = isStored }

  /// Records that a submitted configuration is in effect, or why its definitions are not.
  mutating func didConfigure(_ error: String?) {
    reports.didComplete(error)
    configured.didComplete(isApplied: error == nil)
    managed.definitionsDidChange()
  }
}

/// The daemon's own requests for the next batch.
///
/// Invariant: at most one eviction is in flight.
struct InternalQueue {
  private var submitted: [InternalRequest] = []
  private var isEvicting = false
  /// The last feed of the last eviction; empty if there was none.
  var lastEvicted = ""
  /// Nanoseconds after the time when an element expires in which another member may propose the eviction.
  var evictionDelay: UInt64 = 0
  /// The earliest time of the next eviction, after one that could not be stored.
  private var evictionsResumeAt = Instant(nanoseconds: 0)

  /// Seconds before an eviction that could not be stored is retried.
  private static let pause = 1.0

  var isEmpty: Bool { submitted.isEmpty }

  mutating func submit(_ request: InternalRequest) { submitted.append(request) }

  /// Removes and returns the submitted requests, in order.
  mutating func takeSubmitted() -> [InternalRequest] {
    defer { submitted.removeAll() }
    return submitted
  }

  /// The time of the next eviction, given the time when the next element expires; nil while one is in flight.
  func nextEviction(_ expiry: Instant?) -> Instant? {
    isEvicting ? nil : expiry.map { max($0.adding(nanoseconds: evictionDelay), evictionsResumeAt) }
  }

  /// Removes and returns the requests for the batch that is opened now.
  mutating func take(at now: Instant, nextExpiry: Instant?) -> [InternalRequest] {
    var requests: [InternalRequest] = []
    if let moment = nextEviction(nextExpiry), moment <= now {
      isEvicting = true
      requests.append(.evict(after: lastEvicted))
    }
    return requests + takeSubmitted()
  }

  /// Records that the eviction in flight was executed, or that it could not be stored.
  mutating func didEvict(failedAt moment: Instant?) {
    assert(isEvicting)
    isEvicting = false
    if let moment { evictionsResumeAt = moment.adding(seconds: Self.pause) }
  }
}

extension Engine {
  /// Executes a request of the daemon, or adds it to the next batch: if requests are stored, if one that changes feeds is under way,
  /// or if it may take several turns. A configuration is in effect at once, unless rows wait: they are those of former definitions.
  func submit(_ request: InternalRequest) {
    let waits = longWork.isSliced && (!request.isConfiguration || ownWork.managed.hasWaiting)
    if isDurable || longWork.isUnderWay || waits {
      ownWork.queue.submit(request)
    } else {
      execute(request, isLogged: false)
    }
  }

  /// Completes a request of the daemon in a batch that was stored, if requests are, or that could not be stored.
  func complete(_ request: InternalRequest, failure: String?) {
    // At the end: an eviction may take several turns.
    defer { if case .evict = request { ownWork.queue.didEvict(failedAt: failure == nil ? nil : now) } }
    if let failure {
      if case .rows(let feed, let rows) = request { keepRows(of: feed, rows, failure) }
      guard request.isConfiguration else { return }
      let text = "the configuration could not be stored and is not applied: \(failure)"
      ownWork.didConfigure(text)
      return status.report(.error, text)
    }
    execute(request, isLogged: isDurable)
  }

  /// Executes a request of the daemon as one commit, an eviction as one commit for each feed. Rolls back and reports a
  /// configuration that cannot be applied.
  /// - Parameter isOwn: false for a request of another member of the log, and in replay.
  func execute(_ request: InternalRequest, isLogged: Bool, isOwn: Bool = true) {
    switch request {
    case .evict(let name): evictExpired(after: name)
    case .owner(let uid): ownWork.owner = uid
    case .rows(let feed, let rows): setRows(of: feed, rows, isLogged: isLogged, isOwn: isOwn)
    case .configure(let definitions, let names):
      // At the end: this may take several turns.
      defer { ownWork.managed.definitionsDidChange() }
      catalog.begin(at: time.moment)
      do throws(FeedError) {
        for definition in definitions { try catalog.define(definition, replace: true) }
        for name in names { try catalog.undefine(name) }
      } catch {
        catalog.rollBack()
        if !isOwn { return }
        let text = "the configuration could not be applied: \(error.reason)"
        ownWork.didConfigure(text)
        return status.report(.error, text)
      }
      if isOwn { ownWork.didConfigure(nil) }
      if catalog.finish(to: self) { status.counters.commits &+= 1 }
      for definition in definitions { catalog.didGive(definition) }
    }
  }

  /// The time of the next eviction.
  var nextEviction: Instant? { ownWork.queue.nextEviction(catalog.nextExpiry) }
}
