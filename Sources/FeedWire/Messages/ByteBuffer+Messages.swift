import FeedJSON
import FeedModel

/// The fixed parts of messages.
extension ByteBuffer {
  /// `{"jsonrpc":"2.0","id":…,"result":{` — the members of the result and `endMessage` follow.
  public mutating func beginResult(id: JSONView) {
    append("{\"jsonrpc\":\"2.0\",\"id\":")
    append(id.text)
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
    append("{\"jsonrpc\":\"2.0\",\"id\":")
    if let id { append(id.text) } else { append("null") }
    append(",\"error\":{\"code\":")
    append(integer: error.code)
    append(",\"message\":")
    appendJSONString(error.message)
    append(",\"data\":{")
    error.appendData(to: &self)
    append("}}}")
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
