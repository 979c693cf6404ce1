import FeedJSON
import FeedSystem

extension Connection {
  /// Waits until there is something to read, or room for what is still to be written, or the time is up.
  /// - Parameter deadline: in nanoseconds of ``MonotonicClock``; nil waits for ever.
  /// - Returns: false when the time was up.
  public func wait(until deadline: UInt64?) throws(ClientError) -> Bool {
    do throws(SystemError) {
      while true {
        var list = WaitList()
        list.add(descriptor, hasOutput ? [.readable, .writable] : .readable)
        if try list.wait(until: deadline) { return true }
        if let deadline, MonotonicClock.now >= deadline { return false }
      }
    } catch {
      throw .system(error)
    }
  }

  /// Sends a request and waits for its response. Notifications that come meanwhile are given by ``next()`` later.
  /// - Parameters:
  ///   - params: writes the JSON object of the parameters.
  ///   - deadline: in nanoseconds of ``MonotonicClock``; nil waits for ever.
  ///   - read: takes what is wanted out of the result, which is valid only inside.
  public func call<Result>(
    _ method: String, params: (inout ByteBuffer) -> Void = { $0.append("{}") }, deadline: UInt64? = nil,
    _ read: (JSONView) throws(MalformedMessage) -> Result
  ) throws(ClientError) -> Result {
    let id = send(method, params: params)
    while true {
      try flush()
      while let message = try nextFromSocket() {
        switch message {
        case .notification(let notification):
          deferred.append(notification.whole.text)
        case .response(id, .success(let result)):
          do throws(MalformedMessage) {
            return try read(result)
          } catch {
            throw .malformed(error)
          }
        // Without an id it says that what was sent could not be read at all.
        case .response(id, .failure(let error)), .response(0, .failure(let error)):
          throw .refused(error)
        case .response:
          continue
        }
      }
      guard try wait(until: deadline) else { throw .timedOut }
      try fill()
    }
  }

  /// Says hello, which a connection does first.
  /// - Parameter client: the name that the daemon's log and `clients` show.
  public func hello(client: String, deadline: UInt64? = nil) throws(ClientError) -> ServerHello {
    try call("hello", params: { Self.appendHello(client: client, to: &$0) }, deadline: deadline) {
      result throws(MalformedMessage) in try ServerHello(result)
    }
  }

  /// The parameters of `hello`.
  static func appendHello(client: String, to params: inout ByteBuffer) {
    params.append("{\"protocol\":1,\"client\":")
    params.appendJSONString(client)
    params.append(UInt8(ascii: "}"))
  }
}
