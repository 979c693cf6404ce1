import FeedJSON
import FeedWire

/// Texts in one block of memory, one after another, as they would arrive from a socket.
final class Texts {
  private var buffer = ByteBuffer()
  private var ends: [Int] = []

  var count: Int { ends.count }
  /// The number of bytes of all texts.
  var bytes: Int { buffer.count }
  /// All texts, one after another.
  var joined: UnsafeRawBufferPointer { buffer.bytes }

  func append(_ text: String) { append { $0.append(string: text) } }

  /// Appends one text, written by `write`.
  func append(_ write: (inout ByteBuffer) -> Void) {
    write(&buffer)
    ends.append(buffer.count)
  }

  /// Returns the offset of text number `index` in `joined`; for `count`, the end of the last text.
  func offset(of index: Int) -> Int { index > 0 ? ends[index - 1] : 0 }

  subscript(index: Int) -> UnsafeRawBufferPointer { self[index..<(index + 1)] }

  /// Returns several texts, one after another.
  subscript(range: Range<Int>) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: buffer.bytes[offset(of: range.lowerBound)..<offset(of: range.upperBound)])
  }

  /// Returns a JSON array of the texts.
  /// - Precondition: each text is JSON.
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

/// Requests as frames.
extension Texts {
  /// Returns one frame with a JSON text.
  static func frame(_ text: String) -> Texts {
    let frame = Texts()
    frame.append(frame: text)
    return frame
  }

  func append(frame text: String) {
    append { buffer in
      let start = buffer.beginFrame()
      buffer.append(string: text)
      buffer.endFrame(at: start)
    }
  }

  /// Returns the frames of the pushes of a job, one request each.
  static func pushes(_ job: PushJob) -> Texts {
    let frames = Texts()
    for (index, update) in job.updates().enumerated() {
      let params = #"{"feed":"\#(PushJob.feed)","element":\#(update.text)}"#
      frames.append(frame: request("update", params, id: index % 10_000))
    }
    return frames
  }

  /// Returns the frames that fill the feed of a job, with that many elements each.
  static func filling(_ job: PushJob, batch: Int = 1000) -> Texts {
    let frames = Texts()
    let elements = job.initialElements()
    for start in stride(from: 0, to: elements.count, by: batch) {
      let part = elements[start..<min(elements.count, start + batch)].joined(separator: ",")
      frames.append(frame: request("update", #"{"feed":"\#(PushJob.feed)","elements":[\#(part)]}"#))
    }
    return frames
  }

  /// Returns the frames that define and fill the feed of a job.
  static func preparation(of job: PushJob) -> Texts {
    let frames = Texts()
    frames.append(frame: request("define", PushJob.definition))
    let filling = filling(job)
    for index in 0..<filling.count { frames.append { $0.append(filling[index]) } }
    return frames
  }

  static func request(_ method: String, _ params: String = "{}", id: Int = 1) -> String {
    #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":\#(params)}"#
  }
}
