import FeedJSON

/// Bytes that are made in one turn of the loop and shared by everybody they go to, until the turn's writes are done.
final class TurnBuffer {
  var bytes: ByteBuffer

  /// Memory kept between turns; what a large turn needed beyond it is given back.
  private static let keptCapacity = 1 << 20

  init() {
    bytes = ByteBuffer()
  }

  func recycle() {
    bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
  }
}
