import FeedJSON

/// Texts one behind another in one block of memory, as they would come from a socket.
final class Texts {
  private var buffer = ByteBuffer()
  private var ends: [Int] = []

  var count: Int { ends.count }
  /// Bytes of all texts.
  var bytes: Int { buffer.count }
  /// All texts one behind another.
  var joined: UnsafeRawBufferPointer { buffer.bytes }

  func append(_ text: String) { append { $0.append(string: text) } }

  /// Appends what `write` writes.
  func append(_ write: (inout ByteBuffer) -> Void) {
    write(&buffer)
    ends.append(buffer.count)
  }

  /// Where text number `index`, or, for `count`, the end of the last one, lies in `joined`.
  func offset(of index: Int) -> Int { index > 0 ? ends[index - 1] : 0 }

  subscript(index: Int) -> UnsafeRawBufferPointer { self[index..<(index + 1)] }

  /// Several texts one behind another.
  subscript(range: Range<Int>) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: buffer.bytes[offset(of: range.lowerBound)..<offset(of: range.upperBound)])
  }

  /// A JSON array of the texts, each being JSON.
  func array() -> ByteBuffer {
    var array = ByteBuffer(capacity: bytes + count + 2)
    array.append("[")
    for index in 0..<count {
      if index > 0 { array.append(",") }
      array.append(self[index])
    }
    array.append("]")
    return array
  }
}
