import FeedSystem

/// Redis doing the same: each update is HSET, which keeps it, and PUBLISH, which tells the subscribers.
struct RedisServer: Server {
  let path: String
  let name = "Redis"

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
      let set = Self.command(["HSET", PushJob.feed, "\(update.id)", update.text])
      texts.append(set + Self.command(["PUBLISH", PushJob.feed, update.text]))
    }
    return texts
  }

  func answerCounter(_ job: PushJob) -> MessageCounter {
    .fixed(FixedCounter(length: ":0\r\n:\(job.watchers)\r\n".utf8.count))
  }

  func deliveryCounter(_ job: PushJob) -> MessageCounter {
    .fixed(FixedCounter(length: Self.command(["message", PushJob.feed, job.initialElements()[0]]).utf8.count))
  }

  var fence: Texts? { nil }

  var ping: Texts {
    let request = Texts()
    request.append(Self.command(["PING"]))
    return request
  }

  var pingCounter: MessageCounter { .fixed(FixedCounter(length: "+PONG\r\n".utf8.count)) }

  private func ask(_ stream: UnixStream, _ words: [String], answer: String? = nil) throws {
    var text = Self.command(words)
    try text.withUTF8 { try stream.writeAll(UnsafeRawBufferPointer($0)) }
    var bytes = [UInt8](repeating: 0, count: 1024)
    let count = try bytes.withUnsafeMutableBytes { try stream.read(into: $0) } ?? 0
    let found = String(decoding: bytes[..<count], as: UTF8.self)
    if found.hasPrefix("-") || answer.map({ $0 != found }) ?? found.isEmpty {
      throw BenchError("Redis answered \(words[0]) with '\(found)'")
    }
  }

  /// An array of bulk strings, as Redis takes commands and gives messages.
  private static func command(_ words: [String]) -> String {
    words.reduce("*\(words.count)\r\n") { $0 + "$\($1.utf8.count)\r\n\($1)\r\n" }
  }
}
