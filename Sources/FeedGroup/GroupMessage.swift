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

  /// Returns the message with its payload.
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
