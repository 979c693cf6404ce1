import CProcessor
import FeedJSON
import Glibc

/// The canonical bytes of an identity, which is a string or a number: equal identities have equal bytes.
///
/// A string is `s` and its decoded characters. An integer, however it is written, is `i` and its value. Any other number is
/// `n` and its exact value. So `1`, `1.0` and `10e-1` are the same identity, and `"1"` is another one.
enum Identity {
  /// The first byte of the canonical bytes of a string, an integer, and any other number.
  static var string: UInt8 { UInt8(ascii: "s") }
  static var integer: UInt8 { UInt8(ascii: "i") }
  private static var number: UInt8 { UInt8(ascii: "n") }

  /// The number of canonical bytes of an integer.
  static var lengthOfInteger: Int { 9 }

  /// Appends the canonical bytes. Returns false if the value is neither a string nor a number.
  static func append(_ value: JSONView, to buffer: inout ByteBuffer) -> Bool {
    switch value.kind {
    case .string:
      buffer.append(string)
      value.withDecodedUTF8 { bytes in buffer.append(bytes) }
      return true
    case .number:
      if let integer = value.int {
        append(integer: integer, to: &buffer)
        return true
      }
      buffer.append(number)
      JSONNumber.appendOrderedKey(of: value.text, to: &buffer)
      return true
    default:
      return false
    }
  }

  /// Whether a value is certainly the identity of no element of at most `bytes` bytes. The value may be much longer than these: it is
  /// not decoded, but the digits of a number are counted.
  @inline(__always)
  static func isTooLong(_ value: JSONView, forElementsOf bytes: Int) -> Bool {
    value.text.count > shortText && isLong(value, forElementsOf: bytes)
  }

  @inline(never)
  private static func isLong(_ value: JSONView, forElementsOf bytes: Int) -> Bool {
    switch value.kind {
    // No escape has more than six bytes for each byte that it decodes to, and an element has no fewer bytes than its identity.
    case .string: (value.text.count - 2) / (value.hasEscapes ? 6 : 1) > bytes
    case .number: JSONNumber(value.text).digitCount > bytes
    default: false
    }
  }

  /// The bytes of a value that takes no time to decode.
  private static let shortText = 4096

  /// Appends the identity with these canonical bytes as JSON; a number in its canonical form. Returns false if there are none.
  static func appendJSON(of bytes: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) -> Bool {
    guard let kind = bytes.first else { return false }
    let value = UnsafeRawBufferPointer(rebasing: bytes[1...])
    switch kind {
    case string: buffer.appendJSONString(utf8: value)
    case integer: buffer.append(integer: value.loadUnaligned(as: Int.self))
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
      buffer.append(string)
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
    buffer.reserve(lengthOfInteger)
    let place = UnsafeMutableRawPointer(buffer.pointer + buffer.count)
    place.storeBytes(of: Self.integer, as: UInt8.self)
    (place + 1).storeBytes(of: integer, as: Int.self)
    buffer.didWrite(lengthOfInteger)
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

/// Identities that are read from the text of their element: the bytes from the beginning of an integer of at most 18 digits,
/// or of a string without escapes, to the end of the text, which is not the end of the value.
extension Identity {
  @inline(__always)
  static func isSpelledString(_ text: UnsafeRawBufferPointer) -> Bool { text[0] == UInt8(ascii: "\"") }

  /// The number of bytes between the quotes of a string.
  @inline(__always)
  static func lengthOfSpelledString(_ text: UnsafeRawBufferPointer) -> Int {
    guard let start = text.baseAddress, let end = memchr(start + 1, Int32(UInt8(ascii: "\"")), text.count &- 1) else {
      preconditionFailure("the identity of an element has no end")
    }
    return UnsafeRawPointer(end) - start &- 1
  }

  /// Whether the identity has these canonical bytes.
  @inline(__always)
  static func isSpelled(_ identity: UnsafeRawBufferPointer, at text: UnsafeRawBufferPointer) -> Bool {
    guard let start = text.baseAddress, let other = identity.baseAddress, let kind = identity.first else {
      return false
    }
    if isSpelledString(text) {
      let length = lengthOfSpelledString(text)
      return kind == string && identity.count == length &+ 1 && memcmp(start + 1, other + 1, length) == 0
    }
    return kind == integer && value(ofInteger: identity) == spelledInteger(text)
  }

  /// Copies the canonical bytes of the identity, all of which have room.
  static func copySpelled(_ text: UnsafeRawBufferPointer, to bytes: UnsafeMutableRawBufferPointer) {
    if isSpelledString(text) {
      bytes[0] = string
      UnsafeMutableRawBufferPointer(rebasing: bytes[1...])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: text[1..<bytes.count]))
    } else {
      bytes[0] = integer
      bytes.storeBytes(of: spelledInteger(text), toByteOffset: 1, as: Int.self)
    }
  }

  @inline(__always)
  private static func value(ofInteger identity: UnsafeRawBufferPointer) -> Int {
    identity.loadUnaligned(fromByteOffset: 1, as: Int.self)
  }

  @inline(__always)
  private static func spelledInteger(_ text: UnsafeRawBufferPointer) -> Int {
    guard let value = JSONNumber.leadingInteger(of: text) else {
      preconditionFailure("the identity of an element is not an integer")
    }
    return value
  }
}

/// An index from identities to elements: a hash table with linear probing.
///
/// A word is the 32-bit hash above the handle plus one, so that a probe reads an element only if the hashes are equal.
/// Removal moves later words back, so there are no tombstones. Expected O(1); growth is amortized O(1), and happens in
/// steps if ``makeRoom(_:)`` is called before each insertion. The table grows by a fifth or a quarter, and words keep their
/// order then, so that it is read and written from one end to the other.
///
/// Invariant: `count` words are not zero, at most four fifths of all; no zero word is between a word and its home slot.
struct IdentityIndex: ~Copyable {
  private var words: UnsafeMutablePointer<UInt64>
  /// The number of words. At least one of them is zero.
  private var capacity: Int
  private(set) var count = 0
  #if CHECK_INVARIANTS
    private var mutations = 0
  #endif

