/// What the daemon answered instead of a result (protocol, section 8).
public struct RemoteError: Error, Equatable, Sendable {
  /// JSON-RPC's own code or one of the protocol's, for example -32000 for an unknown feed.
  public var code: Int
  /// A sentence that says what to change.
  public var message: String
  /// The compact JSON text of `data`, which names the feed and the offending item; nil when there is none.
  public var data: [UInt8]?

  public init(code: Int, message: String, data: [UInt8]? = nil) {
    self.code = code
    self.message = message
    self.data = data
  }

  /// The code of a feed that is not defined.
  public static let unknownFeed = -32000
  /// The code of a method that this daemon does not have.
  public static let unknownMethod = -32601
  /// The code of an element without identity.
  public static let noIdentity = -32003
  /// The code of a filter or path that does not parse; `data.offset` says where.
  public static let badQuery = -32004
  /// The code of a limit that was exceeded; `data.limit` names it.
  public static let limitExceeded = -32007
}
