import FeedJSON
import Glibc

/// The canonical bytes of an identity: a string or a number of an element (PROTOCOL section 6).
///
/// Strings are their decoded characters behind an `s`; integers, however they are written, their value behind an `i`; all
/// other numbers their exact value behind an `n`. So `1`, `1.0` and `10e-1` are one identity and `"1"` is another.
enum Identity {
  /// Appends the canonical bytes; false when the value is neither a string nor a number.
  static func append(_ value: JSONView, to buffer: inout ByteBuffer) -> Bool {
    switch value.kind {
    case .string:
      buffer.append(UInt8(ascii: "s"))
      value.withDecodedUTF8 { bytes in buffer.append(bytes) }
      return true
    case .number:
      if let integer = value.int {
        buffer.append(UInt8(ascii: "i"))
        withUnsafeBytes(of: integer) { buffer.append($0) }
        return true
      }
      buffer.append(UInt8(ascii: "n"))
      JSONNumber.appendOrderedKey(of: value.text, to: &buffer)
      return true
    default:
      return false
    }
  }

  /// A hash that depends on a seed of the process, so that nobody can prepare colliding identities.
  static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt32 {
    var state = seed ^ (UInt64(truncatingIfNeeded: bytes.count) &* 0x9E37_79B9_7F4A_7C15)
    var offset = 0
    while offset &+ 8 <= bytes.count {
      state = fold(state ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self), 0xA076_1D64_78BD_642F)
      offset &+= 8
    }
    var rest: UInt64 = 0
    while offset < bytes.count {
      rest = rest << 8 | UInt64(bytes[offset])
      offset &+= 1
    }
    state = fold(state ^ rest, 0xE703_7ED1_A0B4_28DB)
    return UInt32(truncatingIfNeeded: state ^ (state >> 32))
  }

  private static func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let product = a.multipliedFullWidth(by: b)
    return product.high ^ product.low
  }
}

/// Finds an element by its identity: an open-addressing table of (hash, handle) words with linear probing.
///
/// Each word holds the 32-bit hash above the handle plus one, so that a probe reads an element only when the hashes
/// agree. Removal moves later words back, so there are no tombstones. Expected O(1); growth is O(n), amortised O(1).
struct IdentityIndex: ~Copyable {
  private var words: UnsafeMutablePointer<UInt64>
  private var mask: Int
  private(set) var count = 0

  init() {
    mask = 15
    words = .allocate(capacity: 16)
    words.initialize(repeating: 0, count: 16)
  }

  deinit {
    words.deallocate()
  }

  /// The element with this identity, if the table's elements have one.
  func find(_ identity: UnsafeRawBufferPointer, hash: UInt32, in table: ElementTable) -> UInt32? {
    var slot = Int(hash) & mask
    while words[slot] != 0 {
      let word = words[slot]
      if UInt32(truncatingIfNeeded: word >> 32) == hash {
        let handle = UInt32(truncatingIfNeeded: word) &- 1
        let other = table.records[Int(handle)].text.identity
        if other.count == identity.count, Self.equal(other, identity) { return handle }
      }
      slot = (slot &+ 1) & mask
    }
    return nil
  }

  /// Adds an element that is not in the table.
  mutating func insert(_ handle: UInt32, hash: UInt32) {
    if count &* 4 >= (mask &+ 1) &* 3 { grow() }
    place(UInt64(hash) << 32 | UInt64(handle &+ 1))
    count &+= 1
  }

  /// Takes an element out; one that is not there is left alone.
  mutating func remove(_ handle: UInt32, hash: UInt32) {
    let word = UInt64(hash) << 32 | UInt64(handle &+ 1)
    var slot = Int(hash) & mask
    while words[slot] != word {
      if words[slot] == 0 { return }
      slot = (slot &+ 1) & mask
    }
    closeGap(at: slot)
    count &-= 1
  }

  private mutating func closeGap(at emptied: Int) {
    var gap = emptied
    var slot = (gap &+ 1) & mask
    while words[slot] != 0 {
      let home = Int(words[slot] >> 32) & mask
      // The word may move back unless its home lies cyclically after the gap.
      if (slot &- home) & mask >= (slot &- gap) & mask {
        words[gap] = words[slot]
        gap = slot
      }
      slot = (slot &+ 1) & mask
    }
    words[gap] = 0
  }

  private func place(_ word: UInt64) {
    var slot = Int(word >> 32) & mask
    while words[slot] != 0 { slot = (slot &+ 1) & mask }
    words[slot] = word
  }

  private mutating func grow() {
    let (old, oldCapacity) = (words, mask &+ 1)
    mask = oldCapacity &* 2 &- 1
    words = .allocate(capacity: mask &+ 1)
    words.initialize(repeating: 0, count: mask &+ 1)
    for slot in 0..<oldCapacity where old[slot] != 0 { place(old[slot]) }
    old.deallocate()
  }

  private static func equal(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    guard a.count > 0, let x = a.baseAddress, let y = b.baseAddress else { return a.count == b.count }
    return memcmp(x, y, a.count) == 0
  }
}

extension JSONKind {
  /// The kind with its article, for error messages.
  var name: String {
    switch self {
    case .null: "null"
    case .false, .true: "a boolean"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}
