import FeedChange
import FeedJSON
import FeedModel

/// What the daemon itself does to its feeds and must find again in its journal. Its method names cannot be called by a
/// client: they begin with `$`.
enum InternalRequest: Equatable {
  /// The eviction of what is too old at the time of the batch.
  case evict
  /// Definitions that the configuration brings, and managed feeds that it no longer has.
  case configure(define: [FeedDefinition], undefine: [String])

  /// Other rows of a managed feed. The journal has only that they came, so that no number of a commit is used twice: the rows
  /// are read again at each start.
  case rows(feed: String)

  var isConfiguration: Bool {
    if case .configure = self { true } else { false }
  }

  /// Appends the request as JSON.
  func append(to out: inout ByteBuffer) {
    switch self {
    case .evict:
      out.append("{\"method\":\"$evict\"}")
    case .rows(let feed):
      out.append("{\"method\":\"$rows\",\"params\":{\"feed\":")
      out.appendJSONString(feed)
      out.append("}}")
    case .configure(let definitions, let names):
      out.append("{\"method\":\"$configure\",\"params\":{\"define\":[")
      for (place, definition) in definitions.enumerated() {
        out.append(place > 0 ? ",{" : "{")
        definition.appendMembers(to: &out)
        out.append(UInt8(ascii: "}"))
      }
      out.append("],\"undefine\":[")
      for (place, name) in names.enumerated() {
        if place > 0 { out.append(UInt8(ascii: ",")) }
        out.appendJSONString(name)
      }
      out.append("]}}")
    }
  }

  /// Reads a stored request; nil when it is a client's.
  ///
  /// - Throws: the error of a definition that does not parse.
  init?(_ message: JSONView, limits: Limits) throws(FeedError) {
    guard let method = message.member("method") else { return nil }
    if method.stringEquals("$evict") {
      self = .evict
    } else if method.stringEquals("$rows") {
      self = .rows(feed: message.member("params")?.member("feed")?.string ?? "")
    } else if method.stringEquals("$configure") {
      let params = message.member("params")
      var definitions: [FeedDefinition] = []
      if let array = params?.member("define") {
        for element in array.elements { definitions.append(try FeedDefinition(parsing: element, limits: limits)) }
      }
      let names = params?.member("undefine")?.elements.compactMap(\.string)
      self = .configure(define: definitions, undefine: names ?? [])
    } else {
      return nil
    }
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
    if isDurable { internalRequests.submit(request) } else { execute(request, isLogged: false) }
  }

  /// A request of the daemon itself is stored, or could not be.
  func complete(_ request: InternalRequest, failure: String?) {
    if request == .evict { internalRequests.didEvict(failedAt: failure == nil ? nil : now) }
    if let failure {
      if case .rows(let feed) = request { managed.didFail(feed) }
      guard request.isConfiguration else { return }
      return report(.error, "the configuration could not be stored and is not applied: \(failure)")
    }
    execute(request, isLogged: true)
  }

  /// Executes something of the daemon's own as a commit, under the conditions under which it was found to be possible.
  func execute(_ request: InternalRequest, isLogged: Bool) {
    switch request {
    case .evict: evictExpired()
    case .rows(let feed): takeRows(of: feed, isLogged: isLogged)
    case .configure(let definitions, let names):
      managed.definitionsDidChange()
      catalog.begin(at: moment)
      do throws(FeedError) {
        for definition in definitions { try catalog.define(definition, replace: true) }
        for name in names { try catalog.undefine(name) }
      } catch {
        catalog.rollBack()
        return report(.error, "the configuration could not be applied: \(error.reason)")
      }
      if catalog.finish(to: self) { counters.commits &+= 1 }
    }
  }

  /// When the next eviction is to be made.
  var nextEviction: Instant? { internalRequests.nextEviction(catalog.nextExpiry) }
}
