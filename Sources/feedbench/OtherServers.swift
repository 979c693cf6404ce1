import FeedJSON
import FeedSystem
import Glibc
import Synchronization

/// Redis with the same job: each update is an HSET, which stores it, and a PUBLISH, which notifies the subscribers; or only the
/// PUBLISH.
struct RedisServer: Server {
  let path: String
  var stores = true
  /// How its append-only file is synced; nil if there is none.
  var appendsEach: String?

  var name: String { (stores ? "Redis HSET+PUBLISH" : "Redis PUBLISH") + (appendsEach.map { ", AOF \($0)" } ?? "") }

  func connect() throws -> UnixStream { try UnixStream.connect(path: path, timeout: .seconds(10)) }

  func prepare() throws {
    let stream = try connect()
    try ask(stream, ["DEL", PushJob.feed])
  }

  func subscribe() throws -> UnixStream {
    let stream = try connect()
    try ask(stream, ["SUBSCRIBE", PushJob.feed], answer: "*3\r\n$9\r\nsubscribe\r\n$5\r\nbench\r\n:1\r\n")
    return stream
  }

  func pushes(_ job: PushJob) -> Texts {
    let texts = Texts()
    for update in job.updates() {
      let set = stores ? Self.command(["HSET", PushJob.feed, "\(update.id)", update.text]) : ""
      texts.append(set + Self.command(["PUBLISH", PushJob.feed, update.text]))
    }
    return texts
  }

  func answerCounter(_ job: PushJob) -> MessageCounter {
    MessageCounter(length: "\(stores ? ":0\r\n" : ""):\(job.watchers)\r\n".utf8.count)
  }

  func deliveryCounter(_ job: PushJob) -> MessageCounter {
    MessageCounter(length: Self.command(["message", PushJob.feed, job.initialElements()[0]]).utf8.count)
  }

  /// Stores the initial elements of a job.
  func fill(_ job: PushJob) throws {
    let stream = try connect()
    let texts = Texts()
    for (id, element) in job.initialElements().enumerated() {
      texts.append(Self.command(["HSET", PushJob.feed, "\(1_000_000_000 + id)", element]))
    }
    var answers = MessageCounter(length: ":1\r\n".utf8.count)
    for start in stride(from: 0, to: texts.count, by: 1000) {
      let end = min(texts.count, start + 1000)
      try stream.writeAll(texts[start..<end])
      try RoundTrips.receive(&answers, end, stream)
    }
  }

  private func ask(_ stream: UnixStream, _ words: [String], answer: String? = nil) throws {
    var text = Self.command(words)
    try text.withUTF8 { try stream.writeAll(UnsafeRawBufferPointer($0)) }
    var bytes = [UInt8](repeating: 0, count: 1024)
    let count = try bytes.withUnsafeMutableBytes { try stream.read(into: $0) } ?? 0
    let found = String(decoding: bytes[..<count], as: UTF8.self)
    if found.hasPrefix("-") || answer.map({ $0 != found }) ?? found.isEmpty {
      throw BenchmarkError("Redis answered \(words[0]) with '\(found)'")
    }
  }

  /// Returns an array of bulk strings, the form of commands and messages of Redis.
  private static func command(_ words: [String]) -> String {
    words.reduce("*\(words.count)\r\n") { $0 + "$\($1.utf8.count)\r\n\($1)\r\n" }
  }
}

/// NATS with the same job: each update is a PUB, whose receipt the server confirms. Nothing is stored.
struct NATSServer: Server {
  let port: UInt16
  let name = "NATS PUB"

  func connect() throws -> UnixStream {
    let stream = try LocalPort.connect(port)
    try ask(stream, "CONNECT {\"verbose\":true,\"pedantic\":false}", until: "+OK\r\n")
    return stream
  }

  func prepare() throws {}

  func subscribe() throws -> UnixStream {
    let stream = try LocalPort.connect(port)
    try ask(
      stream, "CONNECT {\"verbose\":false,\"pedantic\":false}\r\nSUB \(PushJob.feed) 1\r\nPING", until: "PONG\r\n")
    return stream
  }

  func pushes(_ job: PushJob) -> Texts {
    let texts = Texts()
    for update in job.updates() { texts.append("PUB \(PushJob.feed) \(update.text.utf8.count)\r\n\(update.text)\r\n") }
    return texts
  }

  func answerCounter(_ job: PushJob) -> MessageCounter { MessageCounter(length: "+OK\r\n".utf8.count) }

  func deliveryCounter(_ job: PushJob) -> MessageCounter {
    let bytes = job.initialElements()[0].utf8.count
    return MessageCounter(length: "MSG \(PushJob.feed) 1 \(bytes)\r\n\r\n".utf8.count + bytes)
  }

  /// Sends a line and reads until the answer ends in `end`. The server begins with a line about itself.
  private func ask(_ stream: UnixStream, _ line: String, until end: String) throws {
    var text = line + "\r\n"
    try text.withUTF8 { try stream.writeAll(UnsafeRawBufferPointer($0)) }
    var answer: [UInt8] = []
    var bytes = [UInt8](repeating: 0, count: 4096)
    while !answer.suffix(end.utf8.count).elementsEqual(end.utf8) {
      let count = try bytes.withUnsafeMutableBytes { try stream.read(into: $0) } ?? 0
      guard count > 0 else { throw BenchmarkError("NATS closed the connection") }
      answer += bytes[..<count]
    }
  }
}

