import FeedChange
import FeedJSON
import FeedSystem
import FeedWire
import Glibc

/// A connection to a daemon: sends requests, and receives responses and notifications in order.
///
/// Only ``wait(until:)`` and ``call(_:params:deadline:_:)`` block, so a program can poll ``descriptor`` together with
/// other descriptors. Not thread-safe.
public final class Connection {
  private let stream: UnixStream
  private var input = FrameBuffer(limit: Connection.maxMessage)
  private var scanner = JSONScanner(maxDepth: Connection.maxDepth)
  /// The requests that were not written yet. Written bytes leave it although later requests keep it from becoming empty.
  private var output = ByteQueue(capacity: 4096)
  private var lastID = 0
  /// The maximum bytes of a request, as the answer to `hello` tells it.
  private var maxFrame = Int.max
  /// Notifications received while waiting for a response, oldest first.
  private var deferred = FrameBuffer(capacity: 256)
  private var hasEnded = false
  /// The daemon's `bye`; nil until it was received.
  public private(set) var bye: Bye?

  /// The maximum bytes of a message: several times the largest message of a daemon with default limits.
  private static let maxMessage = 256 << 20
  /// The maximum bytes of notifications that are kept while waiting for a response.
  private static let maxDeferred = 64 << 20
  /// The maximum depth of JSON: more than any daemon allows for an element and its message.
  private static let maxDepth = 10_100

  /// Creates a connection over a stream and makes the stream nonblocking.
  public init(_ stream: UnixStream) throws(SystemError) {
    self.stream = stream
    try stream.setNonblocking(true)
  }

  /// - Parameter timeout: the time to wait for a daemon that does not accept.
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

  /// The descriptor to poll for reading, and for writing while ``hasOutput``.
  public var descriptor: Int32 { stream.descriptor }
  /// What to wait for on the descriptor.
  public var interest: Readiness { hasOutput ? [.readable, .writable] : .readable }
  /// Whether there are queued bytes that were not written yet.
  public var hasOutput: Bool { output.count > 0 }
  /// The number of queued bytes that were not written yet.
  public var outputCount: Int { output.count }

  // MARK: Sending

  /// Queues a request; ``flush()`` writes it.
  /// - Parameter params: writes the JSON object of the parameters.
  /// - Returns: the id of the request, which its response repeats.
  @discardableResult
  public func send(_ method: String, params: (inout ByteBuffer) -> Void = { $0.append("{}") }) -> Int {
    queue(frame(method, params))
  }

  /// Queues a request like ``send(_:params:)``, unless it is longer than the daemon accepts. The daemon would close the
  /// connection, and the other requests on it would get no answers.
  func sendIfAccepted(_ method: String, params: (inout ByteBuffer) -> Void) throws(ClientError) -> Int {
    let frame = frame(method, params)
    let count = frame.count - Frame.headerLength
    guard count <= maxFrame else {
      let sizes = "\(method) has \(counted(count, "byte")), and the daemon accepts \(grouped(maxFrame))"
      let error = FeedError.invalidRequest(
        reason: "\(sizes); send less at once, or start feedd with a larger --max-frame")
      throw .refused(RemoteError(code: error.code, message: error.message))
    }
    return queue(frame)
  }

  private func frame(_ method: String, _ params: (inout ByteBuffer) -> Void) -> ByteBuffer {
    var frame = ByteBuffer()
    let start = frame.beginFrame()
    frame.append("{\"jsonrpc\":\"2.0\",\"id\":", integer: lastID + 1)
    frame.append(",\"method\":", quoted: method)
    frame.append(",\"params\":")
    params(&frame)
    frame.append(UInt8(ascii: "}"))
    frame.endFrame(at: start)
    return frame
  }

  private func queue(_ frame: borrowing ByteBuffer) -> Int {
    lastID += 1
    output.append(frame.bytes)
    return lastID
  }

  /// Writes as much as the socket accepts now. A closed connection is reported when reading, after the daemon's last
  /// messages.
  public func flush() throws(ClientError) {
    while hasOutput {
      do throws(SystemError) {
        guard let count = try stream.write(output.bytes) else { return }
        output.consume(count)
      } catch {
        guard error.code == EPIPE || error.code == ECONNRESET else { throw .system(error) }
        output.consume(output.count)
      }
    }
  }

  // MARK: Receiving

  /// Reads available input, as far as the buffer has room. Invalidates messages returned before.
  /// - Returns: whether there was input or the end of the input.
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

  /// Returns the next complete message, valid until the next call or ``fill()``; nil if there is none yet.
  /// - Throws: `closed` after the last message of a closed connection.
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
  /// Waits until there is input, or until queued output can be written.
  /// - Parameter deadline: in nanoseconds of ``MonotonicClock``; nil for no limit.
  /// - Returns: false on timeout.
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

