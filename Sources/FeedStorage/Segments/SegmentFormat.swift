import FeedJSON
import FeedModel
import FeedSystem

/// The header of a segment, a file of the log (Protocol/storage.md, "Segments").
struct SegmentHeader: Equatable {
  static let magic: [UInt8] = Array("feeddlog".utf8)
  static let version: UInt32 = 1
  /// Headers are padded to a multiple of this, so that no record shares a page with one.
  static let page = 4096
  private static let fixedBytes = 80
  private static let maxBytes = 1 << 20

  /// The number in the name of the file.
  var number: UInt64
  var fileBytes: Int
  var firstBatch: UInt64
  /// The revision before the first batch.
  var firstRevision: UInt64
  /// The version of the rules by which the requests are executed.
  var rules: UInt32
  /// Whether each batch was synced before it was acknowledged.
  var isSynced: Bool
  var epoch: String
  /// The epoch of the state on which the first batch was executed.
  var previousEpoch: String
  /// The boot during which it is written (`BootIdentity`).
  var boot: String
  /// The version of the program.
  var software: String
  /// The limits under which the requests are executed, as JSON.
  var limits: String

  /// The bytes before the first record.
  var byteCount: Int {
    let texts = [epoch, previousEpoch, boot, software, limits].reduce(0) { $0 + $1.utf8.count }
    return (Self.fixedBytes + texts + Self.page - 1) / Self.page * Self.page
  }

  static func name(of number: UInt64) -> String { "log-" + padded(number, to: 6) }

  /// The number in the name of a segment; nil for any other name.
  static func number(in name: String) -> UInt64? {
    guard name.hasPrefix("log-"), let number = UInt64(name.dropFirst(4)), name == Self.name(of: number) else {
      return nil
    }
    return number
  }

  /// The header as written, and its checksum, with which those of the records begin.
  func encode() -> (bytes: [UInt8], checksum: UInt32) {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    let checksum = bytes.withUnsafeMutableBytes { out in
      out.copyBytes(from: Self.magic)
      func store(_ value: some FixedWidthInteger, at offset: Int) {
        out.storeBytes(of: value.littleEndian, toByteOffset: offset, as: type(of: value))
      }
      store(Self.version, at: 8)
      store(UInt32(out.count), at: 12)
      store(rules, at: 20)
      store(number, at: 24)
      store(UInt64(fileBytes), at: 32)
      store(firstBatch, at: 40)
      store(firstRevision, at: 48)
      store(UInt32(isSynced ? 1 : 0), at: 56)
      var (place, text) = (60, Self.fixedBytes)
      for value in [epoch, previousEpoch, boot, software, limits] {
        store(UInt32(value.utf8.count), at: place)
        UnsafeMutableRawBufferPointer(rebasing: out[text...]).copyBytes(from: value.utf8)
        place += 4
        text += value.utf8.count
      }
      let checksum = CRC32C.of(UnsafeRawBufferPointer(out))
      store(checksum, at: 16)
      return checksum
    }
    return (bytes, checksum)
  }

  enum Flaw: Error, Equatable {
    /// The bytes are no header, or changed.
    case invalid
    /// A newer program wrote it in another format.
    case newer(UInt32)
  }

