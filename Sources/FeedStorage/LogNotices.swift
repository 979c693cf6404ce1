import FeedJSON
import FeedSystem
import Synchronization

/// The results that the threads of a log report to the engine's thread.
final class LogNotices: Sendable {
  enum Notice: Sendable {
    /// The batch is stored as this batch of the log.
    case stored(UInt64, batch: UInt64)
    case failed(UInt64, StorageError)
    /// The log may contain the batch. `failed` follows when it has been erased.
    case uncertain(StorageError)
    /// The batch waits: there is no room for it before an image is complete.
    case waitsForRoom(UInt64)
    /// A part of this image was written. Another may be sent.
    case partWritten(UInt64)
    /// This image is complete, and has replaced the one before.
    case imageComplete(UInt64, bytes: Int, fileBytes: Int)
    /// This image was abandoned.
    case imageFailed(UInt64, StorageError)
    /// The bytes of the segments after some were begun or removed.
    case segments(bytes: Int)
  }

  private let notices = Guarded<[Notice]>([])
  private let hasNotices = Atomic<Bool>(false)
  private let wakeUp: WakeUp

  init() throws(SystemError) { wakeUp = try WakeUp() }

  /// Readable while there are notices.
  var descriptor: Int32 { wakeUp.descriptor }

  func post(_ notice: Notice) {
    notices.withLock { $0.append(notice) }
    wake()
  }

  /// Makes the descriptor readable until the next `take`.
  func wake() {
    hasNotices.store(true, ordering: .releasing)
    wakeUp.signal()
  }

  /// Removes and returns all notices, in order. O(1) if there are none.
  func take() -> [Notice] {
    guard hasNotices.load(ordering: .relaxed), hasNotices.exchange(false, ordering: .acquiring) else { return [] }
    wakeUp.clear()
    return notices.withLock { notices in
      defer { notices.removeAll() }
      return notices
    }
  }

  /// Waits until there are notices, or until the timeout.
  func wait(milliseconds: Int) {
    _ = try? Readiness.readable.wait(on: wakeUp.descriptor, timeout: .milliseconds(milliseconds))
  }
}
