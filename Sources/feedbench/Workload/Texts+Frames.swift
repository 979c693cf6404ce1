import FeedJSON
import FeedWire

/// Requests as frames.
extension Texts {
  /// One frame around a JSON text.
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

  /// The frames of the pushes of a job, each a request of its own.
  static func pushes(_ job: PushJob) -> Texts {
    let frames = Texts()
    for (index, update) in job.updates().enumerated() {
      let params = #"{"feed":"\#(PushJob.feed)","element":\#(update.text)}"#
      frames.append(frame: request("update", params, id: index % 10_000))
    }
    return frames
  }

  /// The frames that fill a job's feed with its elements, so many in each.
  static func filling(_ job: PushJob, batch: Int = 1000) -> Texts {
    let frames = Texts()
    let elements = job.initialElements()
    for start in stride(from: 0, to: elements.count, by: batch) {
      let part = elements[start..<min(elements.count, start + batch)].joined(separator: ",")
      frames.append(frame: request("update", #"{"feed":"\#(PushJob.feed)","elements":[\#(part)]}"#))
    }
    return frames
  }

  /// The frames that define a job's feed and fill it.
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
