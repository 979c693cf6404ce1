import FeedJSON
import FeedSystem

/// The checksums of the messages that were read last, by which a member notices that it and the servers have different logs.
///
/// Servers that crash together may lose messages that members have executed, and store others in their places. Every message of a
/// member tells the place up to which that had read, and the checksum of all messages up to there (``Mark``). If this one differs,
/// the messages of the servers are compared with those that were read, backwards from there: the member whose messages differ has
/// another log. Before a member follows the stream, it compares the last message.
///
/// Invariant: the records are in the order of the stream.
struct LogAudit {
  /// A place in the log, and the checksum of all messages up to it.
  struct Mark: Equatable {
    let position: UInt64
    let chain: UInt32
  }

  private struct Record {
    let sequence: UInt64
    let checksum: UInt32
    let chain: UInt32
  }

  private static let maxRecords = 8192
  /// Requests for messages at once, and the messages that one comparison looks at.
  private static let window = 16
  private static let depth = 2048

  private let settings: GroupSettings
  private let inbox: String
  private let transport: any GroupTransport
  private var records: [Record] = []
  /// The records that are still to be compared, as far as they were not asked for, and those that were.
  private var left: ArraySlice<Record> = []
  private var asked: Set<UInt64> = []
  private var askedAt: UInt64 = 0

  /// - Parameter tail: the last message that was read, its checksum and that of all; nil if they are not known.
  init(_ settings: GroupSettings, inbox: String, _ transport: any GroupTransport, tail: MemberTable.Tail?) {
    (self.settings, self.inbox, self.transport) = (settings, inbox, transport)
    if let tail { records = [Record(sequence: tail.sequence, checksum: tail.checksum, chain: tail.chain)] }
  }

  /// The last message that was read; nil if its checksum is not known.
  var mark: Mark? { records.last.map { Mark(position: $0.sequence, chain: $0.chain) } }

  /// The checksum of all messages up to a place, given that up to the message before it.
  static func chain(_ checksum: UInt32, after chain: UInt32) -> UInt32 {
    withUnsafeBytes(of: checksum.littleEndian) { CRC32C.of($0, after: chain) }
  }

  /// Records the next message. Returns false if it was read before and was another one.
  mutating func read(_ sequence: UInt64, _ checksum: UInt32) -> Bool {
    guard let last = records.last, last.sequence >= sequence else {
      // After a start in the middle of the log, the chain is not known before the place of the image.
      if records.last.map({ $0.sequence &+ 1 != sequence }) ?? (sequence != 1) { return true }
      if records.count >= Self.maxRecords { records.removeFirst(Self.maxRecords / 2) }
      records.append(
        Record(
          sequence: sequence, checksum: checksum, chain: Self.chain(checksum, after: records.last?.chain ?? 0)))
      return true
    }
    return place(of: sequence).map { records[$0].checksum == checksum } ?? true
  }

  private func place(of sequence: UInt64) -> Int? {
    guard let first = records.first?.sequence, sequence >= first, sequence - first < UInt64(records.count) else {
      return nil
    }
    return Int(sequence - first)
  }

  // MARK: Comparing

  /// Whether another member has read the same messages as this one, as far as that is known.
  func agrees(with mark: Mark) -> Bool {
    place(of: mark.position).map { records[$0].chain == mark.chain } ?? true
  }

  var isComparing: Bool { !asked.isEmpty }

  /// Begins to compare the messages up to a place with those of the servers, unless that is under way.
  /// - Parameters:
  ///   - first: the first message of the stream.
  ///   - depth: the messages to compare, at most.
  mutating func compare(upTo position: UInt64, first: UInt64, depth: Int = Self.depth, now: UInt64) {
    guard !isComparing, let place = place(of: position) else { return }
    left = records[max(0, place + 1 - depth)...place].drop { $0.sequence < first }
    ask(now)
  }

  /// Begins to compare the last message. Returns false if its checksum is not known.
  mutating func compareLast(next: UInt64, first: UInt64, now: UInt64) -> Bool {
    (left, asked) = ([], [])
    guard let last = records.last?.sequence, last == next &- 1 else { return false }
    compare(upTo: last, first: first, depth: 1, now: now)
    return isComparing
  }

  private mutating func ask(_ now: UInt64) {
    while asked.count < Self.window, let record = left.popLast() {
      asked.insert(record.sequence)
      askedAt = now
      transport.request(
        JetStream.message(settings.stream), reply: "\(inbox).audit.\(record.sequence)", "{\"seq\":\(record.sequence)}")
    }
  }

  /// Handles a message of the servers. Returns false if another one was read in its place.
  mutating func receive(_ answer: JSONObject?, _ sequence: UInt64, now: UInt64) -> Bool {
    guard asked.remove(sequence) != nil, let place = place(of: sequence) else { return true }
    // A message that is gone was trimmed.
    let bytes = answer?.object("message")?.string("data").flatMap(Base64.decode)
    if let bytes, bytes.withUnsafeBytes(GroupMessage.checksum) != records[place].checksum { return false }
    ask(now)
    return true
  }

  /// Gives a comparison up whose answers do not come.
  mutating func attend(_ now: UInt64) {
    if isComparing && now &- askedAt > 2_000_000_000 { (left, asked) = ([], []) }
  }
}
