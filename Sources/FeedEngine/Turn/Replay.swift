import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The reason why a stored batch cannot be replayed.
public enum ReplayError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The batch was made at another revision than replay has reached.
  case revisionMismatch(stored: UInt64, reached: UInt64)
  /// The batch is not a sequence of frames with JSON.
  case damaged(offset: Int)
  /// A request has a member that was ignored by the rules of its time.
  case otherMeaning(member: String)

  public var description: String {
    switch self {
    case .revisionMismatch(let stored, let reached):
      "it was made on revision \(grouped(stored)), and the state before it is of revision \(grouped(reached))"
    case .damaged(let offset): "its requests cannot be read from byte \(grouped(offset)) on"
    case .otherMeaning(let member):
      "its \"\(member)\" meant nothing to the version that wrote it; start that version once and stop it with SIGTERM"
    }
  }
}

/// Executing the content of a log, without clients.
extension Engine {
  /// Replays a stored batch, before the first client connects. Nothing is answered.
  ///
  /// At the same time, at the same revision and under the same limits, a batch has the same effect.
  /// - Parameter rules: those by which the batch was executed first (``ExecutionRules/known``); nil for those of this engine, which
  ///   are the ones of its group.
  public func replay(_ batch: LogBatch, rules: Int? = nil) throws(ReplayError) {
    if let revision = batch.revision {
      // A start adds one revision for managed feeds, whose rows are read again, and one for views that show other rows under
      // other limits. Journals of early versions do not contain the commits of managed feeds.
      let mayCountMore = catalog.hasReplacedRows || catalog.feeds.values.contains { $0.kind is ManagedKind }
      guard revision == catalog.revision || (revision > catalog.revision && mayCountMore) else {
        throw .revisionMismatch(stored: revision, reached: catalog.revision)
      }
      // A start came in between: conditions name the revisions that it gave to replaced rows.
      if revision > catalog.revision { catalog.forgetReplacedRows() }
      catalog.skip(to: revision)
    }
    let present = commit.rules
    commit.rules = rules ?? present
    defer { commit.rules = present }
    let moment = time.moment
    time.moment = batch.at
    defer { time.moment = moment }
    assert(!longWork.isSliced, "a start executes requests at once")
    let replayed = ReceivedBatch(batch, self, isReplayed: true)
    while try replayed.step() != .done {}
    while catalog.hasDiscarded { catalog.freeDiscarded(.max) }
  }

  /// Sets the limits: those of the process whose journal is replayed.
  public func use(_ limits: Limits) {
    self.limits = limits
    catalog.use(limits)
  }

  /// Sets the limits of this process after replay, and ends the past of feeds that show other rows under them.
  public func endReplay(_ limits: Limits) {
    use(limits)
    catalog.forgetReplacedRows()
    // The log has the new revision by a request that changes nothing: a later start under other limits must not give it to other rows.
    if catalog.hasReplacedRows { submit(.rows(feed: "", nil)) }
  }
}

extension Request {
  /// The name of a member that rules before 2 ignored; nil if there is none.
  func memberUnknown(toRulesBefore2 method: Method) -> String? {
    let parameters = Parameters(object: params)
    if let found = parameters.memberUnknown(toRulesBefore2: method) { return found }
    guard method == .transaction else { return nil }
    for operation in parameters.operations {
      if let found = operation.parameters.memberUnknown(toRulesBefore2: operation.method) { return found }
    }
    return nil
  }
}

extension Parameters {
  fileprivate func memberUnknown(toRulesBefore2 method: Method) -> String? {
    if method.rules.cost == .change && member("result") != nil { return "result" }
    if method == .update && member("absent") != nil { return "absent" }
    return hasElementCondition(of: method) ? "where" : nil
  }
}

/// A request of the daemon itself, which is stored in the journal. Its method name begins with `$`, so no client can
/// call it.
enum InternalRequest: Equatable {
  /// Evicts elements that have expired at the time of the batch; see ``Engine/evictExpired(after:steps:)``.
  case evict(after: String?)
  /// Applies definitions of the configuration, and removes managed feeds that it no longer defines.
  case configure(define: [FeedDefinition], undefine: [String])

  /// The user that is charged for the feeds that the next requests of the batch define.
  case owner(UInt32)

  /// Sets the rows of a managed feed. The journal has only the name, so that no revision is used twice: the rows are read again
  /// at each start. The log of a group has the rows.
  case rows(feed: String, ProposedRows?)

  /// The levels of a request above the rows and definitions in it.
  static let depth = 8

  var isConfiguration: Bool {
    if case .configure = self { true } else { false }
  }

  /// Appends the request as JSON.
  func append(to out: inout ByteBuffer) {
    switch self {
    case .evict(let name):
      out.append("{\"method\":\"$evict\"")
      if let name {
        out.append(",\"params\":{\"after\":", quoted: name)
        out.append(UInt8(ascii: "}"))
      }
      out.append(UInt8(ascii: "}"))
    case .owner(let uid):
      out.append("{\"method\":\"$owner\",\"params\":{\"uid\":", integer: uid)
      out.append("}}")
    case .rows(let feed, let rows):
      out.append("{\"method\":\"$rows\",\"params\":{\"feed\":", quoted: feed)
      if let rows {
        out.append(",\"since\":", quoted: rows.since)
        out.append(",\"sections\":")
        rows.rows.appendSections(to: &out)
      }
      out.append("}}")
    case .configure(let definitions, let names):
      out.append("{\"method\":\"$configure\",\"params\":{\"define\":[")
      for (place, definition) in definitions.enumerated() {
        out.append(place > 0 ? ",{" : "{")
        definition.appendMembers(to: &out)
        out.append(UInt8(ascii: "}"))
      }
      out.append("],\"undefine\":[")
      out.appendJSONStrings(names)
      out.append("]}}")
    }
  }

  /// Parses a stored request; nil if it is a client's request.
  /// - Throws: the error of a definition that does not parse.
  init?(_ message: JSONView, limits: Limits) throws(FeedError) {
    guard let method = message.member("method") else { return nil }
    if method.stringEquals("$evict") {
      self = .evict(after: message.member("params")?.member("after")?.string)
    } else if method.stringEquals("$owner") {
      self = .owner(message.member("params")?.member("uid")?.int.flatMap(UInt32.init(exactly:)) ?? .max)
    } else if method.stringEquals("$rows") {
      let params = message.member("params")
      let rows = params?.member("sections").flatMap(ManagedRows.init(sections:))
      self = .rows(
        feed: params?.member("feed")?.string ?? "",
        rows.map { ProposedRows(rows: $0, since: params?.member("since")?.string ?? "") })
    } else if method.stringEquals("$configure") {
      let params = message.member("params")
      var definitions: [FeedDefinition] = []
      if let array = params?.member("define") {
        let limits = limits.ofStoredDefinitions
        for element in array.elements { definitions.append(try FeedDefinition(parsing: element, limits: limits)) }
      }
      let names = params?.member("undefine")?.elements.compactMap(\.string)
      self = .configure(define: definitions, undefine: names ?? [])
    } else {
      return nil
    }
  }
}
