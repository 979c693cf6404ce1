import FeedJSON
import Glibc

/// A version of an element: its identity, sort keys and compact JSON text in one reference-counted block of memory.
///
/// Most elements need a header of 28 bytes and their text: an identity that the text spells out is read from there. Sort keys, a
/// type, and any other identity take 16 bytes more, and their own.
///
/// The text, identity and keys are immutable. The block is shared by the record of the element, the undo log of the current
/// commit and the snapshots that have not sent it yet, and is freed with the last reference.
///
/// Not safe for use by several threads at once: the reference count is not atomic.
@frozen public struct ElementText: Equatable {
  @usableFromInline struct Header {
    @usableFromInline var changedAt: UInt64
    /// The arrival number, of 48 bits.
    @usableFromInline var arrivalLow: UInt32
    @usableFromInline var arrivalHigh: UInt16
    /// Whether `Parts` follow: the highest bit. The others are the offset of the identity in the text; 0 if it is not there.
    @usableFromInline var layout: UInt16
    @usableFromInline var references: UInt32
    @usableFromInline var textLength: UInt32
    @usableFromInline var owner: UInt32

    @usableFromInline static var hasParts: UInt16 { 1 << 15 }
  }

  /// The lengths of what is between the header and the text, and the place of the type in the text.
  @usableFromInline struct Parts {
    @usableFromInline var identityLength: UInt32
    @usableFromInline var keysLength: UInt32
    @usableFromInline var typeOffset: UInt32
    @usableFromInline var typeLength: UInt32
  }

  @usableFromInline let block: UnsafeMutableRawPointer

  /// Copies the parts to a new block with one reference. Returns nil if the parts exceed 4 GiB or memory is exhausted.
  /// - Parameters:
  ///   - identity: the canonical bytes of the identity, see `Identity`; empty if elements have none.
  ///   - place: the range in `text` of the JSON value with the identity if that is a string or has at most 18 bytes, all of
  ///     them digits or the sign; otherwise empty.
  ///   - keys: the sort keys, each after its length in 4 bytes, see `SortOrder`.
  ///   - text: the element as compact JSON.
  ///   - type: the range in `text` of the JSON string with the element's type; empty if there is none.
  init?(
    identity: UnsafeRawBufferPointer, at place: Range<Int> = 0..<0, keys: UnsafeRawBufferPointer,
    text: UnsafeRawBufferPointer, type: Range<Int>
  ) {
    assert(type.lowerBound >= 0 && type.upperBound <= text.count, "the type is outside the text")
    let isSpelled = Self.canRead(identity, at: place, in: text)
    let stored = isSpelled ? 0 : identity.count
    let hasParts = stored &+ keys.count &+ type.count > 0
    let start = MemoryLayout<Header>.size &+ (hasParts ? MemoryLayout<Parts>.size &+ stored &+ keys.count : 0)
    let size = start &+ text.count
    guard size < Int(UInt32.max), let block = malloc(size) else { return nil }
    block.initializeMemory(
      as: Header.self,
      to: Header(
        changedAt: 0, arrivalLow: 0, arrivalHigh: 0,
        layout: (isSpelled ? UInt16(place.lowerBound) : 0) | (hasParts ? Header.hasParts : 0), references: 1,
        textLength: UInt32(text.count), owner: 0))
    self.block = block
    if hasParts {
      parts.initialize(
        to: Parts(
          identityLength: UInt32(stored), keysLength: UInt32(keys.count), typeOffset: UInt32(type.lowerBound),
          typeLength: UInt32(type.count)))
      if stored > 0 { Self.copy(identity, to: UnsafeMutableRawPointer(parts + 1)) }
      Self.copy(keys, to: UnsafeMutableRawPointer(parts + 1) + stored)
    }
    Self.copy(text, to: block + start)
    assert(!isSpelled || hasIdentity(identity), "the text has another identity")
  }

  private static func copy(_ part: UnsafeRawBufferPointer, to place: UnsafeMutableRawPointer) {
    if let base = part.baseAddress, part.count > 0 { memcpy(place, base, part.count) }
  }

  /// The version with this `bitPattern`; nil for 0. Does not retain it.
  @inlinable public init?(bitPattern: UInt) {
    guard let block = UnsafeMutableRawPointer(bitPattern: bitPattern) else { return nil }
    self.block = block
  }

  /// The address of the version. Does not retain it.
  @inlinable public var bitPattern: UInt { UInt(bitPattern: block) }

  @usableFromInline var header: UnsafeMutablePointer<Header> {
    @inlinable get { block.assumingMemoryBound(to: Header.self) }
  }

  /// The parts. Only if there are some.
  @usableFromInline var parts: UnsafeMutablePointer<Parts> {
    @inlinable get { (block + MemoryLayout<Header>.size).assumingMemoryBound(to: Parts.self) }
  }

  @usableFromInline var hasParts: Bool { @inlinable get { header.pointee.layout & Header.hasParts != 0 } }

  /// The element as compact JSON. Valid while there is a reference.
  @inlinable public var text: UnsafeRawBufferPointer {
    var start = block + MemoryLayout<Header>.size
    if hasParts {
      start += MemoryLayout<Parts>.size &+ Int(parts.pointee.identityLength) &+ Int(parts.pointee.keysLength)
    }
    return UnsafeRawBufferPointer(start: start, count: Int(header.pointee.textLength))
  }

