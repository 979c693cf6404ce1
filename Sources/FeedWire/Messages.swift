import FeedChange
import FeedJSON

/// Writing responses and notifications ("Messages" in `Protocol/README.md`).
extension ByteBuffer {
  /// Appends `{"jsonrpc":"2.0","id":…,"result":{`. The caller appends the members of the result and calls `endMessage`.
  public mutating func beginResult(id: JSONView) {
    beginResult(id: id.text)
  }

  /// Appends the beginning of a result; `id` is the JSON text of the id.
  public mutating func beginResult(id: UnsafeRawBufferPointer) {
    append("{\"jsonrpc\":\"2.0\",\"id\":")
    append(id)
    append(",\"result\":{")
  }

  /// Appends `{"jsonrpc":"2.0","method":…,"params":{`. The caller appends the parameters and calls `endMessage`.
  public mutating func beginNotification(_ method: StaticString) {
    append("{\"jsonrpc\":\"2.0\",\"method\":\"")
    append(method)
    append("\",\"params\":{")
  }

  /// Appends the closing braces of a result or a notification.
  public mutating func endMessage() {
    append("}}")
  }

  /// Appends a complete error response. An absent id is written as null.
  public mutating func appendError(_ error: FeedError, id: JSONView?) {
    appendError(error, id: id?.text)
  }

  /// Appends a complete error response; `id` is the JSON text of the id.
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

  /// Appends an error response without the message and data, for an error that exceeds `maxFrame`. At most 96 bytes and those
  /// of the id.
  public mutating func appendShortError(_ error: FeedError, id: UnsafeRawBufferPointer?) {
    append("{\"jsonrpc\":\"2.0\",\"id\":")
    if let id { append(id) } else { append("null") }
    append(",\"error\":{\"code\":")
    append(integer: error.code)
    append(",\"message\":\"message too long for maxFrame\"}}")
  }

  /// Appends a frame with a complete `bye` notification.
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
