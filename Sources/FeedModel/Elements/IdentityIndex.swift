import FeedJSON
import Glibc

/// The canonical bytes of an identity, which is a string or a number: equal identities have equal bytes.
///
/// A string is `s` and its decoded characters. An integer, however it is written, is `i` and its value. Any other number is
/// `n` and its exact value. So `1`, `1.0` and `10e-1` are the same identity, and `"1"` is another one.
enum Identity {
  /// Appends the canonical bytes. Returns false if the value is neither a string nor a number.
  static func append(_ value: JSONView, to buffer: inout ByteBuffer) -> Bool {
    switch value.kind {
    case .string:
      buffer.append(UInt8(ascii: "s"))
      value.withDecodedUTF8 { bytes in buffer.append(bytes) }
      return true
    case .number:
      if let integer = value.int {
        append(integer: integer, to: &buffer)
        return true
      }
      buffer.append(UInt8(ascii: "n"))
      JSONNumber.appendOrderedKey(of: value.text, to: &buffer)
      return true
    default:
      return false
    }
  }

  /// Appends the identity with these canonical bytes as JSON; a number in its canonical form. Returns false if there are none.
  static func appendJSON(of bytes: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) -> Bool {
    guard let kind = bytes.first else { return false }
    let value = UnsafeRawBufferPointer(rebasing: bytes[1...])
    switch kind {
    case UInt8(ascii: "s"): buffer.appendJSONString(utf8: value)
    case UInt8(ascii: "i"): buffer.append(integer: value.loadUnaligned(as: Int.self))
    default: JSONNumber.appendCanonicalText(ofKey: value, isInverted: false, to: &buffer)
    }
    return true
  }

  /// Appends the canonical bytes of an integer or a string without escapes at the beginning of a text that was not scanned. Returns
  /// false for other values. The bytes are those of `append` if the text goes on as JSON.
  static func append(probable text: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) -> Bool {
    guard let first = text.first else { return false }
    if first == UInt8(ascii: "\"") {
      guard let end = text.dropFirst().firstIndex(of: first) else { return false }
      buffer.append(UInt8(ascii: "s"))
      buffer.append(UnsafeRawBufferPointer(rebasing: text[1..<end]))
      return true
    }
    guard let end = text.firstIndex(where: { $0 &- UInt8(ascii: "0") > 9 }), end > 0,
      let integer = JSONNumber.integer(ofDigits: UnsafeRawBufferPointer(rebasing: text[..<end]))
    else { return false }
    append(integer: integer, to: &buffer)
    return true
  }

  private static func append(integer: Int, to buffer: inout ByteBuffer) {
    buffer.append(UInt8(ascii: "i"))
    withUnsafeBytes(of: integer) { buffer.append($0) }
  }

  /// Hashes the bytes with a seed that is random for each process, so that clients cannot choose colliding identities.
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

/// An index from identities to elements: a hash table with linear probing.
///
/// A word is the 32-bit hash above the handle plus one, so that a probe reads an element only if the hashes are equal.
/// Removal moves later words back, so there are no tombstones. Expected O(1); growth is amortized O(1), and happens in
/// steps if ``makeRoom(_:)`` is called before each insertion.
///
/// Invariant: `count` words are not zero, at most three quarters of all; no zero word is between a word and its home slot.
struct IdentityIndex: ~Copyable {
  private var words: UnsafeMutablePointer<UInt64>
  private var mask: Int
  private(set) var count = 0
  #if CHECK_INVARIANTS
    private var mutations = 0
  #endif

  init() {
    mask = 15
    words = .allocate(capacity: 16)
    words.initialize(repeating: 0, count: 16)
  }

  deinit {
    words.deallocate()
  }

  /// Returns an index with the same elements. O(n).
  func copy(_ pace: Pace) -> IdentityIndex {
    var copy = IdentityIndex()
    copy.words.deallocate()
    copy.words = .allocate(capacity: mask &+ 1)
    for slot in 0...mask {
      (copy.words + slot).initialize(to: words[slot])
      if slot & 1023 == 0 { pace.spend(8) }
    }
    copy.mask = mask
    copy.count = count
    return copy
  }

  /// Makes room for so many elements in an empty index, so that it does not grow at once later. O(count).
  mutating func reserve(_ count: Int, _ pace: Pace) {
    assert(self.count == 0, "the index has elements")
    var capacity = mask &+ 1
    while count &* 4 >= capacity &* 3 { capacity &*= 2 }
    if capacity > mask &+ 1 { grow(to: capacity, pace) }
  }

