import FeedJSON
import FeedModel
import FeedSystem

/// What a member does besides batches: marks at which all compare their digests, and images.
///
/// Invariant: at most one image is under way, and at most one digest. An image that is asked for meanwhile follows.
struct Upkeep {
  enum Purpose {
    case digest(mark: UInt64)
    /// An image, with the table of the members at that place; published if `isShared`.
    case image(MemberTable, isShared: Bool)
  }

  /// The marks, one behind the other, at which digests of members differed.
  private struct Difference {
    let first: UInt64
    /// When the own digest at the first one was computed.
    let at: UInt64
    let last: UInt64
  }

  /// Nanoseconds for which the digests of other members are awaited.
  private static let digestPatience = 10 * second
  /// Nanoseconds for which a member with another digest awaits an image of another member.
  private static let repairPatience = 40 * second
  /// Nanoseconds between two images of a busy group.
  private static let imagePause = 20 * second

  private let settings: GroupSettings
  /// The number of the last mark that was given to the engine, and what each is for.
  private var lastMark: UInt64 = 0
  private var purposes: [UInt64: Purpose] = [:]
  private var ownDigest: (mark: UInt64, value: String, at: UInt64)?
  private var awaitsDigest = false
  /// The number of digests that came at the mark before the newest one; nil before the first mark.
  private var formerDigests: Int?
  private var difference: Difference?
  private var markDueAt: UInt64?
  private var imageDueAt: UInt64?
  /// Each try to publish an image writes the whole state, and leaves chunks on the servers.
  private var publications = Backoff(first: 10 * second, longest: 640 * second)
  private var writes = Backoff(first: 10 * second, longest: 640 * second)
  /// When an image of this host may be written again, after one that could not be.
  private var writesResumeAt: UInt64 = 0
  /// Whether the image under way is to be published; nil if none is.
  private var publishesImage: Bool?
  var imageIsUnderWay: Bool { publishesImage != nil }
  /// Whether an image was asked for while another one was under way, which may not cover what was read since.
  private var isImageRequested = false
  /// What the newest image of this host covers, its bytes, the bytes of log since then, and when it was written.
  private var ownImage: (position: UInt64, bytes: Int, log: Int, at: UInt64)
  /// When a batch was read last.
  private var readAt: UInt64

  init(_ settings: GroupSettings, position: UInt64, now: UInt64) {
    self.settings = settings
    ownImage = (position, 0, 0, 0)
    readAt = now
  }

  /// Makes a mark for the engine. Returns its number.
  private mutating func makeMark(_ purpose: Purpose) -> UInt64 {
    lastMark += 1
    purposes[lastMark] = purpose
    return lastMark
  }

  mutating func takePurpose(_ mark: UInt64) -> Purpose? { purposes.removeValue(forKey: mark) }

  // MARK: Digests

  /// Proposes a mark after some thousand batches, unless another member is faster.
  mutating func proposeMark(_ table: MemberTable, rank: UInt64, now: UInt64) {
    if table.batchesSinceMark >= settings.markBatches { scheduleMark(rank: rank, now: now) }
  }

  private mutating func scheduleMark(rank: UInt64, now: UInt64) {
    if markDueAt == nil { markDueAt = now &+ rank * second }
  }

  /// Another member has read something else, and this one what the servers have, as far as they have it. The digests tell which one
  /// is right, and the other one needs an image to begin with.
  mutating func didAgree(rank: UInt64, now: UInt64) {
    scheduleMark(rank: rank, now: now)
    scheduleImage(rank: rank, now: now)
  }

  func isMarkDue(_ now: UInt64) -> Bool { markDueAt.map { $0 <= now } ?? false }

  /// The stream has a mark. Returns a mark for the engine, where the digest is computed; nil while another one is.
  mutating func didMark(_ place: UInt64, _ table: MemberTable, isCaughtUp: Bool) -> UInt64? {
    markDueAt = nil
    formerDigests = table.digests?.entries.count
    if !isCaughtUp || awaitsDigest { return nil }
    awaitsDigest = true
    return makeMark(.digest(mark: place))
  }

  mutating func didDigest(_ mark: UInt64, _ value: String, now: UInt64) {
    awaitsDigest = false
    if difference?.last != ownDigest?.mark { difference = nil }
    ownDigest = (mark, value, now)
  }

  /// The number of digests by which most members are known. A member that was killed stays in the list for a week.
  private func enough(of members: Int) -> Int { min(members, max(formerDigests ?? members, members / 2 + 1)) }

  /// Whether this member has another digest than most. An image of its state would be wrong.
  func isDivergent(_ table: MemberTable) -> Bool {
    guard let own = ownDigest, let digests = table.digests, own.mark == digests.mark else { return false }
    return own.value != digests.leading?.value
  }

