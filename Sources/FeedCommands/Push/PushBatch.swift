import FeedClient
import FeedJSON

/// Some lines on their way to the daemon in one request. Kept until it is answered, to be sent again if it must.
///
/// Owned by one ``Pusher``.
final class PushBatch {
  /// The elements with commas between them.
  private(set) var bytes = ByteBuffer()
  /// The number of each element's line, from 1.
  private(set) var lines: [Int] = []
  /// Where each element begins in `bytes`.
  private var starts: [Int] = []

  /// How many elements there are.
  var count: Int { lines.count }

  /// Adds the element of a line.
  func add(_ element: UnsafeRawBufferPointer, line: Int) {
    if !lines.isEmpty { bytes.append(UInt8(ascii: ",")) }
    starts.append(bytes.count)
    lines.append(line)
    bytes.append(element)
  }

  /// A batch for each element alone, in order.
  func singles() -> [PushBatch] {
    lines.indices.map { place in
      let end = place + 1 < starts.count ? starts[place + 1] - 1 : bytes.count
      let single = PushBatch()
      single.add(UnsafeRawBufferPointer(rebasing: bytes.bytes[starts[place]..<end]), line: lines[place])
      return single
    }
  }
}
