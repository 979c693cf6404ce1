import FeedJSON
import FeedSystem

/// Compares what this member has read with what the other members have read, and with what the servers have.
///
/// Servers that crash together may lose messages that members have executed, and store others in their places. Then members have
/// different logs, and those that have not what the servers have now must begin again:
///
/// - Every message tells the place up to which its member had read, and the checksum of all messages up to there
///   (``LogRecords/Mark``). If no message tells that of the newest one for a few seconds, a member sends one more.
/// - A member that has read something else compares its records with the messages of the servers, the last ones first.
/// - A member that has read as much as the servers have compares the last message, whenever that is another one.
struct LogAudit {
  /// What a message of the servers tells.
  enum Finding {
    case nothing
    /// Another one was read in its place.
    case difference
    /// Another member has read something else, and this one what the servers have.
    case agreement
  }

  /// Requests for messages at once, and the messages that a comparison looks at.
  private static let window = 16
  private static let depth = 2048
  /// Nanoseconds without an answer after which the servers are asked again.
  private static let patience = 2 * second
  /// Nanoseconds between two comparisons because of other members: more than members wait for each other's digests.
  private static let disputePause = 15 * second
  /// Nanoseconds for which the next message is awaited, before one is sent that only tells what was read.
  private static let silence = 2 * second

  private let settings: GroupSettings
  private let inbox: String
  private let transport: any GroupTransport
  /// The records that are still to be compared, as far as they were not asked for, and those that were.
  private var left: ArraySlice<LogRecords.Record> = []
  private var asked: Set<UInt64> = []
  private var askedAt: UInt64 = 0
  /// The end of the stream whose last message was compared.
  private var comparedEnd: StreamState.End?
  /// Whether another member has read something else and the records were not compared since, and when they may be again.
  private var isDue = false
  private var dueAt: UInt64 = 0
  /// Whether the comparison under way is because of that.
  private var isUnderWay = false
  /// The newest message that may have an effect, and the newest one that a member told to have read.
  private var newest: UInt64 = 0
  private var told: UInt64 = 0
  /// When the newest message was read, or a message that tells of it was sent.
  private var toldAt: UInt64 = 0

  init(_ settings: GroupSettings, inbox: String, _ transport: any GroupTransport) {
    (self.settings, self.inbox, self.transport) = (settings, inbox, transport)
  }

  // MARK: The other members

  /// Looks at what a message tells of what its member had read.
  mutating func compare(_ message: GroupMessage, at sequence: UInt64, _ records: LogRecords, now: UInt64) {
    if message.number != 0 { (newest, toldAt) = (sequence, now) }
    guard let mark = message.mark else { return }
    // A member that has read this place before the message was stored has read another one there.
    guard mark.position < sequence else { return dispute() }
    told = max(told, mark.position)
    if let record = records.record(of: mark.position), record.chain != mark.chain { dispute() }
  }

  /// Lets the records be compared with the messages of the servers.
  mutating func dispute() { isDue = true }

  /// Whether another member has read something else. Which of the two the servers have is still to be found out.
  var isDisputed: Bool { isDue || isUnderWay }

  /// Begins to compare the records with the messages of the servers if another member has read something else. Returns whether it is
  /// to be told what this one has read.
  /// - Parameter first: the first message of the stream.
  mutating func beginDispute(_ records: LogRecords, first: UInt64, now: UInt64) -> Bool {
    guard isDue, !isComparing, now >= dueAt else { return false }
    isDue = false
    dueAt = now &+ Self.disputePause
    compare(records.newest(Self.depth, first: first), now)
    isUnderWay = isComparing
    return true
  }

  /// Whether this member should tell what it has read, because the newest message is not followed by one that does.
  /// - Parameter rank: the number of members that do so before it.
  mutating func isTellingDue(_ records: LogRecords, rank: UInt64, now: UInt64) -> Bool {
    guard newest > told, records.mark != nil, now &- toldAt >= Self.silence &+ rank &* second else { return false }
    toldAt = now
    return true
  }

  // MARK: The servers

  var isComparing: Bool { !asked.isEmpty }

  /// Begins to compare the last message, instead of others. Returns false if its checksum is not known.
  mutating func compareLast(_ records: LogRecords, first: UInt64, now: UInt64) -> Bool {
    if isUnderWay { (isDue, isUnderWay) = (true, false) }
    (left, asked) = ([], [])
    compare(records.newest(1, first: first), now)
    return isComparing
  }

  /// Compares the last message if the servers have one that was not compared yet.
  mutating func compare(_ records: LogRecords, _ end: StreamState.End, now: UInt64) {
    if isComparing || end == comparedEnd || records.mark?.position != end.sequence { return }
    comparedEnd = end
    compare(records.newest(1), now)
  }

  private mutating func compare(_ records: ArraySlice<LogRecords.Record>, _ now: UInt64) {
    left = records
    ask(now)
  }

  private mutating func ask(_ now: UInt64) {
    while asked.count < Self.window, let record = left.popLast() {
      asked.insert(record.sequence)
      ask(for: record.sequence, now)
    }
  }

  private mutating func ask(for sequence: UInt64, _ now: UInt64) {
    askedAt = now
    transport.request(JetStream.message(settings.stream), reply: "\(inbox).audit.\(sequence)", "{\"seq\":\(sequence)}")
  }

  mutating func receive(_ answer: JSONObject?, _ sequence: UInt64, _ records: LogRecords, now: UInt64) -> Finding {
    guard asked.contains(sequence) else { return .nothing }
    if let checksum = JetStream.checksum(answer) {
      if let record = records.record(of: sequence), record.checksum != checksum { return .difference }
    } else if JetStream.failure(answer)?.error != JetStream.Failure.messageNotFound {
      // It is asked for again. One that is gone was trimmed.
      return .nothing
    }
    asked.remove(sequence)
    ask(now)
    guard isUnderWay, !isComparing else { return .nothing }
    isUnderWay = false
    return .agreement
  }

  /// Asks the servers again if they do not answer.
  mutating func attend(_ now: UInt64) {
    if isComparing && now &- askedAt > Self.patience { for sequence in asked { ask(for: sequence, now) } }
  }
}

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

  func record(of sequence: UInt64) -> Record? { place(of: sequence).map { records[$0] } }

  /// The newest records, at most `count`, of messages that are not before `first`.
  func newest(_ count: Int = .max, first: UInt64 = 0) -> ArraySlice<Record> {
    records.suffix(count).drop { $0.sequence < first }
  }
}

// MARK: - In an image

extension LogRecords {
  /// The last message and the checksums of those before it as a JSON object.
  var text: String {
    guard let last = records.last else { return "{}" }
    let before = records.dropLast().suffix(Self.storedCount)
    // The checksums of the others continue the first chain.
    let others = before.first.map { first in
      ",\"first\":{\"checksum\":\(first.checksum),\"chain\":\(first.chain)},"
        + "\"between\":\"\(Base64.encode(before.dropFirst().flatMap(\.bytes)))\""
    }
    return "{\"sequence\":\(last.sequence),\"checksum\":\(last.checksum),\"chain\":\(last.chain)\(others ?? "")}"
  }

  /// Reads ``text``. Images of old versions have the last message only.
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
