import FeedModel
import FeedWire

/// A place in the input of a connection some frames ahead of the frame that is decoded.
struct FramesAhead {
  /// The frames between the two places.
  private var count = 0
  private var offset = 0

  /// Lets a collection look at coming frames, each once. Called before each frame is decoded.
  ///
  /// - Parameter start: the start of the frame that is decoded.
  @inline(__always)
  mutating func look(in bytes: UnsafeRawBufferPointer, from start: Int, of collection: CollectionKind) {
    count = max(0, count &- 1)
    if offset < start { offset = start }
    while count < CollectionKind.lookahead, offset &+ Frame.headerLength < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
      guard case .complete(let payload) = Frame.first(in: rest, maxFrame: .max) else { return }
      collection.lookAhead(at: payload)
      offset &+= Frame.headerLength &+ payload.count
      count &+= 1
    }
  }
}
