import FeedChange
import FeedJSON

/// The code, message and data of errors ("Errors" in `Protocol/README.md`).
extension FeedError {
  /// The code of the JSON-RPC error object.
  public var code: Int {
    switch self {
    case .parseError: -32700
    case .invalidRequest: -32600
    case .methodNotFound: -32601
    case .invalidParams: -32602
    case .internalError: -32603
    case .unknownFeed: -32000
    case .definitionConflict, .duplicateIdentity: -32001
    case .wrongKind: -32002
    case .noIdentity: -32003
    case .badQuery: -32004
    case .indexOutOfRange: -32005
    case .permissionDenied: -32006
    case .limitExceeded: -32007
    case .storageFailed, .behind: -32008
    case .conditionFailed, .elementConditionFailed: -32009
    case .unknownIdentity: -32010
    case .operationFailed(_, let error), .ofFeed(_, let error): error.code
    }
  }

  /// The message: one line with what failed, the reason and the next step. Long quoted values are truncated.
  public var message: String {
    // A control character takes more bytes when it is replaced.
    text.clipped(to: Self.longestMessage).inLine.clipped(to: Self.longestMessage)
  }

  private static let longestMessage = 1024
  private static let longestQuotation = 256

  private func shown(_ text: String) -> String { text.clipped(to: Self.longestQuotation) }

  private var text: String {
    switch self {
    case .parseError(let offset, let reason):
      "frame is not one JSON text: \(reason) at byte \(offset); send one JSON value in UTF-8 in each frame"
    case .invalidRequest(let reason): "invalid request: \(reason)"
    case .methodNotFound(let name): "unknown method \"\(shown(name))\"; hello lists the methods of this daemon"
    case .invalidParams(let member, let reason): "parameter \(shown(member)) \(reason)"
    case .internalError(let reason): "internal error: \(reason); nothing was changed"
    case .unknownFeed(let name): "unknown feed \"\(shown(name))\"; define it first, or list the feeds with method feeds"
    case .definitionConflict(let feed, let reason): "cannot change feed \"\(shown(feed))\": \(reason)"
    case .duplicateIdentity(let feed, _, let id):
      "feed \"\(shown(feed))\" would have two rows with identity \(shown(id)); update the one that is there"
    case .wrongKind(let feed, let kind, let wanted):
      "feed \"\(shown(feed))\" is of kind \(shown(kind)): the method needs \(shown(wanted))"
    case .noIdentity(_, let index, "", let found):
      "identity \(grouped(index)) of the request is \(found): it must be a string or a number"
    case .noIdentity(_, let index, let path, let found):
      "element \(grouped(index)) has no identity: \(shown(path)) is \(found) and must be a string or a number"
    case .badQuery(let member, _, let offset, let reason):
      "\(member) does not parse at byte \(offset): \(reason)"
    case .indexOutOfRange(let feed, let place, let index, let count, let what):
      (place == nil || place == feed ? "feed" : "section") + " \"\(shown(place ?? feed))\" has no "
        + Self.outOfRange(what, index, count)
    case .permissionDenied(let reason): "permission denied: \(reason)"
    case .limitExceeded(let limit, let value, let reason): "limit \(limit) (\(grouped(value))) exceeded: \(reason)"
    case .storageFailed(let reason) where reason.hasSuffix(Self.mayBeStored): "cannot store the change: \(reason)"
    case .storageFailed(let reason): "cannot store the change: \(reason); nothing was changed"
    case .behind(let reason):
      "this host has not reached the revision of \"since\": \(reason); or resume on another host"
    case .conditionFailed(let feed, let wanted, let present):
      "condition failed: feed \"\(shown(feed))\" is \(Self.state(present)), not \(Self.state(wanted)); "
        + "read it again, then repeat the request with its revision"
    case .elementConditionFailed(let feed, _, _, let element, let reason):
      "condition failed: " + Self.unmet(reason, shown(element, of: feed))
    case .unknownIdentity(let feed, _, let id): "feed \"\(shown(feed))\" has no element with identity \(shown(id))"
    case .ofFeed(_, let error): error.message
    case .operationFailed(let index, let error): "operation \(grouped(index)): \(error.message)"
    }
  }

  private static func outOfRange(_ what: IndexedPart, _ index: Int, _ count: Int) -> String {
    switch what {
    case .section: "section \(grouped(index)): it has \(counted(count, "section")), counted from 0"
    case .row: "row \(grouped(index)): it has \(counted(count, "row")), counted from 0"
    case .child: "child \(grouped(index)): it has \(counted(count, "child", plural: "children")), counted from 0"
    case .placeOfChild:
      "place \(grouped(index)) for a child: it has \(counted(count, "child", plural: "children")); give 0 to \(grouped(count))"
    }
  }

