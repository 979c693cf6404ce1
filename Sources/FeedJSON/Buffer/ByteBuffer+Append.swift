import Glibc

extension ByteBuffer {
  /// One byte.
  @inlinable @inline(__always) public mutating func append(_ byte: UInt8) {
    reserve(1)
    block[used] = byte
    used &+= 1
  }

  /// The UTF-8 of a literal of more than one character.
  ///
  /// Always inlined: where the literal is known its length is, and the copy becomes a few stores.
  @inlinable @inline(__always) public mutating func append(_ text: StaticString) {
    let length = text.utf8CodeUnitCount
    reserve(length)
    memcpy(block + used, text.utf8Start, length)
    used &+= length
  }

  /// A copy of the bytes, which must not be this buffer's own.
  @inlinable public mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    reserve(bytes.count)
    memcpy(block + used, source, bytes.count)
    used &+= bytes.count
  }

  /// The UTF-8 of a string as it is, without quotes.
  @inlinable public mutating func append(string: String) {
    var string = string
    string.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  /// Four bytes, most significant first.
  @inlinable public mutating func appendUInt32BigEndian(_ value: UInt32) {
    reserve(4)
    UnsafeMutableRawPointer(block + used).storeBytes(of: value.bigEndian, as: UInt32.self)
    used &+= 4
  }

  /// Replaces four bytes that were written before; an offset past the end changes nothing.
  @inlinable public mutating func overwriteUInt32BigEndian(at offset: Int, _ value: UInt32) {
    guard offset >= 0, offset <= used &- 4 else { return }
    UnsafeMutableRawPointer(block + offset).storeBytes(of: value.bigEndian, as: UInt32.self)
  }
}
