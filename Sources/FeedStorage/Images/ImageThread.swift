import FeedJSON
import FeedModel
import FeedSystem
import Synchronization

/// The thread that writes images: receives their parts from the engine's thread, and reports the results.
///
/// Invariant: at most one image is being written, and it belongs to this thread alone.
final class ImageThread: @unchecked Sendable {
  /// What all images of a run have in common.
  struct Place: Sendable {
    let directory: String
    let files: any LogDirectory
    let vfs: String?
    let epoch: String
    let software: String
    var limits = ""
  }

  private enum Task {
    case begin(UInt64, ImageHead, note: String?)
    case write(ImagePart, of: UInt64)
  }

  private struct Inbox {
    var tasks: [Task] = []
    var isEnding = false
  }

  private let notices: LogNotices
  private let inbox = Guarded<Inbox>(Inbox())
  private let wakeUps: (task: WakeUp, end: WakeUp)
  private let isRunning = Atomic<Bool>(false)
  private let place: Place
  /// The database of an older schema that the first image replaces. Used by the thread alone while it runs.
  private var former: JournalDatabase?
  private var current: (number: UInt64, file: ImageFile)?

  init(_ place: Place, replacing former: JournalDatabase? = nil, _ notices: LogNotices) throws(SystemError) {
    self.place = place
    self.former = former
    self.notices = notices
    wakeUps = (try WakeUp(), try WakeUp())
  }

  func start() throws(SystemError) {
    isRunning.store(true, ordering: .relaxed)
    do throws(SystemError) {
      try Thread("images") { self.run() }
    } catch {
      isRunning.store(false, ordering: .relaxed)
      throw error
    }
  }

  /// Begins an image. Its parts follow.
  /// - Parameter note: what the log adds to the image.
  func begin(_ image: UInt64, _ head: ImageHead, note: String? = nil) { add(.begin(image, head, note: note)) }

  func write(_ part: ImagePart, of image: UInt64) { add(.write(part, of: image)) }

  private func add(_ task: Task) {
    inbox.withLock { $0.tasks.append(task) }
    wakeUps.task.signal()
  }

  /// Discards the parts that were sent and not written yet.
  func discard() { inbox.withLock { $0.tasks.removeAll() } }

  /// Ends the thread, and waits for that until a time of `MonotonicClock`. An unfinished image is discarded.
  func stop(until deadline: UInt64) {
    guard isRunning.exchange(false, ordering: .relaxed) else { return }
    inbox.withLock { inbox in
      inbox.tasks.removeAll()
      inbox.isEnding = true
    }
    wakeUps.task.signal()
    // On timeout, the thread may wait for the disk forever.
    _ = LogThread.wait(for: wakeUps.end, until: deadline)
  }

  private func run() {
    while true {
      if step() { continue }
      if inbox.withLock({ $0.isEnding }) { break }
      wakeUps.task.wait()
    }
    current = nil
    wakeUps.end.signal()
  }

  /// Does one step of work. Returns false if there is none.
  func step() -> Bool {
    guard let task = inbox.withLock({ $0.tasks.isEmpty ? nil : $0.tasks.removeFirst() }) else { return false }
    do throws(StorageError) {
      switch task {
      case .begin(let image, let head, let note):
        current = nil
        let facts = StateFacts(epoch: place.epoch, software: place.software)
        let file = try ImageFile(
          head, facts, limits: place.limits, note: note, in: place.directory, place.files, vfs: place.vfs)
        current = (image, file)
      case .write(let part, let image): try write(part, image)
      }
    } catch {
      let image = current?.number
      current = nil
      ImageFile.remove(place.files)
      if case .begin(let number, _, _) = task { notices.post(.imageFailed(number, error)) }
      if case .write(_, let number) = task, number == image { notices.post(.imageFailed(number, error)) }
    }
    return true
  }

  private func write(_ part: ImagePart, _ image: UInt64) throws(StorageError) {
    // Parts of an image that failed or was replaced are discarded.
    guard let current, current.number == image, let bytes = try current.file.write(part) else {
      return notices.post(.partWritten(image))
    }
    if let former { try former.emptyLog() }
    try current.file.finish()
    self.current = nil
    if former != nil {
      former = nil
      JournalDatabase.removeFiles(beside: StateFile.path(in: place.directory), place.files)
    }
    let size = FileSize.of(StateFile.path(in: place.directory)) ?? bytes
    notices.post(.imageComplete(image, bytes: bytes, fileBytes: size))
  }
}
