import FeedSystem

/// Reads the records of one segment in order, and verifies each of them.
///
/// The bytes behind the last record decide what the end of the segment is; see `Ending`.
struct SegmentReader {
  struct Batch {
    let header: RecordHeader
    /// The framed requests. Valid while the bytes of the segment are.
    let requests: UnsafeRawBufferPointer
  }

  /// What follows the last batch.
  enum Ending: Equatable {
    /// Nothing but zeros.
    case clean
    /// A note that the log goes on in the next segment.
    case next
    /// A note of a clean stop.
    case stopped
    /// The beginning of a batch whose write was interrupted, so that nobody was told of it.
    case torn
    /// Bytes that no interrupted write explains.
    case damaged
  }

  /// What may have happened to the end of a segment.
  enum Trust {
    /// The system ran on since it was written: a write that was interrupted left whole pages, then zeros.
    case sameBoot
    /// The power may have failed, and each batch was synced before the next one was written.
    case synced
    /// The power may have failed, and nothing was synced.
    case unsynced
  }

  private let bytes: UnsafeRawBufferPointer
  private let checksum: UInt32
  private let trust: Trust
  private(set) var nextBatch: UInt64
  /// The offset of the next record.
  private(set) var offset: Int
  /// What follows the last batch, after `next()` returned nil.
  private(set) var ending = Ending.clean
  /// The revision before the next batch, if a note says so.
  private(set) var lastRevision: UInt64?

  /// - Parameters:
  ///   - bytes: the whole file.
  ///   - checksum: that of the header.
  init(_ bytes: UnsafeRawBufferPointer, _ header: SegmentHeader, checksum: UInt32, trust: Trust) {
    (self.bytes, self.checksum, self.trust) = (bytes, checksum, trust)
    nextBatch = header.firstBatch
    offset = header.byteCount
  }

  mutating func next() -> Batch? {
    guard offset + RecordHeader.byteCount <= bytes.count else {
      ending = .clean
      return nil
    }
    guard let header = RecordHeader(record, in: checksum), header.number == nextBatch,
      header.length <= bytes.count - offset - RecordHeader.byteCount
    else {
      ending = judgeEnd()
      return nil
    }
    let start = offset + RecordHeader.byteCount
    let requests = UnsafeRawBufferPointer(rebasing: bytes[start..<start + header.length])
    guard CRC32C.of(requests) == header.checksum else {
      ending = judgeEnd()
      return nil
    }
    switch header.kind {
    case .batch:
      offset = start + header.length
      nextBatch += 1
      return Batch(header: header, requests: requests)
    case .next, .stopped:
      ending = header.kind == .next ? .next : .stopped
      lastRevision = header.revision
      return nil
    }
  }

  private var record: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[offset...]) }

  /// The offset behind the last byte that is not zero.
  var endOfContent: Int {
    var end = bytes.count
    let words = bytes.baseAddress
    while end >= 8, let words, end & 7 == 0, words.loadUnaligned(fromByteOffset: end - 8, as: UInt64.self) == 0 {
      end -= 8
    }
    while end > 0, bytes[end - 1] == 0 { end -= 1 }
    return end
  }

  private func judgeEnd() -> Ending {
    let content = endOfContent
    if content <= offset { return .clean }
    let header = RecordHeader(record, in: checksum)
    switch trust {
    case .unsynced: return .torn
    case .sameBoot:
      // The kernel copies a write page by page and stops only between two of them.
      let page = (content + SegmentHeader.page - 1) / SegmentHeader.page * SegmentHeader.page
      guard let header else { return offset + RecordHeader.byteCount > page ? .torn : .damaged }
      return offset + RecordHeader.byteCount + header.length > page ? .torn : .damaged
    case .synced:
      // A record behind this one was written only after this one was synced.
      if let header { return content <= offset + RecordHeader.byteCount + header.length ? .torn : .damaged }
      return hasLaterRecord(before: content) ? .damaged : .torn
    }
  }

  /// Whether a later record follows at any place.
  private func hasLaterRecord(before end: Int) -> Bool {
    var place = offset + 1
    while place + RecordHeader.byteCount <= end {
      let number = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place + 8, as: UInt64.self))
      if number > nextBatch, number - nextBatch < 1 << 32,
        RecordHeader(UnsafeRawBufferPointer(rebasing: bytes[place...]), in: checksum) != nil
      {
        return true
      }
      place += 1
    }
    return false
  }
}

final class SegmentBytes {
  private let memory: UnsafeMutableRawBufferPointer
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(memory) }

  init(_ file: any LogFile, count: Int) throws(SystemError) {
    memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, 1), alignment: 16)
    do throws(SystemError) {
      let read = try file.read(UnsafeMutableRawBufferPointer(rebasing: memory[..<count]), at: 0)
      UnsafeMutableRawBufferPointer(rebasing: memory[read...]).initializeMemory(as: UInt8.self, repeating: 0)
    } catch {
      memory.deallocate()
      throw error
    }
  }

  init(_ bytes: UnsafeRawBufferPointer, count: Int) {
    memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, bytes.count, 1), alignment: 16)
    memory.copyMemory(from: bytes)
    UnsafeMutableRawBufferPointer(rebasing: memory[bytes.count...]).initializeMemory(as: UInt8.self, repeating: 0)
  }

  deinit { memory.deallocate() }
}
