import FeedJSON
import FeedSystem
import Glibc

/// A client's end of one connection: requests out, responses and notifications in, in their order.
///
/// Nothing here waits but ``wait(until:)`` and what is built on it, so that a program can poll ``descriptor`` together
/// with other things. For one thread at a time.
public final class Connection {
  private let stream: UnixStream
  private var input = FrameBuffer()
  private var scanner = JSONScanner(maxDepth: Connection.maxDepth)
  private var output = ByteBuffer()
  private var written = 0
  private var lastID = 0
  /// Notifications that came while a response was waited for, oldest first.
  private var deferred = FrameBuffer(capacity: 256)
  private var hasEnded = false
  /// The daemon's last word, once it has come.
  public private(set) var bye: Bye?

  /// Deeper than any daemon lets an element be, plus what a message wraps around it.
  private static let maxDepth = 10_100

  /// A connection over a stream, which it makes nonblocking.
  public init(_ stream: UnixStream) throws(SystemError) {
    self.stream = stream
    try stream.setNonblocking(true)
  }

  /// Connects to the daemon at `path`.
  /// - Parameter timeout: the longest wait for a daemon that does not accept.
  public static func open(path: String, timeout: Duration? = nil) throws(ClientError) -> Connection {
    do throws(SystemError) {
      return try Connection(try UnixStream.connect(path: path, timeout: timeout))
    } catch {
      throw Self.meansNoDaemon(error.code) ? .noDaemon(error) : .system(error)
    }
  }

  private static func meansNoDaemon(_ code: Int32) -> Bool {
    [ENOENT, ECONNREFUSED, ETIMEDOUT, ENOTDIR, ENOTSOCK, EACCES].contains(code)
  }

  /// To be polled for reading, and for writing while ``hasOutput``.
  public var descriptor: Int32 { stream.descriptor }

  /// Whether some of what was sent has not been taken by the socket.
  public var hasOutput: Bool { written < output.count }

  /// How many bytes of what was sent have not been taken by the socket.
  public var outputCount: Int { output.count - written }

  // MARK: Sending

  /// Queues a request; ``flush()`` writes it.
  /// - Parameter params: writes the JSON object of the parameters.
  /// - Returns: the id that its response will have.
  @discardableResult
  public func send(_ method: String, params: (inout ByteBuffer) -> Void = { $0.append("{}") }) -> Int {
    lastID += 1
    if written == output.count {
      output.removeAll(keepingCapacity: true)
      written = 0
    }
    let start = output.count
    output.appendUInt32BigEndian(0)
    output.append("{\"jsonrpc\":\"2.0\",\"id\":")
    output.append(integer: lastID)
    output.append(",\"method\":")
    output.appendJSONString(method)
    output.append(",\"params\":")
    params(&output)
    output.append(UInt8(ascii: "}"))
    output.overwriteUInt32BigEndian(at: start, UInt32(truncatingIfNeeded: output.count - start - 4))
    return lastID
  }

  /// Writes what the socket takes now. That the daemon is gone shows when reading, after its last words.
  public func flush() throws(ClientError) {
    while hasOutput {
      do throws(SystemError) {
        guard let count = try stream.write(UnsafeRawBufferPointer(rebasing: output.bytes[written...])) else { return }
        written += count
      } catch {
        guard error.code == EPIPE || error.code == ECONNRESET else { throw .system(error) }
        written = output.count
      }
    }
  }

  // MARK: Receiving

  /// Reads what is there now, up to a buffer's room. Messages given out before are no longer valid.
  /// - Returns: whether there was something, the end included.
  @discardableResult
  public func fill() throws(ClientError) -> Bool {
    do throws(SystemError) {
      guard let count = try stream.read(into: input.room()) else { return false }
      if count == 0 { hasEnded = true }
      input.didFill(count)
    } catch {
      guard error.code == ECONNRESET else { throw .system(error) }
      hasEnded = true
    }
    return true
  }

  /// The next message that has come completely, valid until the next call or ``fill()``; nil when there is none yet.
  /// - Throws: `closed` after the last message of a connection that has ended.
  public func next() throws(ClientError) -> Message? {
    if let message = try nextMessage(of: &deferred) { return message }
    return try nextFromSocket()
  }

  private func nextFromSocket() throws(ClientError) -> Message? {
    if let message = try nextMessage(of: &input) { return message }
    if hasEnded { throw .closed(bye) }
    return nil
  }

  private func nextMessage(of buffer: inout FrameBuffer) throws(ClientError) -> Message? {
    do throws(MalformedMessage) {
      guard let frame = try buffer.next() else { return nil }
      let message = try Message(try scan(frame))
      if case .notification(let notification) = message, notification.kind == .bye { bye = Bye(notification.params) }
      return message
    } catch {
      throw .malformed(error)
    }
  }

  private func scan(_ frame: UnsafeRawBufferPointer) throws(MalformedMessage) -> JSONView {
    do throws(JSONError) {
      return try scanner.scan(frame)
    } catch {
      throw MalformedMessage("a frame that is not JSON: \(error.message) at byte \(error.offset)")
    }
  }
}

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
