import FeedJSON

/// A growing ring of 32-bit words. The position of a word is the number of words written before it.
///
/// Invariant: `start` is at most `end`, and the ring holds at most `mask + 1` words.
struct WordRing: ~Copyable {
  private var storage: UnsafeMutablePointer<UInt32>
  private var mask: UInt64
  /// The position of the oldest word, and the position after the newest.
  private(set) var start: UInt64 = 0
  private(set) var end: UInt64 = 0

  init() {
    mask = 63
    storage = .allocate(capacity: 64)
    storage.initialize(repeating: 0, count: 64)
  }

  deinit {
    storage.deallocate()
  }

  var count: Int { Int(end &- start) }

  subscript(position: UInt64) -> UInt32 {
    assert(position >= start && position < end)
    return storage[Int(position & mask)]
  }

  mutating func append(_ word: UInt32) {
    if end &- start > mask { grow() }
    storage[Int(end & mask)] = word
    end &+= 1
  }

  /// Discards the words before `position`.
  mutating func trim(to position: UInt64) {
    assert(position >= start && position <= end)
    start = position
  }

  /// Makes room for so many words and touches their memory, so that appending them takes little time.
  mutating func prepare(_ more: Int, _ pace: Pace) {
    reserve(more, pace)
    for place in stride(from: 0, to: more, by: Self.wordsOfAPage) {
      storage[Int((end &+ UInt64(place)) & mask)] = 0
      pace.spend()
    }
  }

  /// The words of a page of memory.
  private static var wordsOfAPage: Int { 1024 }

  /// Makes room for so many words, in one step: growing moves all words.
  mutating func reserve(_ more: Int, _ pace: Pace? = nil) {
    if end &- start &+ UInt64(more) > mask &+ 1 { grow(to: end &- start &+ UInt64(more), pace) }
  }

  /// Appends so many words, for which there is room, as `write` writes them if they do not wrap around. Otherwise returns
  /// false, and appends nothing.
  @inline(__always)
  mutating func append(_ count: Int, _ write: (UnsafeMutableRawPointer) -> Void) -> Bool {
    let place = Int(end & mask)
    if place &+ count > Int(mask) &+ 1 { return false }
    write(UnsafeMutableRawPointer(storage + place))
    end &+= UInt64(count)
    return true
  }

  /// Appends the words from one position to another to `out`, little-endian. There is room for them.
  func copy(from start: UInt64, to end: UInt64, to out: inout ByteBuffer) {
    var place = start
    while place < end {
      // The words may begin again at the start of the ring.
      let offset = place & mask
      let count = min(end &- place, mask &+ 1 &- offset)
      if UInt32(1).littleEndian == 1 {
        out.append(
          UnsafeRawBufferPointer(start: storage + Int(offset), count: Int(count) &* MemoryLayout<UInt32>.stride))
      } else {
        for index in 0..<Int(count) { out.append(littleEndian: storage[Int(offset) &+ index]) }
      }
      place &+= count
    }
  }

  /// Makes room for at least `count` words in all.
  private mutating func grow(to count: UInt64 = 0, _ pace: Pace? = nil) {
    var larger = (mask &+ 1) &* 2
    while larger < count { larger &*= 2 }
    // Unwritten words are never read, and initializing them would touch memory that may never be needed.
    let copy = UnsafeMutablePointer<UInt32>.allocate(capacity: Int(larger))
    var position = start
    while position < end {
      copy[Int(position & (larger &- 1))] = storage[Int(position & mask)]
      position &+= 1
      if position & 4095 == 0 { pace?.spend(16) }
    }
    storage.deallocate()
    storage = copy
    mask = larger &- 1
  }
}
