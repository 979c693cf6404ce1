import Glibc

/// A map from item handles to their leaves: an array in chunks, so that growing moves nothing, and handles without an item
/// nearby take no memory.
///
/// Invariant: a chunk has `chunkSize` entries; only if `capacity` is less, the first one has so many and is the only one. Items
/// from `capacity` on, and those of missing chunks, are in no leaf.
struct LeafTable {
  private typealias Chunk = UnsafeMutablePointer<NodeID>
  private static let chunkBits = 12
  private static let chunkSize = 1 << chunkBits

  private var chunks: UnsafeMutablePointer<Chunk?>?
  /// The number of chunks, missing ones included, for which `chunks` has room.
  private var places = 0
  private var capacity = 0

  /// The leaf of `item`; `.none` if it is in no leaf.
  @inline(__always)
  subscript(item: UInt32) -> NodeID { place(of: item)?.pointee ?? .none }

  /// The address of the entry of `item`; nil if it has none.
  @inline(__always)
  func place(of item: UInt32) -> UnsafePointer<NodeID>? {
    let index = Int(truncatingIfNeeded: item)
    guard index < capacity, let chunk = chunks.unsafelyUnwrapped[index &>> Self.chunkBits] else { return nil }
    return UnsafePointer(chunk + (index & (Self.chunkSize &- 1)))
  }

  /// Sets the leaf of a reserved item.
  @inline(__always)
  func set(_ item: UInt32, _ leaf: NodeID) {
    let index = Int(truncatingIfNeeded: item)
    assert(place(of: item) != nil, "the item is not reserved")
    chunks.unsafelyUnwrapped[index &>> Self.chunkBits].unsafelyUnwrapped[index & (Self.chunkSize &- 1)] = leaf
  }

  /// Reserves an entry for `item`.
  @inline(__always)
  mutating func reserve(_ item: UInt32) { if place(of: item) == nil { extend(to: Int(truncatingIfNeeded: item)) } }

  @inline(never)
  private mutating func extend(to index: Int) {
    let number = index &>> Self.chunkBits
    if number >= places { makePlaces(max(number &+ 1, places &* 2)) }
    if capacity < Self.chunkSize, number == 0 || capacity > 0 {
      resizeFirst(number > 0 ? Self.chunkSize : min(Self.chunkSize, max(index &+ 1, capacity &* 2, 16)))
      if number == 0 { return }
    }
    capacity = max(capacity, (number &+ 1) &* Self.chunkSize)
    chunks.unsafelyUnwrapped[number] = Self.resized(nil, from: 0, to: Self.chunkSize)
  }

  private mutating func makePlaces(_ count: Int) {
    let memory = FeedModel.resized(chunks, byteCount: count * MemoryLayout<Chunk?>.stride)
    let larger = memory.assumingMemoryBound(to: Chunk?.self)
    (larger + places).initialize(repeating: nil, count: count - places)
    (chunks, places) = (larger, count)
  }

  private mutating func resizeFirst(_ count: Int) {
    chunks.unsafelyUnwrapped[0] = Self.resized(chunks.unsafelyUnwrapped[0], from: capacity, to: count)
    capacity = count
  }

  private static func resized(_ chunk: Chunk?, from former: Int, to count: Int) -> Chunk {
    let memory = FeedModel.resized(chunk, byteCount: count * MemoryLayout<NodeID>.stride)
    let larger = memory.assumingMemoryBound(to: NodeID.self)
    (larger + former).initialize(repeating: .none, count: count - former)
    return larger
  }

  /// Reserves the entries of items below `count` if they are few, so that there are no more.
  mutating func reserve(first count: Int) {
    if count > capacity && count <= Self.chunkSize { reserve(UInt32(count - 1)) }
  }

  /// The number of entries of a chunk that is not missing.
  private var entriesPerChunk: Int { min(capacity, Self.chunkSize) }

  var byteCount: Int {
    (0..<places).reduce(places * MemoryLayout<Chunk?>.stride) { sum, number in
      chunks?[number] == nil ? sum : sum + entriesPerChunk * MemoryLayout<NodeID>.stride
    }
  }

  /// Returns a map with the same entries. O(entries).
  func copy(_ pace: Pace) -> LeafTable {
    var copy = LeafTable()
    guard let chunks else { return copy }
    copy.makePlaces(places)
    copy.capacity = capacity
    for number in 0..<places {
      guard let chunk = chunks[number] else { continue }
      let bytes = entriesPerChunk * MemoryLayout<NodeID>.stride
      let memory = FeedModel.resized(nil, byteCount: bytes)
      memory.copyMemory(from: chunk, byteCount: bytes)
      copy.chunks?[number] = memory.assumingMemoryBound(to: NodeID.self)
      pace.spend(4)
    }
    return copy
  }

  mutating func removeAll() {
    for number in 0..<places { free(chunks?[number]) }
    free(chunks)
    self = LeafTable()
  }
}
