import FeedJSON
import FeedModel
import FeedSystem

/// The failures that a stored batch survives.
public enum Durability: Sendable {
  /// The end of the process, for any reason: the kernel has the bytes.
  case process
  /// A failure of the machine: the disk has the bytes.
  case disk
}

/// Appends batches to the segments of a state directory.
///
/// Used by one thread at a time. Space is allocated ahead: a batch is one write into the current segment (``OpenSegment``), and
/// others wait for its end (``SpareSegments``).
///
/// Invariant: `nextBatch` follows the last stored batch, and the current segment is the last one of `segments`. No batch is
/// stored while the current segment is `unfinished`.
struct SegmentWriter: ~Copyable {
  /// The result of storing a batch.
  enum Outcome {
    /// The batch is stored, with the configured durability.
    case stored
    /// The batch is not stored, and no start will find it.
    case refused(StorageError)
    /// There is no room for the batch; none of it was written.
    case noRoom(StorageError)
    /// The segment may contain the whole batch. `settle` must succeed before its requests are refused.
    case unknown(StorageError)
  }

  /// What all segments of this run have in their headers.
  struct Facts {
    var epoch: String
    /// The epoch before the first segment of this run.
    var previousEpoch: String
    /// The epoch of the image that this run began with; nil without one.
    var imageEpoch: String?
    var boot: String
    var software: String
    var durability: Durability
    var limits = ""
  }

  /// What remains to do for a segment that has its name: the name is made durable, then the segment before it is told of it.
  private struct Unfinished {
    /// Whether the directory must be synced.
    let needsSync: Bool
    /// The segment before; nil if there is none, or if it says already that another one follows.
    let before: OpenSegment?
    /// The note at the end of the segment before.
    let note: RecordHeader
  }