  /// Compares the own digest with that of most members, once as many as at the mark before have computed theirs, or after a while
  /// without the others. Returns how they differ; nil if they do not.
  ///
  /// A member that differs begins again with the newest image, which may be its own. So it waits for one of another member, and one of
  /// these publishes it.
  mutating func divergence(_ table: MemberTable, rank: UInt64, _ now: UInt64) -> String? {
    guard let own = ownDigest, let digests = table.digests, own.mark == digests.mark, let other = digests.leading,
      digests.entries.contains(where: { $0.value != own.value })
    else { return nil }
    let difference = Difference(first: difference?.first ?? own.mark, at: difference?.at ?? own.at, last: own.mark)
    self.difference = difference
    if digests.entries.count < enough(of: table.members.count) && now &- own.at < Self.digestPatience { return nil }
    let isRepairable = digests.isRight(table.image, since: difference.first)
    if own.value == other.value {
      if !isRepairable { scheduleImage(rank: rank, now: now) }
      return nil
    }
    if !isRepairable && now &- difference.at < Self.repairPatience { return nil }
    return
      "\(GroupLog.divergence) from that of \(other.host) at message \(own.mark) (digest \(own.value), theirs \(other.value))"
  }

  // MARK: Images

  mutating func didRead(bytes: Int, now: UInt64) {
    readAt = now
    ownImage.log += bytes
  }

  /// Makes a mark for an image of what was read so far; nil while another image is under way, behind which ``takeRequest()`` asks again.
  mutating func requestImage(_ table: MemberTable, isShared: Bool) -> UInt64? {
    isImageRequested = imageIsUnderWay
    if imageIsUnderWay { return nil }
    publishesImage = isShared
    return makeMark(.image(table, isShared: isShared))
  }

  /// Returns whether an image was asked for while another one was under way that has ended now.
  mutating func takeRequest() -> Bool {
    if imageIsUnderWay { return false }
    defer { isImageRequested = false }
    return isImageRequested
  }

  mutating func requestLastImage(_ table: MemberTable) -> UInt64 { makeMark(.image(table, isShared: false)) }

  mutating func didWriteImage(_ position: UInt64, bytes: Int, isShared: Bool, now: UInt64) {
    if !isShared { publishesImage = nil }
    writes.reset()
    ownImage = (position, bytes, 0, now)
  }

  mutating func didPublishImage() {
    publishesImage = nil
    publications.reset()
  }

  mutating func didFailImage(now: UInt64) {
    publishesImage = nil
    imageDueAt = now &+ publications.next()
  }

  mutating func didFailToWriteImage(now: UInt64) {
    writesResumeAt = now &+ writes.next()
    if publishesImage == true { imageDueAt = writesResumeAt }
    publishesImage = nil
  }

  /// The stream tells of a new image.
  mutating func didHearOfImage() { imageDueAt = nil }

  /// Publishes an image after some bytes of log. Others wait a few seconds for it.
  mutating func proposeImage(_ table: MemberTable, rank: UInt64, now: UInt64) {
    guard imageDueAt == nil, !imageIsUnderWay, isLong(table.bytesSinceImage, table.image?.bytes ?? 0, now) else {
      return
    }
    imageDueAt = now &+ rank * 5 * second
  }

  /// Compares what the servers have in the bucket with what was published. Servers that were killed may have lost an image, without
  /// which nobody can join: another one is published. Returns the image before the newest one if the servers have both.
  mutating func checkBucket(
    _ input: GroupInput, _ table: MemberTable, rank: UInt64, now: UInt64
  ) -> MemberTable.Image? {
    guard input.status == nil, let answer = JSONObject(input.bytes), let image = table.image else { return nil }
    let failure = JetStream.failure(answer)
    if let failure, failure.error != JetStream.Failure.streamNotFound { return nil }
    // The number of messages of each subject.
    let counts = answer.object("state")?.numbers("subjects") ?? [:]
    func isWhole(_ image: MemberTable.Image) -> Bool {
      counts[PublishedImage.chunkSubject(settings, image.id)] == image.chunks
        && counts[PublishedImage.subject(settings, image.name)] != nil
    }
    // In a table of an older version the former image may have the name of the newest one, which has replaced it.
    if isWhole(image) { return table.formerImage.flatMap { $0.name != image.name && isWhole($0) ? $0 : nil } }
    scheduleImage(rank: rank, now: now)
    return nil
  }

  /// Publishes an image soon, unless another member is faster: one that was just published may be on its way.
  private mutating func scheduleImage(rank: UInt64, now: UInt64) {
    if imageDueAt != nil || imageIsUnderWay { return }
    imageDueAt = now &+ 3 &* second &+ rank * 5 * second
  }

