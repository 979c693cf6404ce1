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

  private static var least: Int { 64 }

  init() {
    mask = UInt64(Self.least) &- 1
    storage = .allocate(capacity: Self.least)
    storage.initialize(repeating: 0, count: Self.least)
  }

  deinit { storage.deallocate() }

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

  /// Appends three words. Returns false, without any effect, if there is no room, or if they do not follow each other in memory.
  @inline(__always)
  mutating func append(_ first: UInt32, _ second: UInt32, _ third: UInt32) -> Bool {
    let place = end & mask
    guard end &- start &+ 2 <= mask, place &+ 2 <= mask else { return false }
    let memory = storage + Int(truncatingIfNeeded: place)
    (memory[0], memory[1], memory[2]) = (first, second, third)
    end &+= 3
    return true
  }

  mutating func trim(to position: UInt64) {
    assert(position >= start && position <= end)
    start = position
  }

  /// Makes room for so many words and touches their memory, so that appending them takes little time.
  /// - Parameter pace: lets the work stop; nothing may then change the ring.
  mutating func prepare(_ more: Int, _ pace: Pace) {
    reserve(more, pace)
    for place in stride(from: 0, to: more, by: Self.wordsOfAPage) {
      storage[Int((end &+ UInt64(place)) & mask)] = 0
      pace.spend()
    }
  }

  private static var wordsPerUnit: Int { 256 }
  private static var wordsOfAPage: Int { 1024 }

  /// Makes room for so many words, in one step: growing moves all words.
  mutating func reserve(_ more: Int, _ pace: Pace? = nil) {
    if end &- start &+ UInt64(more) > mask &+ 1 { grow(to: end &- start &+ UInt64(more), pace) }
  }

  /// Appends so many words by `write`, for which there is room; none, and returns false, if they would wrap around.
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
    move(to: larger, pace)
  }

  /// The number of words for which there is memory.
  var capacity: Int { Int(mask) &+ 1 }

  /// Halves the memory while a quarter of it then stays free. Moves at most `most` words, and returns their number.
  mutating func shrink(moving most: Int) -> Int {
    var smaller = capacity
    while smaller > Self.least, count <= smaller / 8 &* 3 { smaller /= 2 }
    if smaller == capacity || count > most { return 0 }
    move(to: UInt64(smaller))
    return count
  }

  /// Moves the words to memory for so many, a power of two.
  private mutating func move(to capacity: UInt64, _ pace: Pace? = nil) {
    // Unwritten words are never read, and initializing them would touch memory that may never be needed.
    let copy = UnsafeMutablePointer<UInt32>.allocate(capacity: Int(capacity))
    var position = start
    while position < end {
      // Up to a page, up to where one of the two begins again.
      let (from, to) = (position & mask, position & (capacity &- 1))
      let step = min(end &- position, UInt64(Self.wordsOfAPage), mask &+ 1 &- from, capacity &- to)
      (copy + Int(to)).update(from: storage + Int(from), count: Int(step))
      position &+= step
      pace?.spend(Int(step) / Self.wordsPerUnit)
    }
    storage.deallocate()
    storage = copy
    mask = capacity &- 1
  }
}
