import FeedJSON
import FeedModel
import FeedSystem
import Glibc

/// The failures that a stored batch survives.
public enum Durability: Sendable {
  /// The end of the process, for any reason: the kernel has the bytes.
  case process
  /// A failure of the machine: the disk has the bytes.
  case disk
}

/// Where the stored log ends, as recovery found it.
struct LogEnd {
  /// A segment, where its records end, and where its bytes are zero.
  struct Last {
    let segment: SegmentChain.Segment
    let offset: Int
    let contentEnd: Int
  }

  /// The segments that the image does not cover, the last one last.
  var segments: [(number: UInt64, firstBatch: UInt64, bytes: Int)] = []
  /// The last segment, if its records can be continued.
  var last: Last?
  /// Files that are not needed any more, the newest first.
  var leftovers: [String] = []
  /// The highest number of a segment that exists.
  var highest: UInt64 = 0
  /// The number of the next batch.
  var nextBatch: UInt64 = 1
  /// The revision after the last batch.
  var revision: UInt64 = 0
  /// Whether a part of the log was left out.
  var isCut = false
}

/// Appends batches to the segments of a state directory.
///
/// Used by one thread at a time. Space is allocated ahead: a batch is one write into the current segment, and a spare
/// segment waits for its end. A short one is kept in reserve for requests that free space.
///
/// Invariant: `nextBatch` follows the last stored batch, and everything behind `end` in the current segment is zero unless
/// `unsettled` is set.
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

  private struct Current {
    let file: any LogFile
    let header: SegmentHeader
    let checksum: UInt32
    let name: String
    /// The offset of the next record.
    var end: Int
    /// Whether no more records may follow, because a sync failed.
    var isClosed = false

    /// The bytes of requests that fit in one more record, with room for a note behind it.
    var room: Int { isClosed ? -1 : header.fileBytes - end - 2 * RecordHeader.byteCount }
  }

  /// The names of segments that wait for their use.
  static let spareName = "log-spare"
  static let reserveName = "log-reserve"
  /// The names of files that are being created.
  private static let freshName = "log-new"
  private static let sizes = (least: 256 << 10, first: 2 << 20, most: 4 << 20, reserve: 512 << 10)

  private let directory: String
  private let files: any LogDirectory
  private var facts: Facts
  private var current: Current?
  private var spare: (file: any LogFile, bytes: Int)?
  private var reserved: (file: any LogFile, bytes: Int)?
  /// The last segment of the run before, until a segment of this run follows it.
  private var former: LogEnd.Last?
  /// All segments with batches that the newest image does not cover, and the current one.
  private var segments: [(number: UInt64, firstBatch: UInt64, bytes: Int)]
  private var lastNumber: UInt64
  private(set) var nextBatch: UInt64
  /// The bytes behind the end of the current segment that a failed batch may have left, and where those end that the system
  /// said it had taken.
  private var unsettled: (range: Range<Int>, writtenEnd: Int)?
  /// The bytes that the next image needs. They are left free.
  var reserve = 0
  private var scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: RecordHeader.byteCount, alignment: 8)

  init(_ files: any LogDirectory, in directory: String, after end: LogEnd, _ facts: Facts) {
    self.files = files
    self.directory = directory
    self.facts = facts
    segments = end.segments
    former = end.last
    lastNumber = end.highest
    nextBatch = end.nextBatch
  }

  deinit { scratch.deallocate() }

  /// The bytes of all segments, and of those that wait.
  var bytes: Int { segments.reduce((spare?.bytes ?? 0) + (reserved?.bytes ?? 0)) { $0 + $1.bytes } }
  /// Whether a spare segment or the reserve should be allocated.
  var needsSpare: Bool { (spare == nil || reserved == nil) && current != nil }

  // MARK: The start

  /// Continues the last segment, or begins a new one. Without room for one, batches are refused until there is.
  /// - Parameter mustBegin: whether it is an error if no segment can be begun.
  /// - Throws: also if what a start found cannot be made durable.
  mutating func begin(_ limits: Limits, after end: LogEnd, mustBegin: Bool) throws(StorageError) {
    facts.limits = limits.storedText
    do throws(SystemError) {
      try findSpares()
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

  /// Uses what waits for its use since an earlier run, and removes what was being created.
  private mutating func findSpares() throws(SystemError) {
    try files.remove(Self.freshName)
    let names = try files.names()
    spare = names.contains(Self.spareName) ? try find(Self.spareName) : nil
    reserved = names.contains(Self.reserveName) ? try find(Self.reserveName) : nil
  }

  private func find(_ name: String) throws(SystemError) -> (file: any LogFile, bytes: Int)? {
    guard let file = try? files.open(name), let bytes = file.size(named: name), bytes >= Self.sizes.least else {
      try files.remove(name)
      return nil
    }
    // A header may have been written before the run ended.
    try file.writeZeros(0..<min(bytes, 64 << 10))
    return (file, bytes)
  }

  /// Continues the last segment of the run before if its header is that of this run. Returns whether it does.
  private mutating func mayContinue(_ end: LogEnd) throws(SystemError) -> Bool {
    guard let last = end.last, !end.isCut, let file = last.segment.file, !facts.boot.isEmpty else { return false }
    let header = last.segment.header
    guard header == makeHeader(like: header) else { return false }
    if last.contentEnd > last.offset {
      try file.writeZeros(last.offset..<last.contentEnd)
      // After a loss of power, the note of a clean stop must not say that the log is whole.
      try file.sync()
    }
    if facts.durability == .disk { try rewrite(end) }
    current = Current(
      file: file, header: header, checksum: last.segment.checksum, name: last.segment.name, end: last.offset)
    former = nil
    return true
  }

  /// The header of this run with the place of another.
  private func makeHeader(like other: SegmentHeader) -> SegmentHeader {
    SegmentHeader(
      number: other.number, fileBytes: other.fileBytes, firstBatch: other.firstBatch,
      firstRevision: other.firstRevision, rules: UInt32(ExecutionRules.current), isSynced: facts.durability == .disk,
      epoch: facts.epoch, previousEpoch: other.previousEpoch, boot: facts.boot, software: facts.software,
      limits: facts.limits)
  }

  /// Writes again what a start found, and syncs it: a sync that failed before may have dropped pages that only seem to be
  /// stored (fsync(2)).
  private func rewrite(_ end: LogEnd) throws(SystemError) {
    for (number, _, bytes) in end.segments {
      let name = SegmentHeader.name(of: number)
      guard let file = try? files.open(name) else { continue }
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
  func canAppendAtOnce(bytes: Int) -> Bool {
    guard let current, unsettled == nil else { return false }
    return bytes <= current.room
  }

  /// Stores a batch after `nextBatch`.
  mutating func append(_ batch: LogBatch) -> Outcome {
    do throws(SystemError) {
      if unsettled != nil { try erase() }
    } catch {
      return .refused(StorageError(error, path: directory))
    }
    if let damage = problem() { return .refused(damage) }
    if (current?.room ?? -1) < batch.frames.count {
      do throws(StorageError) {
        try rotate(for: batch.frames.count, revision: batch.revision ?? .max, grows: batch.grows)
      } catch {
        return error.kind == .noSpace ? .noRoom(error) : .refused(error)
      }
    }
    return write(batch)
  }

  private mutating func write(_ batch: LogBatch) -> Outcome {
    guard var current else { preconditionFailure("there is no segment") }
    let header = RecordHeader(
      kind: .batch, length: batch.frames.count, number: nextBatch, revision: batch.revision ?? .max,
      moment: batch.at.nanoseconds, checksum: CRC32C.of(batch.frames))
    header.encode(in: current.checksum, into: scratch)
    let count = RecordHeader.byteCount + batch.frames.count
    var written = 0
    do throws(SystemError) {
      written = try current.file.write(UnsafeRawBufferPointer(scratch), batch.frames, at: current.end)
      if written < count {
        // The system says why it stopped when it is asked for the rest.
        let rest = UnsafeRawBufferPointer(rebasing: batch.frames[max(0, written - RecordHeader.byteCount)...])
        guard written >= RecordHeader.byteCount else {
          throw SystemError(code: ENOSPC, operation: "write a whole record to", path: "\(directory)/\(current.name)")
        }
        try current.file.writeAll(rest, at: current.end + written)
      }
      if facts.durability == .disk { try current.file.sync() }
    } catch {
      // After a failed sync, only new pages can be trusted.
      if error.operation == "sync" { self.current?.isClosed = true }
      unsettled = (current.end..<current.end + count, current.end + written)
      let reason = StorageError(error, path: "\(directory)/\(current.name)")
      return settle() ? .refused(reason) : .unknown(reason)
    }
    current.end += count
    nextBatch += 1
    self.current = current
    return .stored
  }

  /// Erases a batch whose outcome is unknown, so that no start finds it. Returns whether there is no such batch now.
  mutating func settle() -> Bool { (try? erase()) != nil }

  private mutating func erase() throws(SystemError) {
    guard let (range, writtenEnd) = unsettled, let current else { return }
    do throws(SystemError) {
      try current.file.writeZeros(range)
    } catch {
      // Behind a limit on the size of files there is nothing to erase.
      guard error.code == EFBIG else { throw error }
      try current.file.writeZeros(range.lowerBound..<writtenEnd)
    }
    unsettled = nil
  }

  /// The reason why nothing can be stored safely; nil if it can. One system call.
  private func problem() -> StorageError? {
    guard let current else { return nil }
    guard let size = current.file.size(named: current.name) else {
      return StorageError(
        .vanished, path: "\(directory)/\(current.name)", reason: "the segment was removed or replaced")
    }
    guard size == current.header.fileBytes else {
      return StorageError(
        .damaged, path: "\(directory)/\(current.name)",
        reason: "the segment was cut to \(counted(size, "byte")) by another program")
    }
    return nil
  }

  // MARK: Segments

  /// Begins the next segment, with room for a batch.
  /// - Parameters:
  ///   - bytes: the bytes of the batch.
  ///   - grows: whether the batch may need more space in the state.
  private mutating func rotate(for bytes: Int, revision: UInt64, grows: Bool) throws(StorageError) {
    // A segment without batches is replaced.
    let replaced = segments.last.flatMap { $0.firstBatch == nextBatch ? $0 : nil }
    let previousEpoch = epoch(before: replaced?.number)
    let number = replaced?.number ?? lastNumber + 1
    var header = SegmentHeader(
      number: number, fileBytes: 0, firstBatch: nextBatch, firstRevision: revision,
      rules: UInt32(ExecutionRules.current),
      isSynced: facts.durability == .disk, epoch: facts.epoch, previousEpoch: previousEpoch, boot: facts.boot,
      software: facts.software, limits: facts.limits)
    let needed = header.byteCount + bytes + 3 * RecordHeader.byteCount
    let name = SegmentHeader.name(of: number)
    do throws(SystemError) {
      let (file, size, source) = try takeFile(of: needed, grows: grows)
      header.fileBytes = size
      let (encoded, checksum) = header.encode()
      let failure = encoded.withUnsafeBytes { bytes -> SystemError? in
        do throws(SystemError) {
          try file.writeAll(bytes, at: 0)
          // The first segment of a run tells the next start of which boot it is.
          if facts.durability == .disk || current == nil { try file.sync() }
          try files.rename(source, to: name)
          if facts.durability == .disk || current == nil { try files.sync() }
          return nil
        } catch {
          return error
        }
      }
      if let failure {
        try? files.remove(source)
        throw failure
      }
      if replaced == nil { noteNext(revision: revision) } else { segments.removeLast() }
      former = nil
      current = Current(file: file, header: header, checksum: checksum, name: name, end: header.byteCount)
      segments.append((number, nextBatch, size))
      lastNumber = max(lastNumber, number)
      unsettled = nil
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

  /// Returns a file with room for `needed` bytes: the spare, a new one, or the reserve.
  /// - Parameter grows: whether the room of the next image must stay free, and the reserve untouched.
  private mutating func takeFile(
    of needed: Int, grows: Bool
  ) throws(SystemError) -> (any LogFile, size: Int, name: String) {
    if let spare, spare.bytes >= needed, !grows || hasRoom(for: 0) {
      self.spare = nil
      return (spare.file, spare.bytes, Self.spareName)
    }
    let size = needed > wantedSize ? (needed + 0xffff) / 0x10000 * 0x10000 : wantedSize
    do throws(SystemError) {
      guard !grows || hasRoom(for: size) else { throw fullError }
      return (try create(Self.freshName, size), size, Self.freshName)
    } catch {
      guard !grows, let reserved, reserved.bytes >= needed else { throw error }
      self.reserved = nil
      return (reserved.file, reserved.bytes, Self.reserveName)
    }
  }

  private var fullError: SystemError {
    SystemError(code: ENOSPC, operation: "allocate a segment of the log in", path: directory)
  }

  private func create(_ name: String, _ size: Int) throws(SystemError) -> any LogFile {
    try SegmentFiles(files, facts.durability).create(SegmentFiles.Wanted(name: name, bytes: size))
  }

  /// Whether a file can be allocated so that the next image still has room.
  private func hasRoom(for size: Int) -> Bool { files.freeBytes >= size + reserve }

  /// The bytes of a new segment: longer ones for a longer log, shorter ones if space is scarce.
  private var wantedSize: Int { Self.wantedSize(free: files.freeBytes, log: bytes) }

  private static func wantedSize(free: Int, log bytes: Int) -> Int {
    let wanted = bytes < 8 << 20 ? sizes.first : sizes.most
    return max(sizes.least, min(wanted, free / 16 / sizes.least * sizes.least))
  }

  /// Whether there is room for a segment, a spare and the next image.
  /// - Parameters:
  ///   - free: the bytes that are free.
  ///   - reserve: the bytes that the next image needs.
  ///   - bytes: the bytes of all segments.
  static func hasRoom(free: Int, reserve: Int, log bytes: Int) -> Bool {
    free >= reserve + 2 * wantedSize(free: free, log: bytes)
  }

  /// Notes at the end of the former segment that another one follows. Without it, a start could not miss that one.
  private func noteNext(revision: UInt64) {
    if let current {
      if !current.isClosed { note(.next, in: current.file, current.checksum, at: current.end, revision: revision) }
    } else if let former, let file = former.segment.file {
      try? file.writeZeros(former.offset..<max(former.offset, former.contentEnd))
      note(.next, in: file, former.segment.checksum, at: former.offset, revision: revision)
    }
  }

  @discardableResult
  private func note(
    _ kind: RecordHeader.Kind, in file: any LogFile, _ checksum: UInt32, at offset: Int, revision: UInt64
  ) -> Bool {
    let record = RecordHeader(kind: kind, number: nextBatch, revision: revision)
    var bytes = [UInt8](repeating: 0, count: RecordHeader.byteCount)
    return bytes.withUnsafeMutableBytes { bytes in
      record.encode(in: checksum, into: bytes)
      return (try? file.writeAll(UnsafeRawBufferPointer(bytes), at: offset)) != nil
    }
  }

  /// The segment to allocate next; nil if none is missing, or if there is no room. It is created with `SegmentFiles`.
  var missing: SegmentFiles.Wanted? {
    if reserved == nil { return SegmentFiles.Wanted(name: Self.reserveName, bytes: Self.sizes.reserve) }
    let size = wantedSize
    return spare == nil && hasRoom(for: size) ? SegmentFiles.Wanted(name: Self.spareName, bytes: size) : nil
  }

  /// Takes a segment that was missing.
  mutating func add(_ wanted: SegmentFiles.Wanted, _ file: any LogFile) {
    if wanted.name == Self.reserveName { reserved = (file, wanted.bytes) } else { spare = (file, wanted.bytes) }
  }

  /// Forgets the segments whose batches an image covers, which survives a loss of power. Their files are removed with
  /// `SegmentFiles`.
  /// - Parameter batch: the last batch that it covers.
  mutating func takeSegments(coveredThrough batch: UInt64) -> SegmentFiles.Covered? {
    guard let keep = segments.lastIndex(where: { $0.firstBatch <= batch + 1 }), keep > 0 else { return nil }
    let names = segments.map { SegmentHeader.name(of: $0.number) }
    segments.removeSubrange(..<keep)
    return SegmentFiles.Covered(names: Array(names[..<keep]), kept: names[keep])
  }

  /// Syncs the log and notes a clean stop. The last call.
  mutating func close(revision: UInt64) {
    guard let current, !current.isClosed, unsettled == nil, problem() == nil else { return }
    // All of it must survive before the note says so.
    for segment in segments {
      guard let file = try? files.open(SegmentHeader.name(of: segment.number)), (try? file.sync()) != nil else {
        return
      }
    }
    guard (try? files.sync()) != nil else { return }
    if note(.stopped, in: current.file, current.checksum, at: current.end, revision: revision) {
      try? current.file.sync()
    }
  }
}

/// The work on files that needs no lock on the segments, because it may wait for the disk.
struct SegmentFiles {
  /// A segment that should be allocated.
  struct Wanted {
    let name: String
    let bytes: Int
  }

  /// Segments that an image covers, and the one behind them.
  struct Covered {
    let names: [String]
    let kept: String
  }

  private let files: any LogDirectory
  private let durability: Durability

  init(_ files: any LogDirectory, _ durability: Durability) {
    self.files = files
    self.durability = durability
  }

  /// Creates a segment.
  ///
  /// - Parameter isSoon: whether it is filled soon. Its memory is then prepared, so that the thread that stores a batch need not.
  ///   Later, the zeros would have gone to the disk for nothing.
  func create(_ wanted: Wanted, isSoon: Bool = false) throws(SystemError) -> any LogFile {
    let file = try files.create(wanted.name, size: wanted.bytes, isZeroed: durability == .disk)
    if isSoon && durability == .process { try file.writeZeros(0..<wanted.bytes) }
    return file
  }

  func remove(_ covered: Covered) {
    // The header of the first segment tells a start of which boot it is. Until now those before it did.
    if durability == .process {
      guard let file = try? files.open(covered.kept), (try? file.sync()) != nil else { return }
    }
    for name in covered.names { try? files.remove(name) }
  }
}