  /// Returns a mark for an image that is due: one for all, or one for the next start of this host.
  /// - Parameter canPublish: whether the servers would take one. It costs as much to write one that they do not take.
  mutating func dueImage(_ table: MemberTable, canPublish: Bool, isCaughtUp: Bool, now: UInt64) -> UInt64? {
    if let due = imageDueAt, due <= now, !imageIsUnderWay, canPublish {
      imageDueAt = nil
      return requestImage(table, isShared: true)
    }
    return isCaughtUp && wantsOwnImage(table, now) ? requestImage(table, isShared: false) : nil
  }

  /// Whether this host should write an image for its next start: soon after the last batch if it is cheap.
  private func wantsOwnImage(_ table: MemberTable, _ now: UInt64) -> Bool {
    guard !imageIsUnderWay, now >= writesResumeAt, table.position > ownImage.position, ownImage.log > 0 else {
      return false
    }
    let isCheap = ownImage.bytes <= 1 << 20 || ownImage.log >= ownImage.bytes / 4
    return isCheap && now &- readAt >= second || isLong(ownImage.log, ownImage.bytes, now)
  }

  /// Whether an image is due after so many bytes of log: soon if they are many, and otherwise seldom, because a busy group would
  /// write images all the time.
  private func isLong(_ log: Int, _ image: Int, _ now: UInt64) -> Bool {
    let bound = max(settings.imageBytes, image)
    return log > bound && (now &- ownImage.at > Self.imagePause || log > 16 * bound)
  }
}

/// Computes the digest of all feeds in an image, in parts, on the engine's thread.
///
/// Two members with the same digest have the same feeds, definitions, revisions, selections and rows, in the same order, with
/// the same times of change. Recent changes that watchers resume from are not part of it: hosts discard them at different times.
struct StateDigest: ~Copyable {
  /// Rows and bytes of elements between two looks at the clock.
  private static let rowsPerStep = 256
  private static let bytesPerStep = 256 << 10

  let mark: UInt64
  private let image: CatalogImage
  /// Whether the rows of the last section of a feed count. By rules 1 to 4 they do not, but for the first ones of an only section.
  private let isWhole: Bool
  private var feed = 0
  private var section = 0
  private var checksums: (first: UInt32, second: UInt32) = (0, 0x9e37_79b9)
  private var bytes: UInt64 = 0

  /// - Parameter rules: those of the group. Members compare their digests, and one with another digest than most begins again.
  init(_ image: CatalogImage, mark: UInt64, rules: Int) { (self.image, self.mark, isWhole) = (image, mark, rules >= 5) }

  /// Reads rows for about `nanoseconds`. Returns the digest when it is complete.
  mutating func step(for nanoseconds: UInt64) -> String? {
    let deadline = MonotonicClock.now &+ nanoseconds
    while feed < image.feeds.count {
      read(image.feeds[feed])
      if MonotonicClock.now >= deadline { return nil }
    }
    add(image.revision)
    return padded(checksums.first, to: 8, radix: 16) + padded(checksums.second, to: 8, radix: 16)
  }

  /// Reads the next rows of a feed.
  private mutating func read(_ feed: FeedImage) {
    if section == 0 { addHead(feed) }
    let end = feed.sections.count + (isWhole ? 1 : 0)
    guard !feed.sections.isEmpty, section < end else {
      (self.feed, section) = (self.feed + 1, 0)
      return
    }
    section = max(section, 1)
    let count = feed.sections[section - 1].next(max: Self.rowsPerStep, bytes: Self.bytesPerStep) { row in
      add(row.element.changedAt.nanoseconds)
      add(row.element.text)
    }
    if count > 0 { return }
    add(UInt64(section))
    if section == feed.sections.count { (self.feed, section) = (self.feed + 1, 0) } else { section += 1 }
  }

  private mutating func addHead(_ feed: FeedImage) {
    add(feed.name)
    add(feed.definition)
    add(feed.revision)
    for bin in feed.bins {
      add(bin.revision)
      for path in bin.selection { add(UInt64(path.row)) }
    }
    for path in feed.selection {
      add(UInt64(path.section))
      add(UInt64(path.row))
    }
  }

  private mutating func add(_ number: UInt64) { withUnsafeBytes(of: number.littleEndian) { add($0) } }

  private mutating func add(_ text: String) {
    var text = text
    text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
  }

  private mutating func add(_ part: UnsafeRawBufferPointer) {
    bytes &+= UInt64(part.count)
    checksums.first = CRC32C.of(part, after: checksums.first)
    // Another polynomial would cost more; the count makes the two sums differ.
    checksums.second = withUnsafeBytes(of: bytes) { CRC32C.of($0, after: checksums.second ^ checksums.first) }
  }
}
