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
    case .badQuery(let member, _, let offset, let reason): "\(member) does not parse at byte \(offset): \(reason)"
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
    var isFirst = true
    for (name, value) in data {
      if case .json(let text) = value, text.utf8.count > Self.longestValue { continue }
      out.append(isFirst ? "\"" : ",\"")
      out.append(name)
      out.append("\":")
      isFirst = false
      switch value {
      case .text(let text): out.appendJSONString(text.clipped(to: Self.longestValue))
      case .number(let number): out.append(integer: number)
      case .json(let text): out.append(string: text)
      }
    }
  }

  private static let longestValue = 1024

  private var data: [DataMember] {
    switch self {
    case .invalidRequest, .internalError, .permissionDenied, .storageFailed, .behind: []
    case .parseError(let offset, _): [("offset", .number(offset))]
    case .methodNotFound(let name): [("method", .text(name))]
    case .invalidParams(let member, _): [("member", .text(member))]
    case .unknownFeed(let feed), .definitionConflict(let feed, _): [("feed", .text(feed))]
    case .wrongKind(let feed, let kind, let wanted):
      [("feed", .text(feed)), ("kind", .text(kind)), ("wanted", .text(wanted))]
    case .noIdentity(let feed, let index, "", _): [("feed", .text(feed)), ("index", .number(index))]
    case .noIdentity(let feed, let index, let path, _):
      [("feed", .text(feed)), ("index", .number(index)), ("path", .text(path))]
    case .badQuery(let member, let text, let offset, _):
      [("member", .text(member)), ("text", .text(text)), ("offset", .number(offset))]
    case .indexOutOfRange(let feed, _, let index, let count, _):
      [("feed", .text(feed)), ("index", .number(index)), ("count", .number(count))]
    case .limitExceeded(let limit, let value, _): [("limit", .text(limit)), ("value", .number(value))]
    case .conditionFailed(let feed, _, let present):
      [("feed", .text(feed)), ("revision", .json(present.map { "\($0)" } ?? "null"))]
    case .elementConditionFailed(let feed, let revision, let index, let element, _):
      [("feed", .text(feed)), ("revision", .json("\(revision)")), ("index", .number(index))] + element.data
    case .unknownIdentity(let feed, let index, let id), .duplicateIdentity(let feed, let index, let id):
      [("feed", .text(feed)), ("index", .number(index)), ("id", .json(id))]
    case .operationFailed(let index, let error): [("op", .number(index))] + error.data
    case .ofFeed(let feed, let error): [("feed", .text(feed))] + error.data
    }
  }
}

extension NamedElement {
  fileprivate var data: [DataMember] {
    switch self {
    case .id(let id): [("id", .json(id))]
    case .row(let row, let id?): [("id", .json(id)), ("at", .number(row))]
    case .row(let row, nil): [("at", .number(row))]
    case .only: []
    }
  }
}

private typealias DataMember = (name: StaticString, value: DataValue)

private enum DataValue {
  case text(String)
  case number(Int)
  /// A value that is JSON already; one that is too long is left out.
  case json(String)
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