  /// Makes room for one more element. Lets `pace` stop meanwhile: others find the elements as before.
  @inline(__always)
  mutating func makeRoom(_ pace: Pace) {
    if count &* 4 >= (mask &+ 1) &* 3 { grow(to: (mask &+ 1) &* 2, pace) }
  }

  /// The element of `table` with this identity, if there is one.
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

  /// The address of the word at which the search for a hash begins.
  @inline(__always)
  func word(of hash: UInt32) -> UnsafePointer<UInt64> { UnsafePointer(words + (Int(hash) & mask)) }

  /// The element at which the search for a hash begins if it has that hash; otherwise `ElementTable.none`.
  @inline(__always)
  func probableElement(hash: UInt32) -> UInt32 {
    let word = words[Int(hash) & mask]
    return UInt32(truncatingIfNeeded: word >> 32) == hash && word != 0
      ? UInt32(truncatingIfNeeded: word) &- 1 : ElementTable.none
  }

  /// Inserts an element that is not in the index.
  mutating func insert(_ handle: UInt32, hash: UInt32) {
    if count &* 4 >= (mask &+ 1) &* 3 { grow(to: (mask &+ 1) &* 2, Pace()) }
    place(UInt64(hash) << 32 | UInt64(handle &+ 1))
    count &+= 1
    sampleInvariants()
  }

  /// Removes an element. It is no error if the element is not in the index.
  mutating func remove(_ handle: UInt32, hash: UInt32) {
    let word = UInt64(hash) << 32 | UInt64(handle &+ 1)
    var slot = Int(hash) & mask
    while words[slot] != word {
      if words[slot] == 0 { return }
      slot = (slot &+ 1) & mask
    }
    closeGap(at: slot)
    count &-= 1
    sampleInvariants()
  }

  @inline(__always)
  private mutating func sampleInvariants() {
    #if CHECK_INVARIANTS
      mutations &+= 1
      if mask <= 255 || mutations % 4096 == 0 { checkInvariants() }
    #endif
  }

  #if CHECK_INVARIANTS
    /// Checks the count and that each word is reachable from its home slot. O(capacity + probes).
    func checkInvariants() {
      var found = 0
      for slot in 0...mask where words[slot] != 0 {
        found += 1
        var probe = Int(words[slot] >> 32) & mask
        while probe != slot {
          precondition(words[probe] != 0, "a word of the identity index is not reachable")
          probe = (probe &+ 1) & mask
        }
      }
      precondition(found == count && count &* 4 <= (mask &+ 1) &* 3, "the count of the identity index is wrong")
    }
  #endif

  @inline(__always)
  private mutating func closeGap(at emptied: Int) {
    var gap = emptied
    var slot = (gap &+ 1) & mask
    while words[slot] != 0 {
      let home = Int(words[slot] >> 32) & mask
      // The word can move to the gap unless its home slot is cyclically after the gap.
      if (slot &- home) & mask >= (slot &- gap) & mask {
        words[gap] = words[slot]
        gap = slot
      }
      slot = (slot &+ 1) & mask
    }
    words[gap] = 0
  }

  private func place(_ word: UInt64) { Self.place(word, in: words, mask) }

  private static func place(_ word: UInt64, in words: UnsafeMutablePointer<UInt64>, _ mask: Int) {
    var slot = Int(word >> 32) & mask
    while words[slot] != 0 { slot = (slot &+ 1) & mask }
    words[slot] = word
  }

  /// Moves the words to a larger table, which replaces the present one when it is complete.
  @inline(never)
  private mutating func grow(to capacity: Int, _ pace: Pace) {
    let larger = UnsafeMutablePointer<UInt64>.allocate(capacity: capacity)
    for start in stride(from: 0, to: capacity, by: Self.slotsPerStep) {
      (larger + start).initialize(repeating: 0, count: min(Self.slotsPerStep, capacity &- start))
      pace.spend(8)
    }
    for slot in 0...mask {
      if words[slot] != 0 { Self.place(words[slot], in: larger, capacity &- 1) }
      if slot & (Self.slotsPerStep &- 1) == 0 { pace.spend(16) }
    }
    words.deallocate()
    (words, mask) = (larger, capacity &- 1)
  }

  /// The slots of a table that are filled or moved between two stops.
  private static var slotsPerStep: Int { 1024 }

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
