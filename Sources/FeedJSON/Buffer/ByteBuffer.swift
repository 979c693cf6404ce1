import Glibc

/// Bytes in one growing block of raw memory: what every message is written into.
///
/// Appending is O(bytes) amortised; the block doubles. Running out of memory ends the process, as it does with the
/// standard library's collections: what a client may make the daemon hold is limited before it gets here.
@frozen public struct ByteBuffer: ~Copyable {
  @usableFromInline var block: UnsafeMutablePointer<UInt8>
  @usableFromInline var used: Int
  @usableFromInline var room: Int

  /// An empty buffer with room for `capacity` bytes.
  public init(capacity: Int = 0) {
    room = max(capacity, Self.smallest)
    block = Self.allocate(nil, room)
    used = 0
  }

  deinit {
    free(block)
  }

  private static let smallest = 32

  /// The first byte; moves when the buffer grows.
  @inlinable public var pointer: UnsafeMutablePointer<UInt8> { block }

  /// Number of bytes that fit without growing.
  @inlinable public var capacity: Int { room }

  /// Number of bytes written.
  @inlinable public var count: Int { used }

  /// Whether nothing was written.
  @inlinable public var isEmpty: Bool { used == 0 }

  /// What was written; valid until the next change.
  @inlinable public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: block, count: used) }

  /// Makes room for that many more bytes.
  @inlinable public mutating func reserve(_ more: Int) {
    if room &- used < more { grow(more) }
  }

  @usableFromInline mutating func grow(_ more: Int) {
    room = max(used + more, room &* 2)
    block = Self.allocate(block, room)
  }

  private static func allocate(_ old: UnsafeMutablePointer<UInt8>?, _ room: Int) -> UnsafeMutablePointer<UInt8> {
    guard let block = realloc(old, room) else { abort() }
    return block.assumingMemoryBound(to: UInt8.self)
  }

  /// Forgets everything; without `keepingCapacity` the memory as well.
  public mutating func removeAll(keepingCapacity: Bool) {
    used = 0
    guard !keepingCapacity, room > Self.smallest else { return }
    block = Self.allocate(block, Self.smallest)
    room = Self.smallest
  }

  /// Forgets everything from `count` on; a count past the end changes nothing.
  @inlinable public mutating func truncate(to count: Int) {
    if count >= 0 && count < used { used = count }
  }

  /// Counts bytes that the caller wrote at `pointer + count`, after `reserve`.
  @inlinable public mutating func didWrite(_ more: Int) {
    assert(more >= 0 && more <= room - used)
    used &+= more
  }
}

// The block has one owner, which goes along when the buffer is handed to another thread.
extension ByteBuffer: @unchecked Sendable {}
