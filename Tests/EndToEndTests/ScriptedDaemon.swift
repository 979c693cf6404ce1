import FeedSystem
import TestSupport

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
  ///
  /// - Parameter notification: sent at once behind the result, for a client that may close the connection when it reads that.
  @discardableResult
  func answer(
    _ method: String, _ result: String, then notification: (method: String, params: String)? = nil
  ) throws -> String {
    let (request, id) = try receive(method)
    let rest = notification.map { Self.notification($0.method, $0.params) }
    try say(["{\"jsonrpc\":\"2.0\",\"id\":\(id),\"result\":\(result)}"] + (rest.map { [$0] } ?? []))
    return request
  }

  /// Receives a request of that method and refuses it.
  func refuse(_ method: String, _ error: String) throws {
    try say(["{\"jsonrpc\":\"2.0\",\"id\":\(receive(method).id),\"error\":\(error)}"])
  }

  private func receive(_ method: String) throws -> (request: String, id: Substring) {
    let request = try require(client).receive(having: "\"method\":\"\(method)\"")
    return (request, try require(request.firstMatch(of: /"id":(\d+)/)).1)
  }

  /// Sends a notification.
  func notify(_ method: String, _ params: String) throws { try say([Self.notification(method, params)]) }

  private static func notification(_ method: String, _ params: String) -> String {
    "{\"jsonrpc\":\"2.0\",\"method\":\"\(method)\",\"params\":\(params)}"
  }

  /// Sends messages by one write.
  private func say(_ messages: [String]) throws {
    try require(client).sendBytes(messages.flatMap { RawClient.frame(Array($0.utf8)) })
  }

  /// Closes the connection.
  func hangUp() { client = nil }
}
