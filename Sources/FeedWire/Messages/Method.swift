import FeedJSON

/// The methods of protocol 1 that this daemon has (PROTOCOL section 5).
public enum Method: String, CaseIterable, Sendable {
  case update, delete, set
  case insert, remove, replace, move, put
  case activate, insertChild, removeChild
  case select, deselect, selected
  case get, range, snapshot, query, verify
  case watch, unwatch, sync, ping, hello
  case define, undefine, feeds, describe
  case transaction, stats, clients

  /// Whether it may change feeds, and so may stand in a transaction.
  public var isMutating: Bool {
    switch self {
    case .update, .delete, .set, .insert, .remove, .replace, .move, .put, .activate, .insertChild, .removeChild,
      .define,
      .undefine:
      true
    default: false
    }
  }

  /// The method of that name, a JSON string; nil when there is none.
  public init?(_ name: JSONView) {
    // The hot path: nearly all requests of a busy daemon are updates.
    if name.stringEquals("update") {
      self = .update
      return
    }
    guard let text = name.string, let method = Method(rawValue: text) else { return nil }
    self = method
  }
}
