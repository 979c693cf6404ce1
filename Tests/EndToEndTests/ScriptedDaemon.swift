import FeedSystem
import TestSupport
import Testing

/// A daemon that sends the frames of a test, valid or invalid.
final class ScriptedDaemon {
  let directory: TemporaryDirectory
  let socketPath: String
  private let listener: UnixListener
  private var client: RawClient?

  init() throws {
    directory = try TemporaryDirectory()
    socketPath = directory.file("feedd.sock")
    listener = try UnixListener.bind(path: socketPath)
  }

  /// Waits for a client and answers its `hello`.
  func accept() throws {
    _ = try Readiness.readable.wait(on: listener.descriptor, timeout: testTimeout)
    guard case .connection(let number) = listener.accept() else { throw TestFailure("no client connected") }
    client = RawClient(UnixStream(owning: Descriptor(owning: number)))
    try answer(
      "hello",
      "{\"protocol\":1,\"server\":\"scripted\",\"epoch\":\"e\",\"revision\":1,\"limits\":{},\"capabilities\":{}}")
  }

  /// Receives a request of that method and sends its result.
  @discardableResult
  func answer(_ method: String, _ result: String) throws -> String {
    let request = try #require(client).receive(having: "\"method\":\"\(method)\"")
    let id = try #require(request.firstMatch(of: /"id":(\d+)/)).1
    try say("{\"jsonrpc\":\"2.0\",\"id\":\(id),\"result\":\(result)}")
    return request
  }

  /// Sends a notification.
  func notify(_ method: String, _ params: String) throws {
    try say("{\"jsonrpc\":\"2.0\",\"method\":\"\(method)\",\"params\":\(params)}")
  }

  private func say(_ json: String) throws { try #require(client).send(json) }

  /// Closes the connection.
  func hangUp() { client = nil }
}
