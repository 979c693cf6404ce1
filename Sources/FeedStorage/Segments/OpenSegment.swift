import FeedJSON
import FeedModel
import FeedSystem
import Glibc

/// The segment that batches are written to, and the end of its records.
///
/// Invariant: everything behind `end` is zero, unless a batch is unsettled: it failed to be written, and was not erased yet.
struct OpenSegment {
  let file: any LogFile
  let header: SegmentHeader
  /// The checksum of the header, with which those of the records begin.
  private let checksum: UInt32
  private let directory: String
  private let name: String
  /// The offset of the next record.
  private var end: Int
  /// Whether no more records may follow, because a sync failed.
  private(set) var isClosed = false
  /// The bytes behind the end that a failed batch may have left, and where those end that the system said it had taken.
  private var unsettled: (range: Range<Int>, writtenEnd: Int)?

  init(_ file: any LogFile, _ header: SegmentHeader, checksum: UInt32, in directory: String, end: Int) {
    (self.file, self.header, self.checksum, self.directory) = (file, header, checksum, directory)
    name = SegmentHeader.name(of: header.number)
    self.end = end
  }

  private var path: String { "\(directory)/\(name)" }

  /// Whether no failed batch is left.
  var isSettled: Bool { unsettled == nil }

  /// Whether a batch can be written, with room for a note behind it.
  func hasRoom(for bytes: Int) -> Bool {
    isSettled && !isClosed && bytes <= header.fileBytes - end - 2 * RecordHeader.byteCount
  }

  /// The reason why nothing can be stored safely; nil if it can. One system call.
  func problem() -> StorageError? {
    guard let size = file.size(named: name) else {
      return StorageError(.vanished, path: path, reason: "the segment was removed or replaced")
    }
    guard size == header.fileBytes else {
      return StorageError(
        .damaged, path: path, reason: "the segment was cut to \(counted(size, "byte")) by another program")
    }
    return nil
  }

  /// Writes a batch with the durability of the segment. After a failure, it is unsettled.
  /// - Parameters:
  ///   - number: the number of the batch in the log.
  ///   - scratch: memory for the header of a record.
  mutating func write(
    _ batch: LogBatch, _ number: UInt64, _ scratch: UnsafeMutableRawBufferPointer
  ) throws(StorageError) {
    assert(hasRoom(for: batch.frames.count))
    let record = RecordHeader(
      kind: .batch, length: batch.frames.count, number: number, revision: batch.revision ?? .max,
      moment: batch.at.nanoseconds, checksum: CRC32C.of(batch.frames))
    record.encode(in: checksum, into: scratch)
    let count = RecordHeader.byteCount + batch.frames.count
    var written = 0
    do throws(SystemError) {
      written = try file.write(UnsafeRawBufferPointer(scratch), batch.frames, at: end)
      if written < count {
        // The system says why it stopped when it is asked for the rest.
        let rest = UnsafeRawBufferPointer(rebasing: batch.frames[max(0, written - RecordHeader.byteCount)...])
        guard written >= RecordHeader.byteCount else {
          throw SystemError(code: ENOSPC, operation: "write a whole record to", path: path)
        }
        try file.writeAll(rest, at: end + written)
      }
      if header.isSynced { try file.sync() }
    } catch {
      // After a failed sync, only new pages can be trusted.
      if error.operation == "sync" { isClosed = true }
      unsettled = (end..<end + count, end + written)
      throw StorageError(error, path: path)
    }
    end += count
  }

  /// Erases a batch that is unsettled, so that no start finds it.
  mutating func erase() throws(SystemError) {
    guard let (range, writtenEnd) = unsettled else { return }
    do throws(SystemError) {
      try file.erase(range)
    } catch {
      // Behind a limit on the size of files there is nothing to erase.
      guard error.code == EFBIG else { throw error }
      try file.erase(range.lowerBound..<writtenEnd)
    }
    unsettled = nil
  }

  /// Writes a note behind the last record, after which nothing is written. Returns whether it was written. A part of it, which a start
  /// would take for damage, is erased.
  @discardableResult
  func write(_ note: RecordHeader) -> Bool {
    var bytes = [UInt8](repeating: 0, count: RecordHeader.byteCount)
    return bytes.withUnsafeMutableBytes { bytes in
      note.encode(in: checksum, into: bytes)
      if (try? file.writeAll(UnsafeRawBufferPointer(bytes), at: end)) != nil { return true }
      try? file.erase(end..<end + RecordHeader.byteCount)
      return false
    }
  }
}

extension LogFile {
  /// Erases a record at the end of a segment, or the beginning of one. Whatever stops this, what is left is the beginning of a record:
  /// a start takes anything else for damage (``SegmentReader/Ending``). So its last page is erased first, and those that may have its
  /// header last, each with a write of its own.
  func erase(_ range: Range<Int>) throws(SystemError) {
    let (page, first) = (SegmentHeader.page, range.lowerBound / SegmentHeader.page)
    let last = max(range.lowerBound, (range.upperBound - 1) / page * page)
    var end = range.upperBound
    for start in [last, min(last, (first + 2) * page), min(last, (first + 1) * page), range.lowerBound] {
      try writeZeros(start..<end)
      end = start
    }
  }
}