  /// Sends a request and waits for its response. ``next()`` returns the notifications that arrive meanwhile. A request that is
  /// longer than the daemon accepts is refused and not sent.
  /// - Parameters:
  ///   - params: writes the JSON object of the parameters.
  ///   - deadline: in nanoseconds of ``MonotonicClock``; nil for no limit.
  ///   - read: parses the result, which is valid only during the call.
  public func call<Result>(
    _ method: String, params: (inout ByteBuffer) -> Void = { $0.append("{}") }, deadline: UInt64? = nil,
    _ read: (JSONView) throws(MalformedMessage) -> Result
  ) throws(ClientError) -> Result {
    let id = try sendIfAccepted(method, params: params)
    while true {
      try flush()
      while let message = try nextFromSocket() {
        switch message {
        case .notification(let notification):
          guard deferred.count + notification.whole.text.count <= Self.maxDeferred else {
            throw .malformed(MalformedMessage("more than 64 MiB of notifications before the response to \(method)"))
          }
          deferred.append(notification.whole.text)
        case .response(id, .success(let result)): return try reading(read(result))
        // An error without an id means that the daemon could not parse the request.
        case .response(id, .failure(let error)), .response(0, .failure(let error)): throw .refused(error)
        case .response: continue
        }
      }
      // Other messages do not extend the deadline.
      if let deadline, MonotonicClock.now >= deadline { throw .timedOut }
      guard try wait(until: deadline) else { throw .timedOut }
      try fill()
    }
  }

  /// Sends `hello`, the first request of a connection.
  /// - Parameter client: the client's name in the daemon's log and in `clients`.
  public func hello(client: String, deadline: UInt64? = nil) throws(ClientError) -> ServerHello {
    let hello = try call("hello", params: { Self.appendHello(client: client, to: &$0) }, deadline: deadline) {
      result throws(MalformedMessage) in try ServerHello(result)
    }
    maxFrame = hello.maxFrame
    return hello
  }

  static func appendHello(client: String, to params: inout ByteBuffer) {
    params.append("{\"protocol\":1,\"client\":", quoted: client)
    params.append(UInt8(ascii: "}"))
  }
}

/// Splits input from the daemon into frames; see "Connecting and framing" in `Protocol/README.md`.
struct FrameBuffer: ~Copyable {
  /// The greatest `maxFrame` that a daemon can be configured with.
  static let maxFrame = 1 << 30

  private var queue: ByteQueue
  /// The maximum length of a frame, which limits the memory that a daemon can make this client use.
  private let limit: Int

  init(capacity: Int = 256 << 10, limit: Int = FrameBuffer.maxFrame) {
    queue = ByteQueue(capacity: capacity)
    self.limit = limit
  }

  var count: Int { queue.count }

  /// Returns memory to read into; invalidates frames returned before. The buffer grows with the bytes that arrive, not
  /// with the length that a frame claims.
  mutating func room() -> UnsafeMutableRawBufferPointer { queue.room() }

  mutating func didFill(_ count: Int) { queue.didFill(count) }

  mutating func append(_ json: UnsafeRawBufferPointer) {
    withUnsafeBytes(of: UInt32(truncatingIfNeeded: json.count).bigEndian) { queue.append($0) }
    queue.append(json)
  }

  /// Returns the JSON of the next complete frame, valid until the next ``room()``; nil if more bytes are needed.
  mutating func next() throws(MalformedMessage) -> UnsafeRawBufferPointer? {
    switch Frame.first(in: queue.bytes, maxFrame: limit) {
    case .incomplete: return nil
    case .badLength(let length):
      throw MalformedMessage("a frame of \(counted(length, "byte")); the limit is \(grouped(limit))")
    case .complete(let json):
      queue.consume(Frame.headerLength + json.count)
      return json
    }
  }
}

/// A queue of bytes in raw memory, which is reused and grows with its content.
package struct ByteQueue: ~Copyable {
  private var block: UnsafeMutableRawPointer
  private var capacity: Int
  private var head = 0
  private var tail = 0

  /// - Parameter capacity: at least 4.
  package init(capacity: Int) {
    self.capacity = capacity
    block = .allocate(byteCount: capacity, alignment: 16)
  }

  deinit { block.deallocate() }

  package var count: Int { tail - head }
  /// The bytes in the queue; valid until the next ``room(atLeast:)``, even if they are consumed.
  package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: block + head, count: tail - head) }

  /// Returns memory for at least `minimum` bytes. Call ``didFill(_:)`` with the number of bytes written there.
  package mutating func room(atLeast minimum: Int = 1) -> UnsafeMutableRawBufferPointer {
    if head == tail { (head, tail) = (0, 0) }
    while capacity - tail < max(minimum, capacity / 4) {
      if head >= capacity / 2 {
        block.copyMemory(from: block + head, byteCount: count)
      } else {
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity * 2, alignment: 16)
        larger.copyMemory(from: block + head, byteCount: count)
        block.deallocate()
        (block, capacity) = (larger, capacity * 2)
      }
      (head, tail) = (0, tail - head)
    }
    return UnsafeMutableRawBufferPointer(start: block + tail, count: capacity - tail)
  }

  /// Adds bytes that are not in the queue.
  package mutating func append(_ bytes: UnsafeRawBufferPointer) {
    room(atLeast: bytes.count).copyMemory(from: bytes)
    didFill(bytes.count)
  }

  /// Adds the first `count` bytes of the last ``room(atLeast:)``.
  package mutating func didFill(_ count: Int) { tail += count }

  package mutating func consume(_ count: Int) { head += count }
}
