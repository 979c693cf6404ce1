import FeedJSON
import FeedSystem

/// A message of a group's log (Protocol/groups.md, "Messages"): a header of 80 bytes and a payload.
///
/// Numbers are little-endian.
struct GroupMessage: Equatable {
  enum Kind: UInt32 {
    /// A part of a batch of requests.
    case batch = 1
    /// A member begins to number its messages, from this one on.
    case join = 2
    case leave = 3
    /// All members compute the digest of the state at this place.
    case mark = 4
    /// The digest that a member computed.
    case digest = 5
    /// An image of the state was published.
    case image = 6
    /// The feeds that the configuration of a host defines.
    case configured = 7
  }

  static let byteCount = 80
  static let version: UInt32 = 1
  /// The maximum bytes of requests in one message.
  static let maxPayload = 512 << 10
  private static let magic: [UInt8] = Array("feeddgrp".utf8)

  let kind: Kind
  /// A random number of the member. Each start and each refused batch gives it a new one.
  let origin: UInt64
  /// The number of the message among those of its origin, from 1 on.
  let number: UInt64
  /// The time of the batch by the member's clock, in nanoseconds since 1970.
  let time: UInt64
  /// The time by the stream's clock after which the message has no effect; 0 for none.
  let deadline: UInt64
  /// Whether it is the last part of its batch.
  let isLast: Bool
  /// How often its member had to send it anew because it had no effect. The messages of one round are sent in order.
  let round: UInt32
  /// What its member had read when it sent it; nil if that is not known.
  let mark: LogRecords.Mark?

  /// What is wrong with the bytes of a message.
  enum Flaw: Error, Equatable {
    /// Another program wrote it, or it is damaged.
    case foreign
    /// A member of another version wrote it.
    case version(UInt32)
    case kind(UInt32)
  }

  func encoded(_ payload: UnsafeRawBufferPointer) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Self.byteCount + payload.count) { out, count in
      let bytes = UnsafeMutableRawBufferPointer(out)
      bytes.copyBytes(from: Self.magic)
      func store<Number: FixedWidthInteger>(_ value: Number, at offset: Int) {
        bytes.storeBytes(of: value.littleEndian, toByteOffset: offset, as: Number.self)
      }
      store(Self.version, at: 8)
      store(kind.rawValue, at: 12)
      store(origin, at: 16)
      store(number, at: 24)
      store(time, at: 32)
      store(deadline, at: 40)
      store(round &<< 1 | (isLast ? 1 : 0), at: 48)
      store(UInt32(truncatingIfNeeded: payload.count), at: 52)
      store(CRC32C.of(payload), at: 56)
      store(mark?.chain ?? 0, at: 60)
      store(mark?.position ?? 0, at: 64)
      store(UInt32(0), at: 72)
      store(CRC32C.of(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[..<76])), at: 76)
      if payload.count > 0 {
        UnsafeMutableRawBufferPointer(rebasing: bytes[Self.byteCount...]).copyMemory(from: payload)
      }
      count = Self.byteCount + payload.count
    }
  }

  init(
    _ kind: Kind, origin: UInt64, number: UInt64, time: UInt64, deadline: UInt64 = 0, isLast: Bool = true,
    round: UInt32 = 0, mark: LogRecords.Mark? = nil
  ) {
    (self.kind, self.origin, self.number) = (kind, origin, number)
    (self.time, self.deadline, self.isLast) = (time, deadline, isLast)
    self.round = round & UInt32.max &>> 1
    self.mark = mark
  }

  /// A checksum of the bytes of any message of the stream, by which two copies of the log are compared.
  static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
    // That of the header covers the payload too.
    bytes.count < byteCount
      ? CRC32C.of(bytes) : UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 76, as: UInt32.self))
  }

  /// Parses and verifies the bytes of a message. Returns it with its payload.
  static func parse(
    _ bytes: UnsafeRawBufferPointer
  ) throws(Flaw) -> (message: GroupMessage, payload: UnsafeRawBufferPointer) {
    guard bytes.count >= byteCount, bytes.prefix(8).elementsEqual(magic) else { throw .foreign }
    func load<Number: FixedWidthInteger>(_ offset: Int, _ type: Number.Type) -> Number {
      Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: type))
    }
    guard load(76, UInt32.self) == CRC32C.of(UnsafeRawBufferPointer(rebasing: bytes[..<76])) else { throw .foreign }
    guard load(8, UInt32.self) == version else { throw .version(load(8, UInt32.self)) }
    let payload = UnsafeRawBufferPointer(rebasing: bytes[byteCount...])
    guard payload.count == Int(load(52, UInt32.self)), CRC32C.of(payload) == load(56, UInt32.self) else {
      throw .foreign
    }
    guard let kind = Kind(rawValue: load(12, UInt32.self)) else { throw .kind(load(12, UInt32.self)) }
    let message = GroupMessage(
      kind, origin: load(16, UInt64.self), number: load(24, UInt64.self), time: load(32, UInt64.self),
      deadline: load(40, UInt64.self), isLast: load(48, UInt32.self) & 1 == 1,
      round: load(48, UInt32.self) &>> 1,
      mark: load(64, UInt64.self) == 0
        ? nil : LogRecords.Mark(position: load(64, UInt64.self), chain: load(60, UInt32.self)))
    return (message, payload)
  }
}

