import FeedChange
import FeedJSON
import FeedModel
import FeedQuery
import FeedWire

/// The condition of a request on the present elements that it names, parameter `where` or `absent` (Protocol/README.md,
/// "Conditions on elements").
///
/// Handlers check all elements before they change the first one, within the commit of the request.
struct ElementCondition: ~Copyable {
  private let feed: Feed
  /// Judges whether an element matches; nil if there must be no element.
  private var judge: ElementJudge?

  /// - Parameter judge: judges whether each element matches; nil if there must be no element.
  fileprivate init(on feed: Feed, _ judge: consuming ElementJudge?) {
    self.feed = feed
    self.judge = judge
  }

  /// Throws if the condition does not hold.
  ///
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
    return isMatched ? nil : .unmatched
  }
}

extension NamedElement {
  init(id: JSONView) { self = .id(String(decoding: id.text, as: UTF8.self)) }
}

extension Engine {
  /// Returns the condition `where` of a request on the elements of `feed` that it names; nil if it has none.
  func elementCondition(_ parameters: Parameters, on feed: Feed) throws(FeedError) -> ElementCondition? {
    if parameters.member("where") == nil { return nil }
    return ElementCondition(on: feed, ElementJudge(try filter(parameters), limits: limits, in: commit))
  }

  /// Throws if the condition of an `update` does not hold for the present elements with the identities of the new ones.
  func checkElements(ofUpdate parameters: Parameters, in feed: Feed) throws(FeedError) {
    guard parameters.member("absent") != nil || parameters.member("where") != nil else { return }
    if feed.collection == nil { _ = try identifiedArray(feed, .update) }
    try parameters.refuseBoth("where", "absent")
    let isAbsent = try parameters.bool("absent", default: false)
    let need = isAbsent ? ElementCondition(on: feed, nil) : try elementCondition(parameters, on: feed)
    guard var condition = need else { return }
    for (index, element) in try elements(parameters).enumerated() {
      let (id, row) = try catalog.find(identityOf: element, index: index, in: feed)
      try condition.check(row, at: index, NamedElement(id: id))
      commit.pace.didFindElement()
    }
  }

  /// Throws if the condition of a `delete` does not hold for the elements with these identities.
  func checkElements(_ ids: some Sequence<JSONView>, ofDelete parameters: Parameters, in feed: Feed) throws(FeedError) {
    guard var condition = try elementCondition(parameters, on: feed) else { return }
    for (index, id) in ids.enumerated() {
      try condition.check(try catalog.find(id, index: index, in: feed)?.row, at: index, NamedElement(id: id))
      commit.pace.didFindElement()
    }
  }

  /// Throws if the condition of a `move` does not hold for the element that it names.
  func checkElement(ofMove parameters: Parameters, in list: ListKind, _ feed: Feed) throws(FeedError) {
    guard var condition = try elementCondition(parameters, on: feed) else { return }
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
