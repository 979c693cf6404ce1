import FeedModel
import FeedSQLite
import FeedSystem

/// The daemon's memory across restarts: a journal of what changed, and images of everything from time to time.
///
/// Each batch of requests goes into the journal before it is executed. In the background an image of all feeds is
/// written in small steps; once it is complete, the journal up to it and the image before it are deleted in small steps.
/// What is there after a start is the newest complete image and the later batches, executed again.
///
/// Belongs to the loop's thread; only checkpoints have a thread and a connection of their own.
public final class Store {
  /// The database file.
  public let path: String
  /// The name of the unbroken history of revisions that the file holds; it outlives restarts.
  public let epoch: String
  /// How it goes on.
  public let beginning: Beginning
  public let durability: Durability
  public let policy: ImagePolicy

  let database: Database
  let place: FilePlace
  let journal: JournalWriter
  let checkpoints: Checkpoints
  let mark: StateMarkFile
  /// The last row of the journal.
  var sequence: Int64
  /// The row of the limits under which batches are executed now.
  var limitsRow: Int64 = 0
  /// The newest moment that was stored, in the nanoseconds that batches and images carry.
  public internal(set) var newestMoment: UInt64 = 0
  /// Whether the log may still hold a batch whose storing failed.
  var mayHoldFailedBatch = false

  /// The image under way.
  var writer: ImageWriter?
  /// What is left to be deleted.
  var waste: [Waste] = []
  /// Bytes of requests that the newest complete image does not cover.
  public internal(set) var journalBytes = 0
  /// Bytes of the newest complete image; 0 before the first.
  public internal(set) var imageBytes = 0
  /// When the newest complete image was finished, and when one may be begun again after a failure.
  var imagedAt: UInt64
  /// When the last batch was stored.
  var appendedAt: UInt64
  var imagesResumeAt: UInt64 = 0
  /// Told of what happens in the background and is worth a line: a failure (true) or its end.
  public var report: (_ isFailure: Bool, _ message: String) -> Void = { _, _ in }

  init(
    database: Database, path: String, epoch: String, beginning: Beginning, durability: Durability, policy: ImagePolicy,
    boot: String, vfs: String?
  ) throws(SQLiteError) {
    self.database = database
    self.path = path
    self.epoch = epoch
    self.beginning = beginning
    self.durability = durability
    self.policy = policy
    place = FilePlace(path)
    journal = try JournalWriter(database)
    sequence = try Self.lastSequence(database)
    mark = StateMarkFile(
      StateMark(epoch: epoch, boot: boot, isSynced: durability == .disk, sequence: sequence), of: path)
    checkpoints = try Checkpoints(database, path: path, vfs: vfs)
    imagedAt = MonotonicClock.now
    appendedAt = imagedAt
  }

  deinit {
    checkpoints.stop()
  }
}