  init() {
    capacity = Self.least
    words = .allocate(capacity: capacity)
    words.initialize(repeating: 0, count: capacity)
  }

  /// Creates an index whose words are not initialized.
  private init(capacity: Int) {
    self.capacity = capacity
    words = .allocate(capacity: capacity)
  }

  deinit { words.deallocate() }

  private static var least: Int { 16 }

  /// The capacity for so many elements: 4, 5, 6 or 7 times a power of two.
  private static func capacity(for count: Int) -> Int {
    let wanted = max(least, count / 4 &* 5 &+ 5)
    let unit = 1 << (Int.bitWidth &- wanted.leadingZeroBitCount &- 3)
    return (wanted &+ unit &- 1) & ~(unit &- 1)
  }

  /// The slot at which the search for a hash begins. Ascends with the hash.
  @inline(__always)
  private func home(_ hash: UInt32) -> Int { (Int(hash) &* capacity) &>> 32 }
  private static func hash(of word: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: word >> 32) }

  @inline(__always)
  private func slot(after slot: Int) -> Int { slot &+ 1 == capacity ? 0 : slot &+ 1 }
  var byteCount: Int { capacity &* MemoryLayout<UInt64>.stride }

  /// Whether another element needs a larger table.
  private var isFull: Bool { count &* 5 >= capacity &* 4 }

  /// Returns an index with the same elements. O(n).
  func copy(_ pace: Pace) -> IdentityIndex {
    var copy = IdentityIndex()
    copy.words.deallocate()
    copy.words = .allocate(capacity: capacity)
    for slot in 0..<capacity {
      (copy.words + slot).initialize(to: words[slot])
      if slot & 1023 == 0 { pace.spend(8) }
    }
    copy.capacity = capacity
    copy.count = count
    return copy
  }

  mutating func reserve(_ count: Int, _ pace: Pace) {
    let wanted = Self.capacity(for: count)
    if wanted > capacity { grow(to: wanted, pace) }
  }

  /// Makes room for one more element. Lets `pace` stop meanwhile: others find the elements as before.
  @inline(__always)
  mutating func makeRoom(_ pace: Pace) { if isFull { grow(to: Self.capacity(for: count &+ 1), pace) } }

  /// The element of `table` with this identity, if there is one.
  func find(_ identity: UnsafeRawBufferPointer, hash: UInt32, in table: ElementTable) -> UInt32? {
    var slot = home(hash)
    while words[slot] != 0 {
      let word = words[slot]
      if UInt32(truncatingIfNeeded: word >> 32) == hash {
        let handle = UInt32(truncatingIfNeeded: word) &- 1
        if table.text(of: handle).hasIdentity(identity) { return handle }
      }
      slot = self.slot(after: slot)
    }
    return nil
  }

