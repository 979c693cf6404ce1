import FeedJSON
import FeedSystem

/// A server that the fan-out is measured on: its requests, and how its messages are counted.
protocol Server {
  /// The name in the table.
  var name: String { get }

  /// Returns a connection that may push.
  func connect() throws -> UnixStream
  /// Creates the feed and empties it.
  func prepare() throws
  /// Returns a connection that receives every update from now on.
  func subscribe() throws -> UnixStream
  /// Returns the requests of the job, one for each update.
  func pushes(_ job: PushJob) -> Texts
  func answerCounter(_ job: PushJob) -> MessageCounter
  func deliveryCounter(_ job: PushJob) -> MessageCounter
  /// A request whose answer to a watcher follows all updates; nil if counting the messages suffices.
  var fence: Texts? { get }
}

extension Server {
  var fence: Texts? { nil }
}

/// feedd with a collection, `update` and `watch`.
struct FeeddServer: Server {
  let path: String
  let name = "feedd"

  func connect() throws -> UnixStream { try UnixStream.connect(path: path, timeout: .seconds(10)) }

  /// Answers are shorter than this and deltas are longer: an element has at least 50 bytes, a delta adds about 130.
  private static let shortLength = 100

  func prepare() throws {
    var dialogue = Dialogue(try connect())
    try dialogue.ask("define", PushJob.definition)
    try dialogue.ask("set", #"{"feed":"\#(PushJob.feed)","elements":[]}"#)
  }

  func subscribe() throws -> UnixStream {
    var dialogue = Dialogue(try connect())
    try dialogue.ask("watch", #"{"feed":"\#(PushJob.feed)","initial":false}"#)
    return dialogue.stream
  }

  /// Defines the feed and stores the initial elements of a job.
  func fill(_ job: PushJob) throws {
    let frames = Texts.filling(job)
    var dialogue = Dialogue(try connect())
    try dialogue.ask("define", PushJob.definition)
    for index in 0..<frames.count { try dialogue.ask(frames[index], "update") }
  }

  func pushes(_ job: PushJob) -> Texts { .pushes(job) }

  func answerCounter(_ job: PushJob) -> MessageCounter { MessageCounter() }

  func deliveryCounter(_ job: PushJob) -> MessageCounter { MessageCounter(shortLength: Self.shortLength) }

  /// A slow watcher receives several updates in one delta, so counting does not show that all arrived.
  var fence: Texts? { Texts.frame(Texts.request("sync")) }
}

/// Sends requests to feedd one at a time, for steps that are not measured.
struct Dialogue: ~Copyable {
  let stream: UnixStream
  private var scanner = JSONScanner()

  init(_ stream: UnixStream) { self.stream = stream }

  /// Sends a request and waits for its answer. Discards notifications before it.
  mutating func ask(_ method: String, _ params: String = "{}") throws {
    let frame = Texts.frame(Texts.request(method, params))
    try ask(frame[0], method)
  }

  /// Sends a request that is already a frame, and waits for its answer.
  mutating func ask(_ frame: UnsafeRawBufferPointer, _ method: String) throws {
    try stream.writeAll(frame)
    while true {
      let answer = try next()
      let view = try answer.withUnsafeBytes { bytes in
        let message = try scanner.scan(bytes)
        return (isAnswer: message.member("id") != nil, error: message.member("error")?.member("message")?.string)
      }
      if let error = view.error { throw BenchmarkError("cannot call \(method): \(error)") }
      if view.isAnswer { return }
    }
  }

  private func next() throws -> [UInt8] {
    let header = try read(4)
    return try read(header.reduce(0) { $0 << 8 | Int($1) })
  }

  private func read(_ count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
      let more = try bytes.withUnsafeMutableBytes {
        try stream.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[filled...]))
      }
      guard let more, more > 0 else { throw BenchmarkError("the server closed the connection") }
      filled += more
    }
    return bytes
  }
}
