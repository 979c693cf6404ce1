import FeedSystem

/// All of standard input, for commands that take one document.
enum StandardInput {
  /// The text up to the end. Bytes that are not UTF-8 are refused.
  static func readAll() throws(Failure) -> String {
    var queue = ByteQueue(capacity: 64 << 10)
    while true {
      let count: Int
      do throws(SystemError) {
        count = try StandardStreams.read(into: queue.room())
      } catch {
        throw .system(error)
      }
      if count == 0 { break }
      queue.didFill(count)
    }
    guard let text = String(validating: queue.bytes, as: UTF8.self) else {
      throw .usage("standard input is not UTF-8")
    }
    return text
  }
}
