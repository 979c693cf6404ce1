import FeedSystem
import Synchronization

/// Watches a feed on a thread of its own and reads until the snapshot has come to its end.
final class SnapshotReader: Sendable {
  private let stream: UnixStream
  private let done = Atomic<Bool>(false)
  private let failed = Atomic<Bool>(false)
  private let thread = Mutex<Thread?>(nil)

  /// The answers to `watch` and `sync`, which come before and after the snapshot's parts, are shorter than this.
  private static let shortLength = 250

  init(_ stream: UnixStream) { self.stream = stream }

  var isDone: Bool { done.load(ordering: .acquiring) }

  /// Sends `watch` and begins to read.
  func start() throws {
    let started = try Thread("snapshot") { self.read() }
    thread.withLock { $0 = started }
  }

  /// Waits for the thread's end.
  func join() throws {
    thread.withLock { $0.take() }?.join()
    if failed.load(ordering: .relaxed) { throw BenchError("the snapshot could not be read to its end") }
  }

  private func read() {
    do {
      let requests = Texts()
      requests.append(frame: Texts.request("watch", #"{"feed":"\#(PushJob.feed)"}"#, id: 1))
      requests.append(frame: Texts.request("sync", id: 2))
      try stream.writeAll(requests.joined)
      var frames = FrameCounter(shortLength: Self.shortLength)
      let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
      defer { space.deallocate() }
      while frames.shortCount < 2 {
        let count = try stream.read(into: space) ?? 0
        guard count > 0 else { throw BenchError("the server closed the connection") }
        frames.take(UnsafeRawBufferPointer(rebasing: space[..<count]))
      }
    } catch {
      failed.store(true, ordering: .relaxed)
    }
    done.store(true, ordering: .releasing)
  }
}