  /// Brings near the words at which the search for a hash begins.
  @inline(__always)
  func prefetch(hash: UInt32) {
    let word = UnsafeRawPointer(words + home(hash))
    processor_prefetch(word)
    // Often the same line of the cache.
    processor_prefetch(word + 32)
  }

  /// The number of slots that are looked at for a probable element. Most elements are less far from their home slot.
  private static var slotsNearby: Int { 8 }

  /// The first element near the home slot of a hash that has that hash; `ElementTable.none` if there is none.
  @inline(__always)
  func probableElement(hash: UInt32) -> UInt32 {
    var slot = home(hash)
    for _ in 0..<Self.slotsNearby {
      let word = words[slot]
      if word == 0 { break }
      if Self.hash(of: word) == hash { return UInt32(truncatingIfNeeded: word) &- 1 }
      slot = self.slot(after: slot)
    }
    return ElementTable.none
  }

  /// Inserts an element that is not in the index. Amortized O(1).
  mutating func insert(_ handle: UInt32, hash: UInt32) {
    if isFull { grow(to: Self.capacity(for: count &+ 1), Pace()) }
    let word = UInt64(hash) << 32 | UInt64(handle &+ 1)
    var slot = home(hash)
    while words[slot] != 0 { slot = self.slot(after: slot) }
    words[slot] = word
    count &+= 1
    sampleInvariants()
  }

  /// Removes an element. It is no error if the element is not in the index.
  mutating func remove(_ handle: UInt32, hash: UInt32) {
    let word = UInt64(hash) << 32 | UInt64(handle &+ 1)
    var slot = home(hash)
    while words[slot] != word {
      if words[slot] == 0 { return }
      slot = self.slot(after: slot)
    }
    closeGap(at: slot)
    count &-= 1
    sampleInvariants()
  }

  @inline(__always)
  private mutating func sampleInvariants() {
    #if CHECK_INVARIANTS
      mutations &+= 1
      if capacity <= 256 || mutations % 4096 == 0 { checkInvariants() }
    #endif
  }

  #if CHECK_INVARIANTS
    /// Checks the count and that each word is reachable from its home slot. O(capacity + probes).
    func checkInvariants() {
      var found = 0
      for slot in 0..<capacity where words[slot] != 0 {
        found += 1
        var probe = home(Self.hash(of: words[slot]))
        while probe != slot {
          precondition(words[probe] != 0, "a word of the identity index is not reachable")
          probe = self.slot(after: probe)
        }
      }
      // The last element was added when less than four fifths were used.
      precondition(found == count && (count &- 1) &* 5 < capacity &* 4, "the count of the identity index is wrong")
    }
  #endif

  @inline(__always)
  private mutating func closeGap(at emptied: Int) {
    var gap = emptied
    var slot = self.slot(after: gap)
    while words[slot] != 0 {
      // The word can move to the gap unless its home slot is cyclically after the gap.
      if distance(from: home(Self.hash(of: words[slot])), to: slot) >= distance(from: gap, to: slot) {
        words[gap] = words[slot]
        gap = slot
      }
      slot = self.slot(after: slot)
    }
    words[gap] = 0
  }

  private func distance(from start: Int, to end: Int) -> Int { end >= start ? end &- start : end &- start &+ capacity }

  /// Moves the words to a larger table, which replaces the present one when it is complete.
  @inline(never)
  private mutating func grow(to larger: Int, _ pace: Pace) {
    var next = IdentityIndex(capacity: larger)
    for start in stride(from: 0, to: larger, by: Self.slotsPerStep) {
      (next.words + start).initialize(repeating: 0, count: min(Self.slotsPerStep, larger &- start))
      pace.spend(8)
    }
    for slot in 0..<capacity {
      let word = words[slot]
      if word != 0 { next.insert(UInt32(truncatingIfNeeded: word) &- 1, hash: Self.hash(of: word)) }
      if slot & (Self.slotsPerStep &- 1) == 0 { pace.spend(16) }
    }
    swap(&words, &next.words)
    swap(&capacity, &next.capacity)
  }

  /// The slots of a table that are filled or moved between two stops.
  private static var slotsPerStep: Int { 1024 }
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
