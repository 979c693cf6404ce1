import FeedJSON
import FeedModel
import FeedSystem
import Synchronization

/// Images of the state of a daemon whose log is elsewhere, in a directory of this host.
///
///     let known = try StateImages.note(in: directory)      // of an earlier run
///     let found = try StateImages.recover(directory, into: target)
///     let images = try StateImages(directory, epoch: epoch, software: "1", limits)
///     images.begin(content, position: 1000, note: "…")
///     while images.pause != nil { images.work(isBusy: false) }
///
/// Used by the engine's thread; a thread of its own writes.
public final class StateImages {
  /// An image that was written, or could not be.
  public enum Outcome {
    case written(bytes: Int)
    case failed(StorageError)
  }

  /// Nanoseconds that a turn spends on an image.
  private static let step: UInt64 = 2_000_000

  private static let prefix = "group-"

  public let directory: String
  private let notices: LogNotices
  private let thread: ImageThread
  private var image = ImageInFlight()
  private var isWriting = false
  private var outcome: Outcome?

  /// The path of the newest image.
  public var path: String { StateFile.path(in: directory) }

  /// Starts the thread.
  public init(_ directory: String, epoch: String, software: String, _ limits: Limits) throws(StorageError) {
    self.directory = directory
    do throws(SystemError) {
      let notices = try LogNotices()
      var place = ImageThread.Place(
        directory: directory, files: SystemDirectory(directory), vfs: nil, epoch: epoch, software: software)
      place.limits = limits.storedText
      thread = try ImageThread(place, notices)
      self.notices = notices
      try thread.start()
    } catch {
      throw StorageError(.other, path: directory, reason: "\(error)")
    }
  }

  deinit { thread.stop(until: MonotonicClock.now &+ 1_000_000_000) }

  /// Returns the directory of the images of a group, inside the state directory of its member.
  public static func directory(ofGroup name: String, in state: String) -> String { "\(state)/\(prefix)\(name)" }

  /// Whether an entry of a state directory has the name of such a directory.
  static func isDirectoryOfGroup(_ name: String) -> Bool { name.hasPrefix(prefix) }

  /// The epoch and the note of the image in a directory; nil if there is none.
  public static func note(in directory: String) throws(StorageError) -> (epoch: String, note: String)? {
    guard let state = try StoredState(imageIn: directory), let epoch = state.epoch, let database = state.database else {
      return nil
    }
    return (epoch, try ImageNote.read(database))
  }

  /// Restores the image in a directory.
  public static func recover(
    _ directory: String, into target: any RecoveryTarget
  ) throws(StorageError) -> RecoveryProgress {
    guard let state = try StoredState(imageIn: directory) else {
      throw StorageError(.absent, path: StateFile.path(in: directory), reason: "there is no image")
    }
    var recovery = Recovery(state, into: target)
    try recovery.run()
    return recovery.progress
  }

  /// Readable while there is something to work on.
  public var descriptor: Int32 { notices.descriptor }

  /// Nanoseconds until `work` should be called without an event; nil if only an event can create work.
  public var pause: UInt64? { image.isUnread && image.maySend ? 0 : nil }

  /// Begins an image, in place of one that is being written.
  /// - Parameters:
  ///   - position: the place in the log that it covers.
  ///   - note: what the log needs besides it.
  public func begin(_ content: CatalogImage, position: UInt64, note: String) {
    image.begin(content, covering: position)
    isWriting = true
    outcome = nil
    thread.begin(image.number, image.head, note: note)
  }

  /// Does a small part of the work. Returns the outcome once.
  public func work(isBusy: Bool) -> Outcome? {
    handleNotices()
    var now = MonotonicClock.now
    let deadline = now &+ Self.step
    while now < deadline, let part = image.next() {
      thread.write(part, of: image.number)
      if isBusy { break }
      now = MonotonicClock.now
    }
    defer { outcome = nil }
    return outcome
  }

  /// Waits for the image that is being written. Returns false if `mayGoOn` did, or if it could not be written.
  public func finish(whileTrue mayGoOn: () -> Bool) -> Bool {
    while isWriting {
      while let part = image.next() { thread.write(part, of: image.number) }
      notices.wait(milliseconds: 100)
      handleNotices()
      if isWriting && !mayGoOn() { return false }
    }
    if case .written = outcome { return true }
    return false
  }

  private func handleNotices() {
    for notice in notices.take() {
      switch notice {
      case .partWritten(let number): if number == image.number { image.didWritePart() }
      case .imageComplete(let number, _, let bytes):
        guard number == image.number else { break }
        isWriting = false
        outcome = .written(bytes: bytes)
      case .imageFailed(let number, let error):
        guard number == image.number else { break }
        image.discard()
        isWriting = false
        outcome = .failed(error)
      default: break
      }
    }
  }
}

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
    (self.place, self.former, self.notices) = (place, former, notices)
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
    let size = FilePath.size(of: StateFile.path(in: place.directory)) ?? bytes
    notices.post(.imageComplete(image, bytes: bytes, fileBytes: size))
  }
}