/// TCP ports of this machine.
enum LocalPort {
  static func connect(_ port: UInt16) throws -> UnixStream {
    let stream = UnixStream(owning: try socket())
    let number = stream.descriptor
    var address = address(port)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw SystemError(code: errno, operation: "connect to port \(port)") }
    var on: Int32 = 1
    setsockopt(number, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    return stream
  }

  /// Returns a port that no program uses.
  static func free() throws -> UInt16 {
    let descriptor = try socket()
    var address = address(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor.rawValue, $0, length) == 0 ? getsockname(descriptor.rawValue, $0, &length) : -1
      }
    }
    guard result == 0 else { throw SystemError(code: errno, operation: "find a free port") }
    return UInt16(bigEndian: address.sin_port)
  }

  private static func socket() throws -> Descriptor {
    let number = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard number >= 0 else { throw SystemError(code: errno, operation: "create a socket") }
    return Descriptor(owning: number)
  }

  private static func address(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }
}

/// A loop that only copies frames: it answers each push and writes a delta with the same element to each watcher, without storing,
/// comparing or queuing anything. What a server could reach at most.
///
/// It runs on a thread of this process. All of its calls block.
final class CopyServer: Server, Sendable {
  let name = "a loop that copies"
  private let watchers = Mutex<[UnixStream]>([])
  /// The bytes of an element, which ends a push except for two braces.
  private let elementBytes: Int

  /// As long as what feedd sends at a revision of seven digits.
  private static let answer: StaticString = #"{"jsonrpc":"2.0","id":1234,"result":{"revision":1234567}}"#
  private static let head: StaticString =
    #"{"jsonrpc":"2.0","method":"delta","params":{"feed":"bench","from":1234567,"revision":1234568,"deleted":[],"added":[],"updated":[[0,123]],"elements":["#
  private static let tail: StaticString = "]}}"

  init(_ job: PushJob) { elementBytes = job.initialElements()[0].utf8.count }

  /// Begins a loop for a pusher. The watchers of the loop before are forgotten.
  func connect() throws -> UnixStream {
    let (near, far) = try Self.pair()
    watchers.withLock { $0 = [] }
    try Thread("copy") { [self] in try? copy(from: far) }
    return near
  }

  func subscribe() throws -> UnixStream {
    let (near, far) = try Self.pair()
    watchers.withLock { $0.append(far) }
    return near
  }

  func prepare() throws {}

  func pushes(_ job: PushJob) -> Texts { .pushes(job) }

  func answerCounter(_ job: PushJob) -> MessageCounter { MessageCounter(length: 4 + Self.answer.utf8CodeUnitCount) }

  func deliveryCounter(_ job: PushJob) -> MessageCounter {
    MessageCounter(length: 4 + Self.head.utf8CodeUnitCount + elementBytes + Self.tail.utf8CodeUnitCount)
  }

  private func copy(from pusher: UnixStream) throws {
    var input = ByteBuffer(capacity: 1 << 20)
    var answers = ByteBuffer()
    var deltas = ByteBuffer()
    while true {
      input.reserve(64 << 10)
      let space = UnsafeMutableRawBufferPointer(start: input.pointer + input.count, count: 64 << 10)
      guard let count = try pusher.read(into: space), count > 0 else { return }
      input.didWrite(count)
      let rest = copy(input.bytes, &answers, &deltas)
      for watcher in watchers.withLock({ $0 }) { try watcher.writeAll(deltas.bytes) }
      try pusher.writeAll(answers.bytes)
      answers.removeAll(keepingCapacity: true)
      deltas.removeAll(keepingCapacity: true)
      let left = Array(input.bytes[rest...])
      input.removeAll(keepingCapacity: true)
      left.withUnsafeBytes { input.append($0) }
    }
  }

  /// Writes the answers and deltas of whole frames. Returns where an incomplete one begins.
  private func copy(_ input: UnsafeRawBufferPointer, _ answers: inout ByteBuffer, _ deltas: inout ByteBuffer) -> Int {
    var place = 0
    while input.count - place >= 4 {
      let length = Int(UInt32(bigEndian: input.loadUnaligned(fromByteOffset: place, as: UInt32.self)))
      if input.count - place < 4 + length { break }
      let end = place + 4 + length
      let element = UnsafeRawBufferPointer(rebasing: input[end - 2 - elementBytes..<end - 2])
      answers.appendUInt32BigEndian(UInt32(Self.answer.utf8CodeUnitCount))
      answers.append(Self.answer)
      deltas.appendUInt32BigEndian(UInt32(Self.head.utf8CodeUnitCount + elementBytes + Self.tail.utf8CodeUnitCount))
      deltas.append(Self.head)
      deltas.append(element)
      deltas.append(Self.tail)
      place = end
    }
    return place
  }

  /// Returns the two ends of a connection.
  private static func pair() throws -> (near: UnixStream, far: UnixStream) {
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
      throw SystemError(code: errno, operation: "create a pair of sockets")
    }
    return (UnixStream(owning: Descriptor(owning: ends[0])), UnixStream(owning: Descriptor(owning: ends[1])))
  }
}
