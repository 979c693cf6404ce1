import FeedChange
import FeedJSON

/// The recent changes of a feed as an image stores them, in rows of 32-bit words, all little-endian (Protocol/storage.md).
///
/// A row is a head and the words of ``WordRing`` with the stamps of ``History``, as they are in memory: an image copies them. The
/// head is two zeros, then the revision before the first record and its time in nanoseconds, two words each.
///
/// Images of schema 3 and before have rows of another form: the revision after each change, which is not zero, its time, two
/// words each, the number of words of the change, and these in the form of ``StoredChange``.
public enum HistoryRecords {
  static let headLength = 24
  /// The bytes of a record of the older form before its change.
  private static let plainHeadLength = 20

  static func appendHead(revision: UInt64, at time: UInt64, to out: inout ByteBuffer) {
    for number in [0, revision, time] as [UInt64] { out.append(littleEndian: number) }
  }

  /// Reads all records of a row; nil if it is not whole. The bytes may be anything.
  public static func read(_ bytes: UnsafeRawBufferPointer) -> [HistoryDump.Record]? {
    guard bytes.count >= headLength, number(in: bytes, at: 0) == 0 else { return readPlain(bytes) }
    guard bytes.count % 4 == 0 else { return nil }
    var words = WordRing()
    let count = (bytes.count - headLength) / 4
    words.reserve(count)
    for index in 0..<count { words.append(word(in: bytes, at: headLength + index * 4)) }
    return History.records(in: words, after: number(in: bytes, at: 8), at: number(in: bytes, at: 16))
  }

  private static func readPlain(_ bytes: UnsafeRawBufferPointer) -> [HistoryDump.Record]? {
    var records: [HistoryDump.Record] = []
    var offset = 0
    while offset < bytes.count {
      guard bytes.count - offset >= plainHeadLength else { return nil }
      let (to, at) = (number(in: bytes, at: offset), number(in: bytes, at: offset + 8))
      let count = Int(word(in: bytes, at: offset + 16))
      offset += plainHeadLength
      guard (bytes.count - offset) / 4 >= count else { return nil }
      let words = (0..<count).map { word(in: bytes, at: offset + $0 * 4) }
      offset += count * 4
      guard let change = StoredChange.change(words) else { return nil }
      records.append(.init(to: to, at: Instant(nanoseconds: at), change: change))
    }
    return records
  }

  private static func number(in bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  private static func word(in bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt32 {
    UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
}

extension ByteBuffer {
  /// Appends a number for which there is room.
  @inline(__always)
  mutating func append(littleEndian number: some FixedWidthInteger) {
    let place = UnsafeMutableRawPointer(pointer) + count
    place.storeBytes(of: number.littleEndian, as: type(of: number.littleEndian))
    didWrite(MemoryLayout.size(ofValue: number))
  }
}

/// A change in plain form, as images of older schemas store it, as 32-bit words: the numbers of deleted, added and updated rows, of moves, and of
/// deleted and added sections; then these lists. A row is its section and its row; a move is the indexes of its two rows; an
/// added section is its index, the bytes of its name and each of these.
enum StoredChange {
  /// The bit of a move's second word for `Move.keepsElement`. A change never lists 2^31 rows.
  static let keepsElement: UInt32 = 1 << 31
  /// The bit of the length of a name for a section by value.
  static let namedByValue: UInt32 = 1 << 30

  static func move(_ deleted: UInt32, _ added: UInt32) -> Move {
    Move(deleted: deleted, added: added & ~keepsElement, keepsElement: added & keepsElement != 0)
  }

  /// Reads a change; nil if the words are not exactly one, by its counts.
  static func change(_ words: [UInt32]) -> Change? {
    guard isOneChange(words) else { return nil }
    var place = 6
    func next() -> UInt32 {
      place += 1
      return words[place - 1]
    }
    func paths(_ count: UInt32) -> [IndexPath] {
      (0..<count).map { _ in
        let section = next()
        return IndexPath(section: section, row: next())
      }
    }
    var change = Change()
    change.deleted = paths(words[0])
    change.added = paths(words[1])
    change.updated = paths(words[2])
    change.moves = (0..<words[3]).map { _ in
      let deleted = next()
      return move(deleted, next())
    }
    change.sectionsDeleted = (0..<words[4]).map { _ in next() }
    change.sectionsAdded = (0..<words[5]).map { _ in
      let (at, head) = (next(), next())
      let name = (0..<head & ~namedByValue).map { _ in UInt8(truncatingIfNeeded: next()) }
      return name.withUnsafeBytes { SectionAddition(at: at, name: $0, isByValue: head & namedByValue != 0) }
    }
    return change
  }

  private static func isOneChange(_ words: [UInt32]) -> Bool {
    guard words.count >= 6 else { return false }
    var place = 6 + words[0..<4].reduce(0) { $0 + Int($1) * 2 } + Int(words[4])
    for _ in 0..<Int(words[5]) {
      guard place + 1 < words.count else { return false }
      place += 2 + Int(words[place + 1] & ~namedByValue)
    }
    return place == words.count
  }
}
