import FeedModel
import FeedSQLite
import FeedSystem

/// Work in the background: images and what they make superfluous.
extension Store {
  /// Nanoseconds to wait after a failure before the next attempt.
  private static let pause: UInt64 = 10_000_000_000
  /// Nanoseconds until it is looked again whether a pass of the checkpoints' thread is over.
  private static let briefPause: UInt64 = 5_000_000
  /// The share of a step that a turn gives which had requests as well.
  private static let busyShare: UInt64 = 4

  /// Whether an image should be begun now.
  public var wantsImage: Bool {
    guard writer == nil, waste.isEmpty, journalBytes > 0 else { return false }
    let now = MonotonicClock.now
    if now < imagesResumeAt { return false }
    return journalBytes > max(policy.journalBytes, imageBytes) || now >= nextImageMoment
  }

  /// When an image should be written, at the latest: soon after the last batch if it is cheap.

  private var nextImageMoment: UInt64 {
    let isCheap = imageBytes <= policy.idleBytes || journalBytes >= imageBytes / 4
    let latest = imagedAt &+ UInt64(policy.interval) &* 1_000_000_000
    return isCheap ? min(appendedAt &+ policy.idle, latest) : latest
  }

  /// Nanoseconds until `wantsImage` or `hasWork` may become true without a batch; nil when only a batch can bring that about.
  public var pauseLeft: UInt64? {
    guard journalBytes > 0 || writer != nil || !waste.isEmpty else { return nil }
    let now = MonotonicClock.now
    let isWorking = writer != nil || !waste.isEmpty
    if isWorking && checkpoints.wantsPause { return Self.briefPause }
    let moment = isWorking ? imagesResumeAt : max(nextImageMoment, imagesResumeAt)
    return moment > now ? moment - now : 0
  }

  /// Whether `work` has something to do now.
  public var hasWork: Bool {
    guard writer != nil || !waste.isEmpty, !checkpoints.wantsPause else { return false }
    return imagesResumeAt == 0 || MonotonicClock.now >= imagesResumeAt
  }

  /// Begins an image, which must be of the state after the last batch.
  public func beginImage(_ image: CatalogImage) {
    do throws(SQLiteError) {
      let last = try database.integer(
        """
        SELECT max((SELECT ifnull(max(id), 0) FROM image_feed), (SELECT ifnull(max(id), 0) >> 32 FROM element),
          (SELECT ifnull(max(id), 0) >> 32 FROM section_rows), (SELECT ifnull(max(id), 0) >> 32 FROM history))
        """)
      let id = try database.integer("SELECT ifnull(max(id), 0) FROM image")
      let fresh = try ImageWriter(
        image, id: (id ?? 0) + 1, journal: sequence, firstFeed: (last ?? 0) + 1, in: database)
      try background { () throws(SQLiteError) in try fresh.begin(limits: limitsRow) }
      writer = fresh
    } catch {
      backgroundFailed(error)
    }
  }

  /// Does a small part of the work; `isBusy`: requests wait for the turn's end.
  public func work(isBusy: Bool) {
    let step = isBusy ? policy.step / Self.busyShare : policy.step
    let deadline = MonotonicClock.now &+ step
    do throws(SQLiteError) {
      if let writer {
        try write(writer, until: deadline)
      } else {
        try removeWaste(until: deadline)
      }
      if imagesResumeAt != 0 {
        imagesResumeAt = 0
        report(false, "\(path): images are written again")
      }
    } catch {
      backgroundFailed(error)
    }
    checkpoints.didCommit()
  }

  /// Writes a whole image at once if the journal has become far longer than it should: runs that ended before they could
  /// write one would otherwise make each start longer than the one before.
  /// - Parameter makeImage: an image of the state after the last batch.
  public func writeOverdueImage(_ makeImage: () -> CatalogImage) {
    guard writer == nil, journalBytes / 2 > max(policy.journalBytes, imageBytes) else { return }
    beginImage(makeImage())
    while writer != nil { work(isBusy: false) }
  }

  private func write(_ writer: ImageWriter, until deadline: UInt64) throws(SQLiteError) {
    var isOver = false
    try background { () throws(SQLiteError) in
      repeat {
        isOver = try !writer.writePart()
      } while !isOver && MonotonicClock.now < deadline
      if isOver { try writer.complete() }
    }
    guard isOver else { return }
    self.writer = nil
    imageBytes = writer.bytes
    imagedAt = MonotonicClock.now
    journalBytes = try journalBytes(after: writer.journal)
    waste = try images(before: writer.id).map { .image($0) } + [.journal(upTo: writer.journal)]
  }

  private func removeWaste(until deadline: UInt64) throws(SQLiteError) {
    guard let first = waste.first else { return }
    var isLeft = true
    try background { () throws(SQLiteError) in
      repeat {
        isLeft = try WasteRemover(database).removePiece(of: first)
      } while isLeft && MonotonicClock.now < deadline
    }
    if !isLeft { waste.removeFirst() }
  }

  /// One transaction that need not be on the disk at once: whatever is lost of it is only done again.
  private func background(_ body: () throws(SQLiteError) -> Void) throws(SQLiteError) {
    if durability == .disk { try database.execute("PRAGMA synchronous = NORMAL") }
    defer { if durability == .disk { try? applyDurability() } }
    try database.execute("BEGIN IMMEDIATE")
    do throws(SQLiteError) {
      try body()
      try database.execute("COMMIT")
    } catch {
      database.rollBack()
      throw error
    }
  }

  /// Gives up the image under way; the journal still holds everything.
  private func backgroundFailed(_ error: SQLiteError) {
    if let writer { waste.append(.image(writer.id)) }
    writer = nil
    if imagesResumeAt == 0 {
      report(
        true, "\(StorageError(error, path: path)) (nothing is lost: the journal is kept until an image is written)")
    }
    imagesResumeAt = MonotonicClock.now &+ Self.pause
  }

  /// Bytes of the batches after one.
  func journalBytes(after sequence: Int64) throws(SQLiteError) -> Int {
    let sum = try database.prepare(
      "SELECT ifnull(sum(length(requests) + 64), 0) FROM journal WHERE seq > ?", isKept: false)
    try sum.bind(sequence, at: 1)
    return try sum.step() ? Int(sum.integer(0)) : 0
  }

  /// The images that are there besides the one that counts.
  func images(before id: Int64) throws(SQLiteError) -> [Int64] {
    let list = try database.prepare("SELECT id FROM image WHERE id <> ? ORDER BY id", isKept: false)
    try list.bind(id, at: 1)
    var found: [Int64] = []
    while try list.step() { found.append(list.integer(0)) }
    return found
  }

  /// Ends the store's work: writes what is left of an image if that is cheap, and moves the log into the database file.
  /// - Parameter makeImage: an image of the state after the last batch; nil for none.
  public func close(_ makeImage: () -> CatalogImage?) {
    checkpoints.stop()
    if journalBytes > 0 && writer == nil && journalBytes + imageBytes <= policy.cheapBytes, let image = makeImage() {
      beginImage(image)
    }
    if journalBytes + imageBytes <= policy.cheapBytes {
      while hasWork { work(isBusy: false) }
    }
    writer = nil
    guard let progress = try? database.checkpoint(.truncate), progress.moved == progress.pages else { return }
    mark.end(at: sequence)
  }
}
