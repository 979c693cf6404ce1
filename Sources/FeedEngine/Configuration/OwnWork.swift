import FeedChange
import FeedModel

/// What the daemon itself changes: feeds of the configuration, rows of managed feeds, and evictions.
struct OwnWork {
  /// Whether the log stores it before it is executed.
  let isStored: Bool
  /// The definitions of the configuration that was applied last.
  var configured = ConfiguredFeeds()
  /// Rows of managed feeds that wait for the log.
  var managed = ManagedQueue()
  /// Requests for the next batch.
  var queue = InternalQueue()

  init(isStored: Bool) {
    self.isStored = isStored
  }
}

/// What the daemon itself has to do next, in a log's batch.
///
/// Invariant: at most one eviction is in flight.
struct InternalQueue {
  private var submitted: [InternalRequest] = []
  private var isEvicting = false
  /// Before this moment no eviction is tried: the last one could not be stored.
  private var evictionsResumeAt = Instant(nanoseconds: 0)

  /// Seconds until an eviction that could not be stored is tried again.
  private static let pause = 1.0

  var isEmpty: Bool { submitted.isEmpty }

  mutating func submit(_ request: InternalRequest) { submitted.append(request) }

  /// When the next eviction is to be made, given when the next element expires; nil while one is in flight.
  func nextEviction(_ expiry: Instant?) -> Instant? {
    isEvicting ? nil : expiry.map { max($0, evictionsResumeAt) }
  }

  /// What goes into the batch that is appended now.
  mutating func take(at now: Instant, nextExpiry: Instant?) -> [InternalRequest] {
    var requests: [InternalRequest] = []
    if let moment = nextEviction(nextExpiry), moment <= now {
      isEvicting = true
      requests.append(.evict)
    }
    requests += submitted
    submitted.removeAll()
    return requests
  }

  /// An eviction that was in flight was executed, or could not be stored.
  mutating func didEvict(failedAt moment: Instant?) {
    assert(isEvicting)
    isEvicting = false
    if let moment { evictionsResumeAt = moment.adding(seconds: Self.pause) }
  }
}

extension Engine {
  /// Has the daemon itself do something to its feeds: at once, or, where it must be stored, with the next batch.
  func submit(_ request: InternalRequest) {
    if isDurable { ownWork.queue.submit(request) } else { execute(request, isLogged: false) }
  }

  /// A request of the daemon itself is stored, or could not be.
  func complete(_ request: InternalRequest, failure: String?) {
    if request == .evict { ownWork.queue.didEvict(failedAt: failure == nil ? nil : now) }
    if let failure {
      if case .rows(let feed) = request { ownWork.managed.didFail(feed) }
      guard request.isConfiguration else { return }
      return status.report(.error, "the configuration could not be stored and is not applied: \(failure)")
    }
    execute(request, isLogged: true)
  }

  /// Executes something of the daemon's own as a commit, under the conditions under which it was found to be possible.
  func execute(_ request: InternalRequest, isLogged: Bool) {
    switch request {
    case .evict: evictExpired()
    case .rows(let feed): takeRows(of: feed, isLogged: isLogged)
    case .configure(let definitions, let names):
      ownWork.managed.definitionsDidChange()
      catalog.begin(at: time.moment)
      do throws(FeedError) {
        for definition in definitions { try catalog.define(definition, replace: true) }
        for name in names { try catalog.undefine(name) }
      } catch {
        catalog.rollBack()
        return status.report(.error, "the configuration could not be applied: \(error.reason)")
      }
      if catalog.finish(to: self) { status.counters.commits &+= 1 }
    }
  }

  /// When the next eviction is to be made.
  var nextEviction: Instant? { ownWork.queue.nextEviction(catalog.nextExpiry) }
}
