/// The reason why a request was refused.
///
/// Each case has the values of its message. FeedWire maps the cases to codes and messages ("Errors" in
/// `Protocol/README.md`). A function that throws one has changed nothing.
public enum FeedError: Error, Equatable, Sendable {
  case unknownFeed(String)
  case definitionConflict(feed: String, reason: String)
  /// Element `index` of the request has the identity `id`, a JSON text, of another row of the array.
  case duplicateIdentity(feed: String, index: Int, id: String)
  /// The method needs a feed of the kind `wanted`.
  case wrongKind(feed: String, kind: String, wanted: String)
  /// Element `index` of the request has no identity at `path`. If `path` is empty, the element itself must be an identity.
  case noIdentity(feed: String, index: Int, path: String, found: String)
  /// The filter or path in `member` does not parse. `offset` is in bytes of `text`.
  case badQuery(member: String, text: String, offset: Int, reason: String)
  /// The feed or, for rows, its section named `place` has `count` of them.
  case indexOutOfRange(feed: String, place: String? = nil, index: Int, count: Int, what: IndexedPart)
  /// The access rules do not allow the request.
  case permissionDenied(reason: String)
  /// The limit with that name and value was exceeded. `reason` says what to do.
  case limitExceeded(limit: String, value: Int, reason: String)
  /// The commit log could not store the request. A reason that ends with ``mayBeStored`` does not know that.
  case storageFailed(reason: String)
  /// A member of a group cannot reach the revision that a watch resumes from.
  case behind(reason: String)
  /// A condition of the request does not hold: the feed has another revision than `wanted`. nil is a feed that is not defined.
  case conditionFailed(feed: String, wanted: UInt64?, present: UInt64?)
  /// A condition of the request on the element that it names at position `index` does not hold.
  case elementConditionFailed(
    feed: String, revision: UInt64, index: Int, element: NamedElement, reason: UnmetElementCondition)
  /// The feed has no element with the identity `id`, a JSON text, at position `index` of the request.
  case unknownIdentity(feed: String, index: Int, id: String)
  /// The frame is not JSON. `offset` is in bytes of the frame.
  case parseError(offset: Int, reason: String)
  /// The JSON value is not a JSON-RPC request.
  case invalidRequest(reason: String)
  case methodNotFound(String)
  /// The parameter `member` is missing or invalid; `reason` follows its name.
  case invalidParams(member: String, reason: String)
  /// A defect of the daemon.
  case internalError(reason: String)
  /// Operation `index` of a transaction was refused, so none was applied.
  indirect case operationFailed(index: Int, FeedError)
  /// An error that does not name a feed, of a request that does.
  indirect case ofFeed(String, FeedError)
}

/// How a request names an element.
public enum NamedElement: Equatable, Sendable {
  /// By its identity, a JSON text.
  case id(String)
  /// By its row. The identity is nil if elements of the feed have none.
  case row(Int, id: String?)
  /// As the only element of a single.
  case only
}

/// Why a condition on an element does not hold.
public enum UnmetElementCondition: Equatable, Sendable {
  /// The element does not match the filter.
  case unmatched
  /// There is no element that could match the filter.
  case missing
  /// There is an element although there must be none.
  case present
}

/// What an index that is out of range counts.
public enum IndexedPart: Equatable, Sendable {
  case section, row, child
  /// The places where a child can be inserted: before each child and after the last.
  case placeOfChild
}

extension FeedError {
  /// The end of the reason of a refused change that the log of a group may have stored.
  public static let mayBeStored = "it may be stored, so read the feed before you repeat it"

  /// Returns the error with the feed of its request, unless it already names one.
  public func naming(_ feed: String?) -> FeedError {
    guard let feed else { return self }
    switch self {
    case .badQuery, .invalidParams, .limitExceeded, .permissionDenied, .storageFailed, .behind, .internalError:
      return .ofFeed(feed, self)
    default: return self
    }
  }
}

/// The rule for names of feeds and bins: `[A-Za-z0-9._-]{1,128}` (Protocol/README.md, "Names").
public enum FeedName {
  /// The name of the feed that lists all feeds. No feed with this name can be defined.
  public static let feeds = "$feeds"
  /// The maximum number of bytes of a name.
  public static let maxLength = 128
  /// The maximum number of bytes of a reference, `collection/bin`.
  public static let maxReferenceLength = 2 * maxLength + 1

  /// Whether `name` is a valid name of a feed or a bin.
  public static func isValid(_ name: String) -> Bool {
    let utf8 = name.utf8
    return (1...maxLength).contains(utf8.count) && utf8.allSatisfy(isAllowed)
  }

  /// Whether `name` is a valid reference: the name of a feed, `collection/bin`, or `$feeds`.
  public static func isValidReference(_ name: String) -> Bool {
    if name == feeds { return true }
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    return parts.count <= 2 && parts.allSatisfy { isValid(String($0)) }
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}
