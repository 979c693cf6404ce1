import FeedModel
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedStorage

/// The ends of segments: what a start keeps, cuts off and refuses.
struct SegmentTests {
  private static let page = SegmentHeader.page

  private static func header(_ size: Int = 64 << 10, limits: String = "{}") -> SegmentHeader {
    SegmentHeader(
      number: 7, fileBytes: size, firstBatch: 40, firstRevision: 100, rules: 1, isSynced: true, epoch: "e",
      previousEpoch: "d", boot: "b", software: "0.1", limits: limits)
  }

  /// A segment with batches of these lengths, and where each record begins.
  private static func segment(_ lengths: [Int]) -> (bytes: [UInt8], starts: [Int]) {
    let header = header()
    let (encoded, checksum) = header.encode()
    var (bytes, starts) = (encoded, [Int]())
    for (place, length) in lengths.enumerated() {
      let requests = [UInt8](repeating: UInt8(ascii: "x"), count: length)
      let record = RecordHeader(
        kind: .batch, length: length, number: 40 + UInt64(place), revision: 100 + UInt64(place), moment: 5,
        checksum: requests.withUnsafeBytes { CRC32C.of($0) })
      var head = [UInt8](repeating: 0, count: RecordHeader.byteCount)
      head.withUnsafeMutableBytes { record.encode(in: checksum, into: $0) }
      starts.append(bytes.count)
      bytes += head + requests
    }
    starts.append(bytes.count)
    return (bytes + [UInt8](repeating: 0, count: header.fileBytes - bytes.count), starts)
  }

  private static func read(
    _ bytes: [UInt8], _ trust: SegmentReader.Trust
  ) throws -> (batches: Int, ending: SegmentReader.Ending) {
    try bytes.withUnsafeBytes { bytes in
      let (header, checksum) = try SegmentHeader.decode(bytes)
      var reader = SegmentReader(bytes, header, checksum: checksum, trust: trust)
      var count = 0
      while let batch = reader.next() {
        expect(batch.header.number == 40 + UInt64(count) && batch.header.revision == 100 + UInt64(count))
        count += 1
      }
      return (count, reader.ending)
    }
  }

  @Test func checksumIsTheStandardOne() {
    let digits = Array("123456789".utf8)
    expectEqual(digits.withUnsafeBytes { CRC32C.of($0) }, 0xE306_9283)
    let (first, rest) = (Array(digits[..<4]), Array(digits[4...]))
    let begun = first.withUnsafeBytes { CRC32C.of($0) }
    expectEqual(rest.withUnsafeBytes { CRC32C.of($0, after: begun) }, 0xE306_9283)
  }

  /// Inputs of all lengths, and from places that are not aligned, against one bit at a time.
  @Test func checksumOfLongInputs() {
    var random = SeededRandom(seed: 32)
    let bytes = (0..<1200).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    for start in [0, 1, 7] {
      var state = UInt32.max
      for count in 0..<(bytes.count - start) {
        let piece = Array(bytes[start..<start + count])
        expectEqual(piece.withUnsafeBytes { CRC32C.of($0) }, ~state, "\(count) bytes")
        let half = piece[..<(count / 3)].withUnsafeBytes { CRC32C.of($0) }
        expectEqual(piece[(count / 3)...].withUnsafeBytes { CRC32C.of($0, after: half) }, ~state, "\(count) bytes")
        state ^= UInt32(bytes[start + count])
        for _ in 0..<8 { state = state >> 1 ^ (state & 1 == 0 ? 0 : 0x82F6_3B78) }
      }
    }
  }

  @Test func headerIsReadAsWritten() throws {
    for limits in ["", "{}", String(repeating: "y", count: 5000)] {
      let header = Self.header(limits: limits)
      let (bytes, checksum) = header.encode()
      expectEqual(bytes.count % Self.page, 0)
      let found = try bytes.withUnsafeBytes { try SegmentHeader.decode($0) }
      expect(found.header == header && found.checksum == checksum)
      for place in stride(from: 0, to: bytes.count, by: 7) {
        var damaged = bytes
        damaged[place] ^= 4
        #expect(throws: SegmentHeader.Flaw.self) { try damaged.withUnsafeBytes { try SegmentHeader.decode($0) } }
      }
    }
  }

  @Test func namesOfSegments() {
    expect(SegmentHeader.name(of: 1) == "log-000001" && SegmentHeader.name(of: 12_345_678) == "log-12345678")
    expect(SegmentHeader.number(in: "log-000012") == 12 && SegmentHeader.number(in: "log-12345678") == 12_345_678)
    for name in ["log-1", "log-0000012", "log-new", "log-spare", "feedd.sqlite", "log-000012~", "log-+00012"] {
      expectEqual(SegmentHeader.number(in: name), nil, "\(name)")
    }
  }

  /// The kernel copies a write page by page: what a kill leaves is some whole pages of it.
  @Test func writeThatAKillInterruptedIsCutOff() throws {
    let (bytes, starts) = Self.segment([100, 3000, 20_000])
    let (start, end) = (starts[2], starts[3])
    for trust in [SegmentReader.Trust.sameBoot, .synced, .unsynced] {
      try expect(Self.read(bytes, trust) == (3, .clean))
      for page in stride(from: (start / Self.page + 1) * Self.page, to: end, by: Self.page) {
        var torn = bytes
        torn.replaceSubrange(page..., with: [UInt8](repeating: 0, count: bytes.count - page))
        try expect(Self.read(torn, trust) == (2, .torn), "\(trust), \(page)")
      }
    }
  }

