import FeedChange
import FeedJSON
import FeedQuery

/// The member `retain` of a definition: the limits on kept elements (Protocol/README.md, "Retention").
///
/// Elements beyond `count` are evicted in the same commit, those unchanged for the longest time first. Elements that
/// are unchanged for `seconds`, or whose time at `until` has passed, are evicted by a commit of the daemon. Invariant:
/// at least one limit is given.
public struct Retention: Equatable, Sendable {
  /// The maximum number of elements.
  public let count: Int?
  /// The maximum time that an element is kept unchanged.
  public let seconds: Double?
  /// The path of the time at which an element expires.
  public let until: SingularPath?

  /// Whether elements are evicted by time.
  var isTimed: Bool { seconds != nil || until != nil }

  public static func == (a: Retention, b: Retention) -> Bool {
    a.count == b.count && a.seconds == b.seconds && a.until?.text == b.until?.text
  }

  /// Parses the member `retain` of a definition; nil if there is none.
  init?(reading outer: DefinitionReader) throws(FeedError) {
    guard let value = outer.object.member("retain"), value.kind != .null else { return nil }
    guard value.kind == .object else {
      throw outer.refuse("retain", "must be an object with \"count\", \"seconds\" or \"until\"")
    }
    let reader = DefinitionReader(object: value, place: "retain.")
    count = try reader.positiveInteger("count")
    seconds = try reader.positiveNumber("seconds")
    until = try reader.singularPath("until")
    if count == nil && seconds == nil && until == nil { return nil }
  }
}
