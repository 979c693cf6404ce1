import FeedJSON

extension ByteBuffer {
  /// Leaves room for a frame's length and returns where the frame begins; `endFrame` fills it in.
  @inlinable public mutating func beginFrame() -> Int {
    let start = count
    appendUInt32BigEndian(0)
    return start
  }

  /// Ends the frame that began at `start` and returns the bytes of its payload.
  @inlinable @discardableResult public mutating func endFrame(at start: Int) -> Int {
    let length = count &- start &- Frame.headerLength
    overwriteUInt32BigEndian(at: start, UInt32(truncatingIfNeeded: length))
    return length
  }
}
