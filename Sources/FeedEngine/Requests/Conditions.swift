import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The conditions of a request, member `if` (Protocol/README.md, "Conditions").
///
/// Conditions are checked when the request is executed, on the state after the previous requests. Replay makes the same
/// decisions, because feeds have the same revisions.
extension Engine {
  /// Throws if a condition of a request does not hold.
  ///
  /// - Throws: `conditionFailed`, `invalidParams`, or `wrongKind` for a feed that shows rows of managed feeds.
  func checkConditions(_ parameters: Parameters) throws(FeedError) {
    if let conditions = parameters.member("if") { try check(conditions) }
  }

  /// Throws if a condition of an operation of a transaction does not hold before the first operation.
  ///
  /// - Throws: as `checkConditions`, with the index of the operation.
  func checkConditions(ofOperations operations: JSONView) throws(FeedError) {
    for (place, operation) in operations.elements.enumerated() {
      if place & 63 == 63 { commit.pace.didReadMembers() }
      guard let params = operation.member("params"), let conditions = params.member("if") else { continue }
      do throws(FeedError) {
        try check(conditions)
      } catch {
        throw error.ofOperation(at: place, params)
      }
    }
  }

  private func check(_ conditions: JSONView) throws(FeedError) {
    switch conditions.kind {
    case .object: try checkCondition(conditions, "if")
    case .array:
      for (place, condition) in conditions.elements.enumerated() {
        try checkCondition(condition, "if[\(place)]")
        if place & 63 == 63 { commit.pace.didReadMembers() }
      }
    default: throw Self.refuse("if")
    }
  }

  private static func refuse(_ member: String) -> FeedError {
    .invalidParams(member: member, reason: "must be {\"feed\":NAME,\"revision\":NUMBER or null}, or an array of them")
  }

  private func checkCondition(_ condition: JSONView, _ place: @autoclosure () -> String) throws(FeedError) {
    guard condition.kind == .object else { throw Self.refuse(place()) }
    guard let name = condition.member("feed")?.truncatedName else {
      throw .invalidParams(member: "\(place()).feed", reason: "must be a string: the name of a feed or bin")
    }
    let wanted = condition.member("revision")
    let revision = wanted?.int.flatMap { UInt64(exactly: $0) }
    guard let wanted, wanted.isNull || revision != nil else {
      throw .invalidParams(
        member: "\(place()).revision", reason: "must be a revision from 0 on, or null for a feed that is not defined")
    }
    let feed = try? catalog.feed(named: name)
    if let feed, catalog.containsManagedRows(feed) {
      throw .wrongKind(
        feed: name, kind: feed.kindName,
        wanted: "a feed without rows of managed feeds, whose revisions do not survive a restart")
    }
    if feed?.revision != revision {
      throw .conditionFailed(feed: name, wanted: revision, present: feed?.revision)
    }
  }
}

extension Parameters {
  /// The feeds of the conditions of a method, for access rules. A condition on elements tells what the feed holds.
  func conditionFeeds(of method: Method) -> [String] {
    var feeds: [String] = []
    if let conditions = member("if") {
      let all = conditions.kind == .array ? Array(conditions.elements) : [conditions]
      feeds = all.compactMap { $0.member("feed")?.truncatedName }
    }
    if hasElementCondition(of: method), let feed = member("feed")?.truncatedName { feeds.append(feed) }
    return feeds
  }

  /// Whether the request has a condition on the present element.
  func hasElementCondition(of method: Method) -> Bool {
    switch method {
    case .update, .patch, .move: member("where") != nil || member("absent") != nil
    case .delete: member("where") != nil && !judgesAllElements
    default: false
    }
  }

  /// Whether a `delete` judges all elements of the feed, and not only those that it names.
  var judgesAllElements: Bool { member("where") != nil && member("id") == nil && member("ids") == nil }
}
