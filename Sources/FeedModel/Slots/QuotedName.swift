import FeedJSON

/// A name as a JSON string, in memory that stays where it is as long as this object lives.
final class QuotedName {
  private var buffer = ByteBuffer()

  init(_ name: String) {
    buffer.appendJSONString(name)
  }

  var bytes: UnsafeRawBufferPointer { buffer.bytes }
}