  private func shown(_ element: NamedElement, of feed: String) -> String {
    switch element {
    case .id(let id): "the element with identity \(shown(id)) of feed \"\(shown(feed))\""
    case .row(let row, _): "row \(grouped(row)) of feed \"\(shown(feed))\""
    case .only: "the element of feed \"\(shown(feed))\""
    }
  }

  private static func unmet(_ reason: UnmetElementCondition, _ element: String) -> String {
    switch reason {
    case .unmatched: "\(element) does not match \"where\""
    case .missing: "\(element) does not exist, so it cannot match \"where\""
    case .present: "\(element) exists, and the request needs it \"absent\""
    }
  }

  private static func state(_ revision: UInt64?) -> String {
    revision.map { "at revision \(grouped($0))" } ?? "undefined"
  }

  /// The reason alone, for messages that have already named the feed or the file.
  public var reason: String {
    switch self {
    case .definitionConflict(_, let reason), .permissionDenied(let reason), .internalError(let reason),
      .storageFailed(let reason), .behind(let reason):
      reason
    case .unknownFeed(let name): "shows \"\(name)\", which neither the file nor the daemon defines"
    case .invalidParams(let member, let reason): "\(member) \(reason)"
    case .noIdentity(_, let index, let path, let found):
      "row \(grouped(index)) has no identity: \(path) is \(found) and must be a string or a number"
    case .parseError, .invalidRequest, .methodNotFound, .wrongKind, .badQuery, .indexOutOfRange, .limitExceeded,
      .conditionFailed, .elementConditionFailed, .unknownIdentity, .duplicateIdentity, .operationFailed, .ofFeed:
      message
    }
  }

  /// Appends the members of `data`: the feed and the offending value.
  func appendData(to out: inout ByteBuffer) {
    var members = DataMembers()
    append(to: &out, &members)
  }

  private func append(to out: inout ByteBuffer, _ members: inout DataMembers) {
    switch self {
    case .parseError(let offset, _): members.append("offset", offset, &out)
    case .invalidRequest, .internalError, .permissionDenied, .storageFailed, .behind: break
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
    case .indexOutOfRange(let feed, _, let index, let count, _):
      members.append("feed", feed, &out)
      members.append("index", index, &out)
      members.append("count", count, &out)
    case .limitExceeded(let limit, let value, _):
      members.append("limit", limit, &out)
      members.append("value", value, &out)
    case .conditionFailed(let feed, _, let present):
      members.append("feed", feed, &out)
      members.append("revision", json: present.map { "\($0)" } ?? "null", &out)
    case .elementConditionFailed(let feed, let revision, let index, let element, _):
      members.append("feed", feed, &out)
      members.append("revision", json: "\(revision)", &out)
      members.append("index", index, &out)
      if let id = element.id { members.append("id", json: id, &out) }
      if case .row(let row, _) = element { members.append("at", row, &out) }
    case .unknownIdentity(let feed, let index, let id), .duplicateIdentity(let feed, let index, let id):
      members.append("feed", feed, &out)
      members.append("index", index, &out)
      members.append("id", json: id, &out)
    case .operationFailed(let index, let error):
      members.append("op", index, &out)
      error.append(to: &out, &members)
    case .ofFeed(let feed, let error):
      members.append("feed", feed, &out)
      error.append(to: &out, &members)
    }
  }
}

extension NamedElement {
  /// The identity, a JSON text; nil if the element has none.
  fileprivate var id: String? {
    switch self {
    case .id(let id): id
    case .row(_, let id): id
    case .only: nil
    }
  }
}

/// Writes the members of an object, separated by commas.
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

  /// Appends a value that is JSON already; one that is too long is left out.
  mutating func append(_ name: StaticString, json value: String, _ out: inout ByteBuffer) {
    if value.utf8.count > Self.longestValue { return }
    begin(name, &out)
    out.append(string: value)
  }

  private mutating func begin(_ name: StaticString, _ out: inout ByteBuffer) {
    out.append(isFirst ? "\"" : ",\"")
    out.append(name)
    out.append("\":")
    isFirst = false
  }
}

extension String {
  /// Returns the text, or a prefix of at most `most` bytes of UTF-8 and an ellipsis. It ends at a character boundary of
  /// Unicode scalars.
  fileprivate func clipped(to most: Int) -> String {
    if utf8.count <= most { return self }
    var end = utf8.index(startIndex, offsetBy: most)
    while end > startIndex, end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
    return self[..<end] + "…"
  }
}
