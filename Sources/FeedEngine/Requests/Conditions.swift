import FeedChange
import FeedJSON
import FeedModel
import FeedQuery
import FeedWire

/// The conditions of a request, member `if` (Protocol/README.md, "Conditions").
///
/// Conditions are checked when the request is executed, on the state after the previous requests. Replay makes the same
/// decisions, because feeds have the same revisions.
extension Engine {
  /// Throws if a condition of a request does not hold.
  /// - Throws: `conditionFailed`, `invalidParams`, or `wrongKind` for a feed that shows rows of managed feeds.
  func checkConditions(_ parameters: Parameters) throws(FeedError) {
    if let conditions = parameters.member("if") { try check(conditions) }
  }

  /// Throws if a condition of an operation of a transaction does not hold before the first operation.
  /// - Throws: as `checkConditions`, with the index of the operation.
  func checkConditions(ofOperations operations: JSONView) throws(FeedError) {
    for (place, operation) in operations.elements.enumerated() {
      if place & 63 == 63 { commit.pace.didReadMembers() }
      guard let params = operation.member("params"), let conditions = params.member("if") else { continue }
      do throws(FeedError) { try check(conditions) } catch { throw error.ofOperation(at: place, params) }
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

/// The condition of a request on the present elements that it names, parameter `where` or `absent` (Protocol/README.md,
/// "Conditions on elements").
///
/// Handlers check all elements before they change the first one, within the commit of the request.
struct ElementRequirement: ~Copyable {
  private let feed: Feed
  /// Judges whether an element matches; nil if there must be no element.
  private var judge: ElementJudge?
  private let commit: Commit

  /// - Parameters:
  ///   - judge: judges whether each element matches; nil if there must be no element.
  ///   - commit: the open commit, which is charged.
  fileprivate init(on feed: Feed, _ judge: consuming ElementJudge?, in commit: Commit) {
    self.feed = feed
    self.judge = judge
    self.commit = commit
  }

  /// Throws if the condition does not hold.
  /// - Parameters:
  ///   - row: the present element; nil if there is none.
  ///   - index: its position in the request.
  ///   - name: how the request names it, for the error.
  mutating func check(_ row: Row?, at index: Int, _ name: @autoclosure () -> NamedElement) throws(FeedError) {
    guard let reason = try unmet(by: row) else { return }
    throw .elementConditionFailed(
      feed: feed.name, revision: feed.revision, index: index, element: name(), reason: reason)
  }

  private mutating func unmet(by row: Row?) throws(FeedError) -> UnmetElementCondition? {
    guard let row else { return judge == nil ? nil : .missing }
    guard let isMatched = judge?.accepts(row.text) else { return .present }
    try judge?.checkSteps()
    try commit.useSteps(readingBytes: row.text.count)
    return isMatched ? nil : .unmatched
  }
}

extension NamedElement {
  init(id: JSONView) { self = .id(String(decoding: id.text, as: UTF8.self)) }
}

extension Engine {
  /// Returns the condition `where` of a request on the elements of `feed` that it names; nil if it has none.
  func elementRequirement(_ parameters: Parameters, on feed: Feed) throws(FeedError) -> ElementRequirement? {
    if parameters.member("where") == nil { return nil }
    return ElementRequirement(on: feed, ElementJudge(try filter(parameters), limits: limits, in: commit), in: commit)
  }

  /// Throws if the condition of an `update` does not hold for the present elements with the identities of the new ones.
  func checkElements(ofUpdate parameters: Parameters, in feed: Feed) throws(FeedError) {
    guard parameters.member("absent") != nil || parameters.member("where") != nil else { return }
    if feed.collection == nil { _ = try identifiedArray(feed, .update) }
    try parameters.refuseBoth("where", "absent")
    let isAbsent = try parameters.bool("absent", default: false)
    let need = isAbsent ? ElementRequirement(on: feed, nil, in: commit) : try elementRequirement(parameters, on: feed)
    guard var condition = need else { return }
    for (index, element) in try elements(parameters).enumerated() {
      let (id, row) = try catalog.find(identityOf: element, index: index, in: feed)
      try condition.check(row, at: index, NamedElement(id: id))
      commit.pace.didFindElement(element.text)
    }
  }

  /// Throws if the condition of a `delete` does not hold for the elements with these identities.
  func checkElements(_ ids: some Sequence<JSONView>, ofDelete parameters: Parameters, in feed: Feed) throws(FeedError) {
    guard var condition = try elementRequirement(parameters, on: feed) else { return }
    for (index, id) in ids.enumerated() {
      try condition.check(try catalog.find(id, index: index, in: feed)?.row, at: index, NamedElement(id: id))
      commit.pace.didFindElement(id.text)
    }
  }

  /// Throws if the condition of a `move` does not hold for the element that it names.
  func checkElement(ofMove parameters: Parameters, in list: ListKind, _ feed: Feed) throws(FeedError) {
    guard var condition = try elementRequirement(parameters, on: feed) else { return }
    if let id = parameters.member("id") {
      // The move itself refuses an identity that is unknown.
      guard let row = try list.find(id)?.row else { return }
      return try condition.check(row, at: 0, NamedElement(id: id))
    }
    let row = try parameters.integer("from")
    guard (0..<list.rowCount).contains(row) else { return }
    let element = feed.section(at: 0).row(at: row)
    try condition.check(element, at: 0, .row(row, id: list.identity(of: element.text)))
  }
}
