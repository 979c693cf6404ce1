import FeedChange
import FeedJSON

/// Errors as they stand on the wire (PROTOCOL section 8): code, a sentence that says what to change, and data.
extension FeedError {
  /// JSON-RPC's code.
  public var code: Int {
    switch self {
    case .parseError: -32700
    case .invalidRequest: -32600
    case .methodNotFound: -32601
    case .invalidParams: -32602
    case .internalError: -32603
    case .unknownFeed: -32000
    case .definitionConflict: -32001
    case .wrongKind: -32002
    case .noIdentity: -32003
    case .badQuery: -32004
    case .indexOutOfRange: -32005
    case .permissionDenied: -32006
    case .limitExceeded: -32007
    case .storageFailed: -32008
    case .operationFailed(_, let error), .ofFeed(_, let error): error.code
    }
  }

  /// A sentence that says what to change. What it quotes is cut short where it is long, so that it stays a sentence.
  public var message: String { sentence.clipped(to: Self.longestMessage) }

  private static let longestMessage = 1024
  private static let longestQuotation = 256

  private func shown(_ text: String) -> String { text.clipped(to: Self.longestQuotation) }

  private var sentence: String {
    switch self {
    case .parseError(let offset, let reason):
      "The frame is not one JSON text: \(reason) at byte \(offset). Send exactly one JSON value in UTF-8 per frame."
    case .invalidRequest(let reason): "The request is not valid: \(reason)."
    case .methodNotFound(let name):
      "There is no method \"\(shown(name))\". See the method's spelling, or the daemon's capabilities in the answer to hello."
    case .invalidParams(let member, let reason): "Parameter \(member) \(reason)."
    case .internalError(let reason): "The daemon failed: \(reason). Nothing was changed."
    case .unknownFeed(let name):
      "There is no feed \"\(shown(name))\". Define it first, or list the feeds with method feeds."
    case .definitionConflict(let feed, let reason): "Feed \"\(shown(feed))\" cannot be changed like this: \(reason)."
    case .wrongKind(let feed, let kind, let wanted):
      "Feed \"\(shown(feed))\" is of kind \(kind), and this method needs \(wanted)."
    case .noIdentity(_, let index, "", let found):
      "Identity \(index) of the request must be a string or a number, and is \(found)."
    case .noIdentity(_, let index, let path, let found):
      "Element \(index) has no identity: \(shown(path)) must be a string or a number, and there is \(found)."
    case .badQuery(let member, _, let offset, let reason):
      "\(member) does not parse at byte \(offset): \(reason)"
    case .indexOutOfRange(let feed, let index, let count, let what):
      "Feed \"\(shown(feed))\" has no \(what) \(index): there are \(count), counted from 0."
    case .permissionDenied(let reason): "Not allowed: \(reason)."
    case .limitExceeded(let limit, let value, let reason): "Limit \(limit) (\(value)) is exceeded: \(reason)."
    case .storageFailed(let reason): "The change could not be stored: \(reason). Nothing was changed."
    case .ofFeed(_, let error): error.message
    case .operationFailed(let index, let error): "Operation \(index): \(error.message)"
    }
  }

  /// Appends the members of `data`: the feed and the offending item.
  func appendData(to out: inout ByteBuffer) {
    var members = DataMembers()
    append(to: &out, &members)
  }

  private func append(to out: inout ByteBuffer, _ members: inout DataMembers) {
    switch self {
    case .parseError(let offset, _): members.append("offset", offset, &out)
    case .invalidRequest, .internalError, .permissionDenied, .storageFailed: break
    case .methodNotFound(let name): members.append("method", name, &out)
    case .invalidParams(let member, _): members.append("member", member, &out)
    case .unknownFeed(let name): members.append("feed", name, &out)
    case .definitionConflict(let feed, _): members.append("feed", feed, &out)
    case .wrongKind(let feed, let kind, let wanted):
      members.append("feed", feed, &out)
      members.append("kind", kind, &out)
      members.append("wanted", wanted, &out)
    case .noIdentity(let feed, let index, let path, _):
      members.append("feed", feed, &out)
      members.append("index", index, &out)
      if !path.isEmpty { members.append("path", path, &out) }
    case .badQuery(let member, let text, let offset, _):
      members.append("member", member, &out)
      members.append("text", text, &out)
      members.append("offset", offset, &out)
    case .indexOutOfRange(let feed, let index, let count, _):
      members.append("feed", feed, &out)
      members.append("index", index, &out)
      members.append("count", count, &out)
    case .limitExceeded(let limit, let value, _):
      members.append("limit", limit, &out)
      members.append("value", value, &out)
    case .operationFailed(let index, let error):
      members.append("op", index, &out)
      error.append(to: &out, &members)
    case .ofFeed(let feed, let error):
      members.append("feed", feed, &out)
      error.append(to: &out, &members)
    }
  }
}

/// Writes members of an object with the commas between them.
private struct DataMembers {
  private static let longestValue = 1024
  private var isFirst = true

  mutating func append(_ name: StaticString, _ value: Int, _ out: inout ByteBuffer) {
    begin(name, &out)
    out.append(integer: value)
  }

  mutating func append(_ name: StaticString, _ value: String, _ out: inout ByteBuffer) {
    begin(name, &out)
    out.appendJSONString(value.clipped(to: Self.longestValue))
  }

  private mutating func begin(_ name: StaticString, _ out: inout ByteBuffer) {
    out.append(isFirst ? "\"" : ",\"")
    out.append(name)
    out.append("\":")
    isFirst = false
  }
}

extension String {
  /// The text, or as many of its first characters as fit `most` bytes of UTF-8 and an ellipsis.
  fileprivate func clipped(to most: Int) -> String {
    if utf8.count <= most { return self }
    var end = utf8.index(startIndex, offsetBy: most)
    while end > startIndex, end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
    return self[..<end] + "…"
  }
}
