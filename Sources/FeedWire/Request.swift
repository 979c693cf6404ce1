import FeedChange
import FeedJSON

/// A JSON-RPC 2.0 request. Valid while the bytes and the tape of its frame are ("Messages" in `Protocol/README.md`).
public struct Request {
  /// A string or a number; nil for a notification, which is executed without a response.
  public let id: JSONView?
  /// The name of the method, a string.
  public let method: JSONView
  /// The object of named parameters; nil if it is absent.
  public let params: JSONView?

  /// Reads a request.
  ///
  /// - Parameter found: set to the valid id, also if an error is thrown, so that the error can be sent as a response.
  /// - Throws: `invalidRequest`, `invalidParams`.
  public init(reading message: JSONView, id found: inout JSONView?) throws(FeedError) {
    guard message.kind == .object else { throw .invalidRequest(reason: "a request must be an object") }
    var version: JSONView?
    var method: JSONView?
    var params: JSONView?
    var id: JSONView?
    for member in message.members {
      if member.key.stringEquals("jsonrpc") {
        version = member.value
      } else if member.key.stringEquals("method") {
        method = member.value
      } else if member.key.stringEquals("params") {
        params = member.value
      } else if member.key.stringEquals("id") {
        id = member.value
      }
    }
    if let id {
      guard id.kind == .string || id.kind == .number else {
        throw .invalidRequest(reason: "\"id\" must be a string or a number; omit it for a notification")
      }
    }
    found = id
    guard let version, version.stringEquals("2.0") else {
      throw .invalidRequest(reason: "\"jsonrpc\" must be \"2.0\"")
    }
    guard let method, method.kind == .string else {
      throw .invalidRequest(reason: "\"method\" must be a string that names a method")
    }
    if let params, params.kind != .object {
      throw .invalidParams(member: "params", reason: "must be an object of named parameters")
    }
    self.id = id
    self.method = method
    self.params = params
  }
}
