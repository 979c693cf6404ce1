import FeedClient
import FeedSystem

/// Standard input, for commands that take all of it before they do anything.
enum StandardInput {
  /// Reads what is there, waiting for at least one byte; 0 at the end.
  /// - Parameter deadline: when to give up, in nanoseconds of ``MonotonicClock``; nil waits for ever.
  static func read(into buffer: UnsafeMutableRawBufferPointer, until deadline: UInt64?) throws(Failure) -> Int {
    do throws(SystemError) {
      if try isReady(until: deadline) { return try StandardStreams.read(into: buffer) }
    } catch {
      throw .system(error)
    }
    throw .client(.timedOut)
  }

  /// Waits for something to read, or the end; false when the time is up, whether or not there is something.
  private static func isReady(until deadline: UInt64?) throws(SystemError) -> Bool {
    guard let deadline else { return true }
    while MonotonicClock.now < deadline {
      var list = WaitList()
      list.add(StandardStreams.input, .readable)
      if try list.wait(until: deadline) { return true }
    }
    return false
  }

  /// The text up to the end. Bytes that are not UTF-8 are refused.
  static func readAll(until deadline: UInt64?) throws(Failure) -> String {
    var queue = ByteQueue(capacity: 64 << 10)
    while true {
      let count = try read(into: queue.room(), until: deadline)
      if count == 0 { break }
      queue.didFill(count)
    }
    guard let text = String(validating: queue.bytes, as: UTF8.self) else {
      throw .usage("standard input is not UTF-8")
    }
    return text
  }
}
