import Glibc

/// One version of an element: its identity, its sort keys and its compact JSON text in one counted block of memory.
///
/// A version never changes once made. It is shared by the element's record, by the undo log of the commit under way and
/// by the snapshots that still have to send it; the last to let go frees it. The count is not atomic: the model lives
/// on one thread.
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

  /// Copies the parts into a new block with one reference.
  ///
  /// - Parameters:
  ///   - identity: canonical identity bytes, see `Identity`; empty where elements have none.
  ///   - keys: sort keys, each a 4-byte length and its bytes, see `SortOrder`.
  ///   - text: compact JSON.
  ///   - type: where in `text` the JSON string that names the element's type stands; empty when it has none.
  init?(
    identity: UnsafeRawBufferPointer, keys: UnsafeRawBufferPointer, text: UnsafeRawBufferPointer, type: Range<Int>
  ) {
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

  /// The block behind a pattern made by `bitPattern`.
  @inlinable public init?(bitPattern: UInt) {
    guard let block = UnsafeMutableRawPointer(bitPattern: bitPattern) else { return nil }
    self.block = block
  }

  /// A plain number that stands for this version; it does not keep it alive.
  @inlinable public var bitPattern: UInt { UInt(bitPattern: block) }

  @usableFromInline var header: UnsafeMutablePointer<Header> {
    @inlinable get { block.assumingMemoryBound(to: Header.self) }
  }

  @usableFromInline var body: UnsafeMutableRawPointer {
    @inlinable get { block + MemoryLayout<Header>.size }
  }

  /// The element as compact JSON. Valid while somebody holds a reference.
  @inlinable public var text: UnsafeRawBufferPointer {
    let start = body + Int(header.pointee.identityLength) + Int(header.pointee.keysLength)
    return UnsafeRawBufferPointer(start: start, count: Int(header.pointee.textLength))
  }

  /// The JSON string (quotes included) that names the element's type; empty when it has none.
  @inlinable public var type: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      start: text.baseAddress.map { $0 + Int(header.pointee.typeOffset) }, count: Int(header.pointee.typeLength))
  }

  /// The canonical identity; equal bytes mean one identity.
  var identity: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: body, count: Int(header.pointee.identityLength))
  }

  /// All sort keys, each behind its length.
  var keys: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      start: body + Int(header.pointee.identityLength), count: Int(header.pointee.keysLength))
  }

  /// The handle of the element that this is a version of; no two elements that live at one time have the same.
  public internal(set) var owner: UInt32 {
    get { header.pointee.owner }
    nonmutating set { header.pointee.owner = newValue }
  }

  /// The place of the element among all that its feed ever took in; the same for all versions of an element.
  public internal(set) var arrival: UInt64 {
    get { header.pointee.arrival }
    nonmutating set { header.pointee.arrival = newValue }
  }

  /// When the element had been added or last become different, as of this version.
  public internal(set) var changedAt: Instant {
    get { Instant(nanoseconds: header.pointee.changedAt) }
    nonmutating set { header.pointee.changedAt = newValue.nanoseconds }
  }

  /// One reference more.
  @inlinable public func retain() {
    header.pointee.references &+= 1
  }

  /// One reference less; the last frees the block.
  @inlinable public func release() {
    header.pointee.references &-= 1
    if header.pointee.references == 0 { free(block) }
  }

  /// Bytes this version occupies, the header included.
  var footprint: Int {
    let h = header.pointee
    return MemoryLayout<Header>.size &+ Int(h.identityLength) &+ Int(h.keysLength) &+ Int(h.textLength)
  }
}
