import FeedChange
import FeedJSON

/// The fixed parts of messages.
extension ByteBuffer {
  /// `{"jsonrpc":"2.0","id":…,"result":{` — the members of the result and `endMessage` follow.
  public mutating func beginResult(id: JSONView) {
    beginResult(id: id.text)
  }

  /// The same for the JSON text of an id.
  public mutating func beginResult(id: UnsafeRawBufferPointer) {
    append("{\"jsonrpc\":\"2.0\",\"id\":")
    append(id)
    append(",\"result\":{")
  }

  /// `{"jsonrpc":"2.0","method":…,"params":{` — the parameters and `endMessage` follow.
  public mutating func beginNotification(_ method: StaticString) {
    append("{\"jsonrpc\":\"2.0\",\"method\":\"")
    append(method)
    append("\",\"params\":{")
  }

  /// The braces that close a result or a notification.
  public mutating func endMessage() {
    append("}}")
  }

  /// A whole error response; `id` nil becomes null.
  public mutating func appendError(_ error: FeedError, id: JSONView?) {
    appendError(error, id: id?.text)
  }

  /// The same for the JSON text of an id.
  public mutating func appendError(_ error: FeedError, id: UnsafeRawBufferPointer?) {
    append("{\"jsonrpc\":\"2.0\",\"id\":")
    if let id { append(id) } else { append("null") }
    append(",\"error\":{\"code\":")
    append(integer: error.code)
    append(",\"message\":")
    appendJSONString(error.message)
    append(",\"data\":{")
    error.appendData(to: &self)
    append("}}}")
  }

  /// An error response without message and data, for frames in which they do not fit; at most 96 bytes and those of the id.
  public mutating func appendShortError(_ error: FeedError, id: UnsafeRawBufferPointer?) {
    append("{\"jsonrpc\":\"2.0\",\"id\":")
    if let id { append(id) } else { append("null") }
    append(",\"error\":{\"code\":")
    append(integer: error.code)
    append(",\"message\":\"maxFrame leaves no room to say more\"}}")
  }

  /// A whole `bye` notification, framed.
  public mutating func appendByeFrame(reason: String, message: String) {
    let start = beginFrame()
    beginNotification("bye")
    append("\"reason\":")
    appendJSONString(reason)
    append(",\"message\":")
    appendJSONString(message)
    endMessage()
    endFrame(at: start)
  }
}