  /// Decodes the beginning of a file. Returns the header and its checksum.
  static func decode(_ bytes: UnsafeRawBufferPointer) throws(Flaw) -> (header: SegmentHeader, checksum: UInt32) {
    guard bytes.count >= page, bytes.starts(with: magic) else { throw .invalid }
    func load<Value: FixedWidthInteger>(_ offset: Int, _: Value.Type) -> Value {
      Value(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Value.self))
    }
    let count = Int(load(12, UInt32.self))
    guard count <= bytes.count, count >= page, count % page == 0 else { throw .invalid }
    let zero: [UInt8] = [0, 0, 0, 0]
    var checksum = CRC32C.of(UnsafeRawBufferPointer(rebasing: bytes[..<16]))
    checksum = zero.withUnsafeBytes { CRC32C.of($0, after: checksum) }
    checksum = CRC32C.of(UnsafeRawBufferPointer(rebasing: bytes[20..<count]), after: checksum)
    guard checksum == load(16, UInt32.self) else { throw .invalid }
    let version = load(8, UInt32.self)
    guard version == Self.version else { throw .newer(version) }
    var (texts, text): ([String], Int) = ([], fixedBytes)
    for place in stride(from: 60, to: fixedBytes, by: 4) {
      let length = Int(load(place, UInt32.self))
      guard length <= count - text else { throw .invalid }
      texts.append(String(decoding: bytes[text..<text + length], as: UTF8.self))
      text += length
    }
    let header = SegmentHeader(
      number: load(24, UInt64.self), fileBytes: Int(clamping: load(32, UInt64.self)), firstBatch: load(40, UInt64.self),
      firstRevision: load(48, UInt64.self), rules: load(20, UInt32.self), isSynced: load(56, UInt32.self) & 1 != 0,
      epoch: texts[0], previousEpoch: texts[1], boot: texts[2], software: texts[3], limits: texts[4])
    return (header, checksum)
  }

  /// Reads the header of a file.
  static func read(_ file: any LogFile) throws(SystemError) -> Result<(header: SegmentHeader, checksum: UInt32), Flaw> {
    var space = [UInt8](repeating: 0, count: page)
    func fill() throws(SystemError) -> Int {
      try space.withUnsafeMutableBufferPointer { space throws(SystemError) in
        try file.read(UnsafeMutableRawBufferPointer(space), at: 0)
      }
    }
    guard try fill() == page else { return .failure(.invalid) }
    let count = space.withUnsafeBytes {
      Int(UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: 12, as: UInt32.self)))
    }
    if count > page && count <= maxBytes {
      space = [UInt8](repeating: 0, count: count)
      guard try fill() == count else { return .failure(.invalid) }
    }
    return space.withUnsafeBytes { bytes in
      do throws(Flaw) { return .success(try decode(bytes)) } catch { return .failure(error) }
    }
  }
}

/// The first bytes of a record: a batch, or a note at the end of a segment.
struct RecordHeader: Equatable {
  static let byteCount = 40

  enum Kind: UInt32 {
    /// Requests, framed as they were received.
    case batch = 1
    /// The log goes on in the next segment.
    case next = 2
    /// The daemon stopped, with everything synced.
    case stopped = 3
  }

  var kind: Kind
  /// The bytes of requests that follow.
  var length: Int
  /// The number of the batch; of a note, that of the batch that would follow.
  var number: UInt64
  /// The revision before the batch, which the batch before it led to.
  var revision: UInt64
  /// The moment at which the batch is executed, in nanoseconds.
  var moment: UInt64
  /// The checksum of the requests.
  var checksum: UInt32

  /// - Parameter segment: the checksum of the segment's header.
  func encode(in segment: UInt32, into out: UnsafeMutableRawBufferPointer) {
    func store(_ value: some FixedWidthInteger, at offset: Int) {
      out.storeBytes(of: value.littleEndian, toByteOffset: offset, as: type(of: value))
    }
    store(UInt32(length), at: 0)
    store(kind.rawValue, at: 4)
    store(number, at: 8)
    store(revision, at: 16)
    store(moment, at: 24)
    store(checksum, at: 32)
    store(Self.ownChecksum(UnsafeRawBufferPointer(out), segment), at: 36)
  }

  /// Decodes a header; nil if the bytes are not one of this segment.
  init?(_ bytes: UnsafeRawBufferPointer, in segment: UInt32) {
    guard bytes.count >= Self.byteCount else { return nil }
    func load<Value: FixedWidthInteger>(_ offset: Int, _: Value.Type) -> Value {
      Value(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Value.self))
    }
    guard let kind = Kind(rawValue: load(4, UInt32.self)),
      load(36, UInt32.self) == Self.ownChecksum(bytes, segment)
    else { return nil }
    self.init(
      kind: kind, length: Int(load(0, UInt32.self)), number: load(8, UInt64.self), revision: load(16, UInt64.self),
      moment: load(24, UInt64.self), checksum: load(32, UInt32.self))
  }

  init(kind: Kind, length: Int = 0, number: UInt64, revision: UInt64, moment: UInt64 = 0, checksum: UInt32 = 0) {
    (self.kind, self.length, self.number) = (kind, length, number)
    (self.revision, self.moment, self.checksum) = (revision, moment, checksum)
  }

  private static func ownChecksum(_ bytes: UnsafeRawBufferPointer, _ segment: UInt32) -> UInt32 {
    CRC32C.of(UnsafeRawBufferPointer(rebasing: bytes[..<36]), after: segment)
  }
}