  private let directory: String
  private let files: any LogDirectory
  private var facts: Facts
  private var current: OpenSegment?
  /// The rest of the work on the current segment; nil if it is ready for batches.
  private var unfinished: Unfinished?
  private var spares: SpareSegments
  /// The last segment of the run before, until a segment of this run follows it.
  private var former: LogEnd.Last?
  /// All segments with batches that the newest image does not cover, and the current one.
  private var segments: [(number: UInt64, firstBatch: UInt64, bytes: Int)]
  private var lastNumber: UInt64
  private(set) var nextBatch: UInt64
  /// The bytes that the next image needs. They are left free.
  var reserve = 0
  private var scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: RecordHeader.byteCount, alignment: 8)

  init(_ files: any LogDirectory, in directory: String, after end: LogEnd, _ facts: Facts) {
    (self.files, self.directory, self.facts) = (files, directory, facts)
    spares = SpareSegments(files, in: directory, facts.durability)
    segments = end.segments
    former = end.last
    lastNumber = end.highest
    nextBatch = end.nextBatch
  }

  deinit { scratch.deallocate() }

  /// The bytes of all segments, and of those that wait.
  var bytes: Int { segments.reduce(spares.bytes) { $0 + $1.bytes } }
  /// Whether there is a segment of the epoch of this run, which continues its images.
  var hasSegment: Bool { (current?.header ?? former?.segment.header)?.epoch == facts.epoch }
  /// Whether a segment that waits should be allocated.
  var needsSpare: Bool { !spares.areComplete && current != nil }
  /// The segment to allocate next; nil if none is missing, or if there is no room. It is created with `SegmentFiles`.
  var missing: SegmentFiles.Wanted? { spares.missing(image: reserve, log: bytes) }

  /// Takes a segment that was missing.
  mutating func add(_ wanted: SegmentFiles.Wanted, _ file: any LogFile) { spares.add(wanted, file) }

  // MARK: The start

  /// Continues the last segment, or begins a new one. Without room for one, batches are refused until there is.
  /// - Parameter mustBegin: whether it is an error if no segment can be begun.
  /// - Throws: also if what a start found cannot be made durable.
  mutating func begin(_ limits: Limits, after end: LogEnd, mustBegin: Bool) throws(StorageError) {
    facts.limits = limits.storedText
    do throws(SystemError) {
      try spares.find()
      if try mayContinue(end) { return removeFiles(end.leftovers) }
      if facts.durability == .disk { try rewrite(end) }
      // Those that do not verify go first, the newest of them before the others: no start takes them for a continuation.
      if end.isCut { for name in end.leftovers { try files.remove(name) } }
    } catch {
      throw StorageError(error, path: directory)
    }
    do throws(StorageError) {
      try rotate(for: 0, revision: end.revision, grows: false)
    } catch {
      if mustBegin { throw error }
    }
    // One of those that did not verify may have had the name of the new segment.
    if !end.isCut { removeFiles(end.leftovers) }
  }

  private func removeFiles(_ names: [String]) {
    for name in names { try? files.remove(name) }
  }

  /// Continues the last segment of the run before if its header is that of this run. Returns whether it does.
  private mutating func mayContinue(_ end: LogEnd) throws(SystemError) -> Bool {
    guard let last = end.last, !end.isCut, !facts.boot.isEmpty else { return false }
    let header = last.segment.header
    let same = makeHeader(
      number: header.number, fileBytes: header.fileBytes, firstBatch: header.firstBatch,
      firstRevision: header.firstRevision, previousEpoch: header.previousEpoch)
    guard header == same, let file = try last.segment.open() else { return false }
    if last.contentEnd > last.offset {
      try file.erase(last.offset..<last.contentEnd)
      // After a loss of power, the note of a clean stop must not say that the log is whole.
      try file.sync()
    }
    if facts.durability == .disk { try rewrite(end) }
    current = OpenSegment(file, header, checksum: last.segment.checksum, in: directory, end: last.offset)
    former = nil
    return true
  }

  /// The header of a segment of this run.
  private func makeHeader(
    number: UInt64, fileBytes: Int = 0, firstBatch: UInt64, firstRevision: UInt64, previousEpoch: String
  ) -> SegmentHeader {
    SegmentHeader(
      number: number, fileBytes: fileBytes, firstBatch: firstBatch, firstRevision: firstRevision,
      rules: UInt32(ExecutionRules.current), isSynced: facts.durability == .disk, epoch: facts.epoch,
      previousEpoch: previousEpoch, boot: facts.boot, software: facts.software, limits: facts.limits)
  }

  /// Writes again what a start found, and syncs it: a sync that failed before may have dropped pages that only seem to be
  /// stored (fsync(2)).
  private func rewrite(_ end: LogEnd) throws(SystemError) {
    for (number, _, bytes) in end.segments {
      let name = SegmentHeader.name(of: number)
      let file = try files.open(name)
      let content = try SegmentBytes(file, count: bytes)
      var failure: SystemError?
      // A write makes the pages dirty, so that the next sync really writes them.
      for _ in 0..<3 {
        do throws(SystemError) {
          try file.writeAll(content.bytes, at: 0)
          try file.sync()
          failure = nil
          break
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
    }
    try files.sync()
  }

  // MARK: Batches

  /// Whether a batch can be stored by one write into the current segment.
  func canAppendAtOnce(bytes: Int) -> Bool { unfinished == nil && current?.hasRoom(for: bytes) ?? false }

  /// Stores a batch after `nextBatch`.
  mutating func append(_ batch: LogBatch) -> Outcome {
    do throws(SystemError) {
      try current?.erase()
      try finishSegment()
    } catch {
      return .refused(StorageError(error, path: directory))
    }
    if let damage = current?.problem() { return .refused(damage) }
    if !canAppendAtOnce(bytes: batch.frames.count) {
      do throws(StorageError) {
        try rotate(for: batch.frames.count, revision: batch.revision ?? .max, grows: batch.grows)
      } catch {
        return error.kind == .noSpace ? .noRoom(error) : .refused(error)
      }
    }
    precondition(current != nil, "there is no segment")
    do throws(StorageError) {
      try current?.write(batch, nextBatch, scratch)
    } catch {
      return settle() ? .refused(error) : .unknown(error)
    }
    nextBatch += 1
    return .stored
  }

  /// Erases a batch whose outcome is unknown, so that no start finds it. Returns whether there is no such batch now.
  mutating func settle() -> Bool {
    do throws(SystemError) {
      try current?.erase()
      return true
    } catch {
      return false
    }
  }

  // MARK: Segments

  /// Begins the next segment, with room for a batch.
  ///
  /// From its new name on, the segment is the current one, even if its directory cannot be synced: a start reads it, and
  /// ignores what follows in the one before.
  /// - Parameters:
  ///   - bytes: the bytes of the batch.
  ///   - grows: whether the batch may need more space in the state.
  private mutating func rotate(for bytes: Int, revision: UInt64, grows: Bool) throws(StorageError) {
    assert(unfinished == nil)
    // A segment without batches is replaced.
    let replaced = segments.last.flatMap { $0.firstBatch == nextBatch ? $0 : nil }
    let previousEpoch = epoch(before: replaced?.number)
    let number = replaced?.number ?? lastNumber + 1
    var header = makeHeader(
      number: number, firstBatch: nextBatch, firstRevision: revision, previousEpoch: previousEpoch)
    let needed = header.byteCount + bytes + 3 * RecordHeader.byteCount
    let name = SegmentHeader.name(of: number)
    do throws(SystemError) {
      let (file, size, source) = try spares.take(needed, grows: grows, image: reserve, log: self.bytes)
      header.fileBytes = size
      let (encoded, checksum) = header.encode()
      // The first segment of a run tells the next start of which boot it is.
      let needsSync = facts.durability == .disk || current == nil
      do throws(SystemError) {
        try encoded.withUnsafeBufferPointer { bytes throws(SystemError) in
          try file.writeAll(UnsafeRawBufferPointer(bytes), at: 0)
        }
        if needsSync { try file.sync() }
        try files.rename(source, to: name)
      } catch {
        try? files.remove(source)
        throw error
      }
      unfinished = Unfinished(
        needsSync: needsSync, before: replaced == nil ? segmentBefore() : nil,
        note: RecordHeader(kind: .next, number: nextBatch, revision: revision))
      if replaced != nil { segments.removeLast() }
      former = nil
      current = OpenSegment(file, header, checksum: checksum, in: directory, end: header.byteCount)
      segments.append((number, nextBatch, size))
      lastNumber = max(lastNumber, number)
      try finishSegment()
    } catch {
      throw StorageError(error, path: "\(directory)/\(name)")
    }
  }

  /// The epoch of what the next segment follows: the segment or the image before it.
  /// - Parameter replaced: the number of the segment that it replaces.
  private func epoch(before replaced: UInt64?) -> String {
    guard let last = current?.header ?? former?.segment.header else { return facts.previousEpoch }
    if last.number != replaced { return last.epoch }
    // The image may have been written in the epoch of the segment that is replaced.
    if current == nil, segments.count == 1, let image = facts.imageEpoch { return image }
    return last.previousEpoch
  }

  /// The segment that the next one follows; nil if there is none.
  private func segmentBefore() -> OpenSegment? {
    if let current { return current }
    guard let former, let file = try? former.segment.open() else { return nil }
    try? file.writeZeros(former.offset..<max(former.offset, former.contentEnd))
    return OpenSegment(
      file, former.segment.header, checksum: former.segment.checksum, in: directory, end: former.offset)
  }

  /// Makes the name of the current segment durable, and notes at the end of the segment before that another one follows. Without
  /// the note, a start could not miss that one; with it and without that one, a start refuses the log.
  private mutating func finishSegment() throws(SystemError) {
    guard let unfinished else { return }
    if unfinished.needsSync { try files.sync() }
    if let before = unfinished.before, !before.isClosed { before.write(unfinished.note) }
    self.unfinished = nil
  }

  /// Forgets the segments whose batches an image covers, which survives a loss of power. Their files are removed with
  /// `SegmentFiles`.
  /// - Parameter batch: the last batch that it covers.
  mutating func takeSegments(coveredThrough batch: UInt64) -> SegmentFiles.Covered? {
    guard unfinished == nil, let keep = segments.lastIndex(where: { $0.firstBatch <= batch + 1 }), keep > 0 else {
      return nil
    }
    let names = segments.map { SegmentHeader.name(of: $0.number) }
    segments.removeSubrange(..<keep)
    return SegmentFiles.Covered(names: Array(names[..<keep]), kept: names[keep])
  }

  /// Syncs the log and notes a clean stop. The last call.
  mutating func close(revision: UInt64) {
    guard (try? finishSegment()) != nil else { return }
    guard let current, !current.isClosed, current.isSettled, current.problem() == nil else { return }
    // All of it must survive before the note says so.
    for segment in segments {
      guard let file = try? files.open(SegmentHeader.name(of: segment.number)), (try? file.sync()) != nil else {
        return
      }
    }
    guard (try? files.sync()) != nil else { return }
    if current.write(RecordHeader(kind: .stopped, number: nextBatch, revision: revision)) { try? current.file.sync() }
  }
}
