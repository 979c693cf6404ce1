import FeedChange
import FeedJSON
import FeedModel

/// A request of the daemon itself, which is stored in the journal. Its method name begins with `$`, so no client can
/// call it.
enum InternalRequest: Equatable {
  /// Evicts the elements that have expired at the time of the batch.
  case evict
  /// Applies definitions of the configuration, and removes managed feeds that it no longer defines.
  case configure(define: [FeedDefinition], undefine: [String])

  /// The user that is charged for the feeds that the next requests of the batch define.
  case owner(UInt32)

  /// Sets the rows of a managed feed. The journal has only this marker, so that no revision is used twice. The rows are
  /// read again at each start.
  case rows(feed: String)

  var isConfiguration: Bool {
    if case .configure = self { true } else { false }
  }

  /// Appends the request as JSON.
  func append(to out: inout ByteBuffer) {
    switch self {
    case .evict:
      out.append("{\"method\":\"$evict\"}")
    case .owner(let uid):
      out.append("{\"method\":\"$owner\",\"params\":{\"uid\":")
      out.append(integer: uid)
      out.append("}}")
    case .rows(let feed):
      out.append("{\"method\":\"$rows\",\"params\":{\"feed\":")
      out.appendJSONString(feed)
      out.append("}}")
    case .configure(let definitions, let names):
      out.append("{\"method\":\"$configure\",\"params\":{\"define\":[")
      for (place, definition) in definitions.enumerated() {
        out.append(place > 0 ? ",{" : "{")
        definition.appendMembers(to: &out)
        out.append(UInt8(ascii: "}"))
      }
      out.append("],\"undefine\":[")
      for (place, name) in names.enumerated() {
        if place > 0 { out.append(UInt8(ascii: ",")) }
        out.appendJSONString(name)
      }
      out.append("]}}")
    }
  }

  /// Parses a stored request; nil if it is a client's request.
  ///
  /// - Throws: the error of a definition that does not parse.
  init?(_ message: JSONView, limits: Limits) throws(FeedError) {
    guard let method = message.member("method") else { return nil }
    if method.stringEquals("$evict") {
      self = .evict
    } else if method.stringEquals("$owner") {
      self = .owner(message.member("params")?.member("uid")?.int.flatMap(UInt32.init(exactly:)) ?? .max)
    } else if method.stringEquals("$rows") {
      self = .rows(feed: message.member("params")?.member("feed")?.string ?? "")
    } else if method.stringEquals("$configure") {
      let params = message.member("params")
      var definitions: [FeedDefinition] = []
      if let array = params?.member("define") {
        for element in array.elements { definitions.append(try FeedDefinition(parsing: element, limits: limits)) }
      }
      let names = params?.member("undefine")?.elements.compactMap(\.string)
      self = .configure(define: definitions, undefine: names ?? [])
    } else {
      return nil
    }
  }
}
