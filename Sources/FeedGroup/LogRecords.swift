import FeedJSON
import FeedSystem

/// The checksums of the messages that were read last, and at each place that of all messages up to it: a function of the stream.
///
/// Invariant: the records are consecutive, in the order of the stream.
struct LogRecords: Equatable {
  /// A place in the log, and the checksum of all messages up to it.
  struct Mark: Equatable {
    let position: UInt64
    let chain: UInt32
  }

  struct Record: Equatable {
    let sequence: UInt64
    let checksum: UInt32
    let chain: UInt32

    fileprivate var bytes: [UInt8] { withUnsafeBytes(of: checksum.littleEndian) { Array($0) } }
  }

  private static let maxCount = 8192
  /// The records in an image: more than a member reads before it finds out that the servers lost messages.
  private static let storedCount = 128

  private var records: [Record] = []

  init() {}

  /// The last message that was read; nil if its checksum is not known.
  var mark: Mark? { records.last.map { Mark(position: $0.sequence, chain: $0.chain) } }

  /// Adds the next message. Returns false if it was read before and was another one.
  mutating func add(_ sequence: UInt64, _ checksum: UInt32) -> Bool {
    if let last = records.last, sequence <= last.sequence {
      return record(of: sequence).map { $0.checksum == checksum } ?? true
    }
    // After a start in the middle of the log, the chain is not known before the place of the image.
    guard sequence == (records.last?.sequence ?? 0) &+ 1 else { return true }
    if records.count >= Self.maxCount { records.removeFirst(Self.maxCount / 2) }
    append(sequence, checksum, after: records.last?.chain ?? 0)
    return true
  }

  private mutating func append(_ sequence: UInt64, _ checksum: UInt32, after chain: UInt32) {
    let chain = withUnsafeBytes(of: checksum.littleEndian) { CRC32C.of($0, after: chain) }
    records.append(Record(sequence: sequence, checksum: checksum, chain: chain))
  }

  private func place(of sequence: UInt64) -> Int? {
    guard let first = records.first?.sequence, sequence >= first, sequence - first < UInt64(records.count) else {
      return nil
    }
    return Int(sequence - first)
  }

  /// The record of a message; nil if there is none.
  func record(of sequence: UInt64) -> Record? { place(of: sequence).map { records[$0] } }

  /// The newest records, at most `count`, of messages that are not before `first`.
  func newest(_ count: Int = .max, first: UInt64 = 0) -> ArraySlice<Record> {
    records.suffix(count).drop { $0.sequence < first }
  }
}

// MARK: - In an image

extension LogRecords {
  /// The last message and the checksums of those before it as a JSON object.
  var text: String { ByteBuffer.text { append(to: &$0) } }

  func append(to out: inout ByteBuffer) {
    guard let last = records.last else { return out.append("{}") }
    let before = records.dropLast().suffix(Self.storedCount)
    out.append("{\"sequence\":", integer: last.sequence)
    out.append(",\"checksum\":", integer: last.checksum)
    out.append(",\"chain\":", integer: last.chain)
    if let first = before.first {
      // The checksums of the others continue the first chain.
      out.append(",\"first\":{\"checksum\":", integer: first.checksum)
      out.append(",\"chain\":", integer: first.chain)
      out.append("},\"between\":\"")
      out.append(string: Base64.encode(before.dropFirst().flatMap(\.bytes)))
      out.append(UInt8(ascii: "\""))
    }
    out.append(UInt8(ascii: "}"))
  }

  /// Reads what ``append(to:)`` wrote. Images of old versions have the last message only.
  init?(_ facts: JSONObject) {
    guard let sequence = facts.unsigned("sequence"), let (checksum, chain) = Self.sums(facts) else { return nil }
    let between = facts.string("between").flatMap(Base64.decode) ?? []
    if let first = facts.object("first").flatMap(Self.sums), sequence > UInt64(between.count / 4) &+ 1 {
      let start = sequence - UInt64(between.count / 4) - 1
      records = [Record(sequence: start, checksum: first.checksum, chain: first.chain)]
      between.withUnsafeBytes { bytes in
        for place in 0..<bytes.count / 4 {
          let checksum = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: place * 4, as: UInt32.self))
          _ = add(start + UInt64(place) + 1, checksum)
        }
      }
      _ = add(sequence, checksum)
    }
    let last = Record(sequence: sequence, checksum: checksum, chain: chain)
    if records.last != last { records = [last] }
  }

  private static func sums(_ facts: JSONObject) -> (checksum: UInt32, chain: UInt32)? {
    guard let checksum = facts.unsigned("checksum"), let chain = facts.unsigned("chain") else { return nil }
    return (UInt32(truncatingIfNeeded: checksum), UInt32(truncatingIfNeeded: chain))
  }
}
