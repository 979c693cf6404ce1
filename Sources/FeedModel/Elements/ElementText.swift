import FeedJSON
import Glibc

/// A version of an element: its identity, sort keys and compact JSON text in one reference-counted block of memory.
///
/// The text, identity and keys are immutable. The block is shared by the record of the element, the undo log of the current
/// commit and the snapshots that have not sent it yet, and is freed with the last reference.
///
/// Not safe for use by several threads at once: the reference count is not atomic.
@frozen public struct ElementText: Equatable {
  @usableFromInline struct Header {
    @usableFromInline var arrival: UInt64
    @usableFromInline var changedAt: UInt64
    @usableFromInline var references: UInt32
    @usableFromInline var identityLength: UInt32
    @usableFromInline var keysLength: UInt32
    @usableFromInline var textLength: UInt32
    @usableFromInline var typeOffset: UInt32
    @usableFromInline var typeLength: UInt32
    @usableFromInline var owner: UInt32
  }

  @usableFromInline let block: UnsafeMutableRawPointer

  /// Copies the parts to a new block with one reference. Returns nil if the parts exceed 4 GiB or memory is exhausted.
  ///
  /// - Parameters:
  ///   - identity: the canonical bytes of the identity, see `Identity`; empty if elements have none.
  ///   - keys: the sort keys, each after its length in 4 bytes, see `SortOrder`.
  ///   - text: the element as compact JSON.
  ///   - type: the range in `text` of the JSON string with the element's type; empty if there is none.
  init?(
    identity: UnsafeRawBufferPointer, keys: UnsafeRawBufferPointer, text: UnsafeRawBufferPointer, type: Range<Int>
  ) {
    assert(type.lowerBound >= 0 && type.upperBound <= text.count, "the type is outside the text")
    let size = MemoryLayout<Header>.size &+ identity.count &+ keys.count &+ text.count
    guard size < Int(UInt32.max), let block = malloc(size) else { return nil }
    block.initializeMemory(
      as: Header.self,
      to: Header(
        arrival: 0, changedAt: 0, references: 1, identityLength: UInt32(identity.count), keysLength: UInt32(keys.count),
        textLength: UInt32(text.count), typeOffset: UInt32(type.lowerBound), typeLength: UInt32(type.count), owner: 0))
    let end = block + MemoryLayout<Header>.size
    Self.copy(identity, to: end)
    Self.copy(keys, to: end + identity.count)
    Self.copy(text, to: end + identity.count + keys.count)
    self.block = block
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

  /// The address of the block. What is there is not part of the interface.
  var address: UnsafeRawPointer { UnsafeRawPointer(block) }

  @usableFromInline var header: UnsafeMutablePointer<Header> {
    @inlinable get { block.assumingMemoryBound(to: Header.self) }
  }

  @usableFromInline var body: UnsafeMutableRawPointer {
    @inlinable get { block + MemoryLayout<Header>.size }
  }

  /// The element as compact JSON. Valid while there is a reference.
  @inlinable public var text: UnsafeRawBufferPointer {
    let start = body + Int(header.pointee.identityLength) + Int(header.pointee.keysLength)
    return UnsafeRawBufferPointer(start: start, count: Int(header.pointee.textLength))
  }

  /// The JSON string, with its quotes, that is the element's type; empty if there is none.
  @inlinable public var type: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      start: text.baseAddress.map { $0 + Int(header.pointee.typeOffset) }, count: Int(header.pointee.typeLength))
  }

  /// The canonical bytes of the identity, see `Identity`.
  var identity: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: body, count: Int(header.pointee.identityLength))
  }

  /// All sort keys, each after its length.
  var keys: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      start: body + Int(header.pointee.identityLength), count: Int(header.pointee.keysLength))
  }

  /// The handle of the element, unique among the living elements of its feed.
  public internal(set) var owner: UInt32 {
    get { header.pointee.owner }
    nonmutating set { header.pointee.owner = newValue }
  }

  /// The number of elements that the feed accepted before this one. All versions of an element have the same.
  public internal(set) var arrival: UInt64 {
    get { header.pointee.arrival }
    nonmutating set { header.pointee.arrival = newValue }
  }

  /// The time when the element was added or last changed, as of this version.
  public internal(set) var changedAt: Instant {
    get { Instant(nanoseconds: header.pointee.changedAt) }
    nonmutating set { header.pointee.changedAt = newValue.nanoseconds }
  }

  /// Adds a reference.
  @inlinable public func retain() {
    header.pointee.references &+= 1
  }

  /// Releases a reference. The last release frees the block.
  @inlinable public func release() {
    assert(header.pointee.references > 0, "the version was released too often")
    header.pointee.references &-= 1
    if header.pointee.references == 0 { free(block) }
  }

  /// The bytes of the block, with its header.
  var footprint: Int {
    let h = header.pointee
    return MemoryLayout<Header>.size &+ Int(h.identityLength) &+ Int(h.keysLength) &+ Int(h.textLength)
  }
}

extension ElementText {
  /// The identity as JSON text, a number in its canonical form; nil if elements of the feed have no identity.
  public var identityText: String? {
    var text = ByteBuffer()
    return Identity.appendJSON(of: identity, to: &text) ? String(decoding: text.bytes, as: UTF8.self) : nil
  }
}