/// The messages of this member that it has not seen in the stream yet, in the order of their numbers.
///
/// Invariant: the numbers of the messages are consecutive and end before `nextNumber`.
struct Outgoing {
  struct Message {
    let number: UInt64
    let kind: GroupMessage.Kind
    /// Parts of the message as sent, without the deadline that is set when it is sent.
    let payload: [UInt8]
    let time: UInt64
    let isLast: Bool
    /// The number of the batch that ends with this message; nil for others.
    let batch: UInt64?
    /// The monotonic time at which the batch is refused; nil for others.
    let deadline: UInt64?
    /// What the server knows the message by. A retry after a lost acknowledgement has the same; after the message had no effect,
    /// it has another one.
    var identity: UInt64
    /// How often it had no effect; part of the message.
    var round: UInt32 = 0
    /// The monotonic time at which it was last sent; 0 if it was not.
    var sentAt: UInt64 = 0
    /// How often it was given to a connection.
    var sendings = 0
    /// The place where a server has stored it, and when it said so; nil if none did.
    var stored: (place: UInt64, at: UInt64)?
  }

  private(set) var messages: [Message] = []
  private(set) var nextNumber: UInt64 = 1
  private var identities: UInt64 = 0

  var isEmpty: Bool { messages.isEmpty }
  /// The monotonic time at which the oldest batch is refused that no server acknowledged. One that is stored is awaited.
  var deadline: UInt64? { messages.first { $0.deadline != nil && $0.stored == nil }?.deadline }

  mutating func add(
    _ kind: GroupMessage.Kind, _ payload: [UInt8], time: UInt64, isLast: Bool = true, batch: UInt64? = nil,
    deadline: UInt64? = nil
  ) {
    identities += 1
    messages.append(
      Message(
        number: nextNumber, kind: kind, payload: payload, time: time, isLast: isLast, batch: batch, deadline: deadline,
        identity: identities))
    nextNumber += 1
  }

  /// Adds a message that was never sent, with another number.
  mutating func add(again message: Message) {
    add(
      message.kind, message.payload, time: message.time, isLast: message.isLast, batch: message.batch,
      deadline: message.deadline)
  }

  /// The place of the message with a number; nil if there is none.
  private func place(of number: UInt64) -> Int? {
    guard let first = messages.first?.number, number >= first, number < nextNumber else { return nil }
    return Int(number - first)
  }

  /// The messages to send now: those that were not sent since `time`.
  func unsent(since time: UInt64) -> [Int] {
    messages.indices.filter { place in
      let message = messages[place]
      return message.stored == nil && (message.sentAt < time || message.sendings == 0)
    }
  }

  mutating func didSend(_ place: Int, at time: UInt64) {
    messages[place].sentAt = time
    messages[place].sendings += 1
  }

  mutating func didAcknowledge(_ identity: UInt64, storedAt sequence: UInt64, now: UInt64) {
    guard let place = messages.firstIndex(where: { $0.identity == identity }) else { return }
    messages[place].stored = (sequence, now)
  }

  func message(identity: UInt64) -> Message? { messages.first { $0.identity == identity } }

  /// Removes the messages up to a number, which had their effect. Returns the one with the number.
  mutating func resolve(through number: UInt64) -> Message? {
    guard let place = place(of: number) else { return nil }
    let message = messages[place]
    messages.removeSubrange(...place)
    return message
  }

  /// Lets the messages from a number on be sent again as new ones, because one of them had no effect. Returns false if they were
  /// renewed since it was sent: messages of a former round arrive late, and each of them would lead to another round.
  /// - Parameters:
  ///   - number: the first one that the stream has not.
  ///   - failed: the number of the one that had no effect, and its round.
  mutating func renew(from number: UInt64, failed: (number: UInt64, round: UInt32)) -> Bool {
    guard let first = place(of: number) ?? (messages.first.map { $0.number > number } == true ? 0 : nil) else {
      return false
    }
    if let place = place(of: failed.number), messages[place].round != failed.round { return false }
    for place in messages.indices.dropFirst(first) {
      identities += 1
      messages[place].round &+= 1
      messages[place].identity = identities
      messages[place].sentAt = 0
      messages[place].stored = nil
    }
    return true
  }

  /// Lets all messages be sent again at once, with the same identity: a new connection may have lost them.
  mutating func retryAll() { for place in messages.indices { messages[place].sentAt = 0 } }

  mutating func removeAll() {
    messages.removeAll()
    nextNumber = 1
  }
}