  /// The JSON string, with its quotes, that is the element's type; empty if there is none.
  @inlinable public var type: UnsafeRawBufferPointer {
    guard hasParts else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(
      start: text.baseAddress.map { $0 + Int(parts.pointee.typeOffset) }, count: Int(parts.pointee.typeLength))
  }

  /// The canonical bytes of an identity that is not read from the text; empty if there is none.
  var storedIdentity: UnsafeRawBufferPointer {
    guard hasParts else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(start: parts + 1, count: Int(parts.pointee.identityLength))
  }

  /// All sort keys, each after its length.
  var keys: UnsafeRawBufferPointer {
    guard hasParts else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(
      start: UnsafeRawPointer(parts + 1) + Int(parts.pointee.identityLength), count: Int(parts.pointee.keysLength))
  }

  /// The handle of the element, unique among the living elements of its feed.
  public internal(set) var owner: UInt32 {
    get { header.pointee.owner }
    nonmutating set { header.pointee.owner = newValue }
  }

  /// The number of elements that the feed accepted before this one. All versions of an element have the same.
  public internal(set) var arrival: UInt64 {
    get { UInt64(header.pointee.arrivalHigh) &<< 32 | UInt64(header.pointee.arrivalLow) }
    nonmutating set {
      assert(newValue < 1 << 48, "an arrival number has more than 48 bits")
      header.pointee.arrivalLow = UInt32(truncatingIfNeeded: newValue)
      header.pointee.arrivalHigh = UInt16(truncatingIfNeeded: newValue &>> 32)
    }
  }

  /// The time when the element was added or last changed, as of this version.
  public internal(set) var changedAt: Instant {
    get { Instant(nanoseconds: header.pointee.changedAt) }
    nonmutating set { header.pointee.changedAt = newValue.nanoseconds }
  }

  @inlinable public func retain() { header.pointee.references &+= 1 }

  /// Releases a reference. The last release frees the block.
  @inlinable public func release() {
    assert(header.pointee.references > 0, "the version was released too often")
    header.pointee.references &-= 1
    if header.pointee.references == 0 { free(block) }
  }

  /// The bytes that the version counts with: its text, keys and identity, and 44. The block may be smaller: the number
  /// decides which requests are refused, and replay of an older log must come to the same decisions.
  var footprint: Int {
    var size = 44 &+ Int(header.pointee.textLength) &+ lengthOfSpelledIdentity
    if hasParts { size &+= Int(parts.pointee.identityLength) &+ Int(parts.pointee.keysLength) }
    return size
  }
}

/// The identity, which is read from the text if it is an integer of few digits or a string without escapes there.
extension ElementText {
  /// Whether the canonical bytes of an identity can be read from its place in the text.
  private static func canRead(
    _ identity: UnsafeRawBufferPointer, at place: Range<Int>, in text: UnsafeRawBufferPointer
  ) -> Bool {
    // The byte after the value ends it.
    guard place.lowerBound > 0, place.lowerBound < Int(Header.hasParts), place.upperBound < text.count,
      let kind = identity.first
    else { return false }
    if kind == Identity.string {
      // A string with escapes is longer than what it stands for.
      return place.count == identity.count &+ 1
    }
    assert(kind == Identity.integer, "the identity cannot be read from a number in another form")
    return true
  }

  /// The bytes from the beginning of the identity in the text to the end of the text; nil if it is not read from there.
  @inline(__always)
  private var spelled: UnsafeRawBufferPointer? {
    let place = Int(header.pointee.layout & ~Header.hasParts)
    return place > 0 ? UnsafeRawBufferPointer(rebasing: text[place...]) : nil
  }

  /// The number of canonical bytes of an identity that is read from the text.
  @inline(__always)
  private var lengthOfSpelledIdentity: Int {
    guard let spelled else { return 0 }
    return Identity.isSpelledString(spelled) ? 1 &+ Identity.lengthOfSpelledString(spelled) : Identity.lengthOfInteger
  }

  /// Whether the identity has these canonical bytes.
  @inline(__always)
  func hasIdentity(_ identity: UnsafeRawBufferPointer) -> Bool {
    if let spelled { return Identity.isSpelled(identity, at: spelled) }
    let stored = storedIdentity
    return stored.count == identity.count && SortOrder.compare(stored, identity) == 0
  }

  /// Calls `body` with the canonical bytes of the identity, see `Identity`; without bytes if there is none.
  func withIdentity<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    guard let spelled else { return body(storedIdentity) }
    return withUnsafeTemporaryAllocation(byteCount: lengthOfSpelledIdentity, alignment: 8) { bytes in
      Identity.copySpelled(spelled, to: bytes)
      return body(UnsafeRawBufferPointer(bytes))
    }
  }

  /// The identity as JSON text, a number in its canonical form; nil if elements of the feed have no identity.
  public var identityText: String? {
    var text = ByteBuffer()
    return withIdentity { Identity.appendJSON(of: $0, to: &text) } ? String(decoding: text.bytes, as: UTF8.self) : nil
  }
}