  /// A header across two pages, of which a kill left the first one.
  @Test func headerThatAKillInterruptedIsCutOff() throws {
    let first = Self.page - RecordHeader.byteCount - 20
    let (bytes, starts) = Self.segment([first, 100])
    let page = 2 * Self.page
    expect(starts[1] < page && starts[1] + RecordHeader.byteCount > page)
    var torn = bytes
    torn.replaceSubrange(page..., with: [UInt8](repeating: 0, count: bytes.count - page))
    try expect(Self.read(torn, .sameBoot) == (1, .torn))
  }

  @Test("any other change of a record is damage, on the same boot")
  func flippedBits() throws {
    let (bytes, starts) = Self.segment([100, 3000, 20_000, 50])
    for place in stride(from: starts[0], to: bytes.count, by: 13) {
      var damaged = bytes
      damaged[place] ^= 1 << UInt8(place % 8)
      let found = try Self.read(damaged, .sameBoot)
      expect(found.ending == .damaged && found.batches == starts[1...].count { $0 <= place }, "\(place)")
    }
  }

  /// A file whose writes are stopped after some pages, as those of a process that is killed.
  private final class StoppingFile: LogFile, @unchecked Sendable {
    private(set) var bytes: [UInt8]
    private var pagesLeft: Int

    init(_ bytes: [UInt8], stoppingAfter pages: Int) { (self.bytes, pagesLeft) = (bytes, pages) }

    func size(named name: String) -> Int? { bytes.count }

    func write(
      _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
    ) throws(SystemError) -> Int {
      for (place, byte) in (Array(first) + Array(second)).enumerated() {
        if place == 0 || (offset + place) % SegmentHeader.page == 0 {
          guard pagesLeft > 0 else { throw SystemError(code: EIO, operation: "write", path: "") }
          pagesLeft -= 1
        }
        bytes[offset + place] = byte
      }
      return first.count + second.count
    }

    func read(_ space: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int { 0 }
    func sync() throws(SystemError) {}
  }

  /// The second batch is in one page, in several, and with a header in two.
  @Test(
    "a record that is erased in part looks like one that was written in part",
    arguments: [[10, 10], [10, 5000], [10, 40_000], [4096 - 60, 10], [4096 - 60, 5000], [4096 - 60, 40_000]])
  func erasedInPart(lengths: [Int]) throws {
    let (bytes, starts) = Self.segment(lengths)
    let range = starts[1]..<starts[2]
    let pages = (range.upperBound - 1) / Self.page - range.lowerBound / Self.page + 1
    for count in 0...pages {
      let file = StoppingFile(bytes, stoppingAfter: count)
      try? file.erase(range)
      let found = try Self.read(file.bytes, .sameBoot)
      expectEqual(found.batches, count == 0 ? 2 : 1, "\(count) of \(pages) pages")
      expectEqual(found.ending, count == 0 || count == pages ? .clean : .torn, "\(count) of \(pages) pages")
    }
  }

  @Test("after a loss of power the last record may be torn, but no record behind which another one is")
  func tornSectors() throws {
    let (bytes, starts) = Self.segment([100, 3000, 20_000])
    for place in stride(from: starts[1], to: starts[3], by: 11) {
      var damaged = bytes
      damaged[place] ^= 1
      let isLast = place >= starts[2]
      try expect(Self.read(damaged, .synced) == (isLast ? 2 : 1, isLast ? .torn : .damaged), "\(place)")
      try expect(Self.read(damaged, .unsynced) == (isLast ? 2 : 1, .torn))
    }
  }

  @Test("a note that is written in part is erased", arguments: [0, 1, 20, RecordHeader.byteCount])
  func tornNote(limit: Int) throws {
    let (bytes, starts) = Self.segment([100, 200])
    let file = TornFile(bytes)
    let segment = OpenSegment(file, Self.header(), checksum: Self.header().encode().checksum, in: "d", end: starts[2])
    file.room = limit
    let isWritten = segment.write(RecordHeader(kind: .stopped, number: 42, revision: 102))
    expect(isWritten == (limit == RecordHeader.byteCount))
    try expect(Self.read(file.bytes, .sameBoot) == (2, isWritten ? .stopped : .clean))
  }
}

/// A file that takes some bytes and fails then, but can be erased.
private final class TornFile: LogFile, @unchecked Sendable {
  private(set) var bytes: [UInt8]
  /// The bytes that it takes before it fails; nil for all.
  var room: Int?

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  func size(named name: String) -> Int? { bytes.count }
  func sync() throws(SystemError) {}
  func read(_ space: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
    space.copyBytes(from: bytes[offset...].prefix(space.count))
    return min(space.count, bytes.count - offset)
  }

  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    let taken = Array(Array(first) + Array(second)).prefix(room ?? .max)
    if taken.isEmpty {
      room = nil
      throw SystemError(code: EIO, operation: "write")
    }
    bytes.replaceSubrange(offset..<offset + taken.count, with: taken)
    room = room.map { $0 - taken.count }
    return taken.count
  }
}
