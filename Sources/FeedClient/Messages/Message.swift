import FeedJSON

/// A message from the daemon, read in place: valid until the connection returns the next one.
public enum Message {
  /// The response to a request that this connection sent.
  case response(id: Int, Result<JSONView, RemoteError>)
  /// A notification.
  case notification(Notification)
}

/// A notification: a message that answers no request. Valid until the connection returns the next message.
public struct Notification {
  /// The notifications of protocol 1.
  public enum Kind: Sendable {
    case delta
    case snapshot
    case bookmark
    case selection
    case bye
    /// A notification that this version does not know.
    case other
  }

  public let kind: Kind
  /// The parameters, an object.
  public let params: JSONView
  /// The whole JSON-RPC message.
  public let whole: JSONView

  /// Whether this is the last notification of a feed that was undefined.
  public var endsFeed: Bool { (kind == .delta || kind == .snapshot) && params.member("ended")?.bool == true }

  /// Whether this notification of `$feeds` contains the row of a feed, or of the collection of a bin.
  func lists(_ feed: String) -> Bool {
    var name = String(feed.prefix { $0 != "/" })
    return name.withUTF8 { name in
      params.member("elements")?.elements.contains {
        $0.member("feed")?.stringEquals(utf8: UnsafeRawBufferPointer(name)) == true
      } == true
    }
  }

  /// Whether the notification is about a feed.
  public func concerns(_ feed: String) -> Bool {
    var feed = feed
    return feed.withUTF8 { name in params.member("feed")?.stringEquals(utf8: UnsafeRawBufferPointer(name)) ?? false }
  }
}

extension Message {
  /// Reads the JSON of a frame.
  init(_ view: JSONView) throws(MalformedMessage) {
    if let method = view.member("method") {
      guard let params = view.member("params") else { throw MalformedMessage("a notification without \"params\"") }
      self = .notification(Notification(kind: .init(method), params: params, whole: view))
    } else if let error = view.member("error") {
      // An error without an id answers a request that the daemon could not parse.
      self = .response(id: view.member("id")?.int ?? 0, .failure(RemoteError(error)))
    } else if let result = view.member("result"), let id = view.member("id")?.int {
      self = .response(id: id, .success(result))
    } else {
      throw MalformedMessage("a message that is neither a response nor a notification")
    }
  }
}

extension Notification.Kind {
  fileprivate init(_ method: JSONView) {
    self =
      if method.stringEquals("delta") {
        .delta
      } else if method.stringEquals("snapshot") {
        .snapshot
      } else if method.stringEquals("bookmark") {
        .bookmark
      } else if method.stringEquals("selection") {
        .selection
      } else if method.stringEquals("bye") {
        .bye
      } else {
        .other
      }
  }
}

extension RemoteError {
  /// Reads the `error` of a response.
  init(_ error: JSONView) {
    self.init(
      code: error.member("code")?.int ?? -32603, message: error.member("message")?.string ?? "request refused",
      data: error.member("data")?.compactText)
  }
}
