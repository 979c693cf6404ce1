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
}

extension Texts {
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

/// The workload of the fan-out measurements: the updates, the elements and the watchers.
struct PushJob {
  static let defaultWindow = 256
  static let defaultPayload = 200

  var count: Int
  /// The maximum number of unanswered updates.
  var window = defaultWindow
  /// The size of an element in bytes.
  var payload = defaultPayload
  var elements = 1000
  var watchers = 8
  var watchesCounts = false

  /// The bytes of long updates that are pushed repeatedly.
  private static let mostBytes = 16 << 20
  /// The number of elements that are updated, spread over a larger feed.
  private static let mostUpdated = 16_384

  init(count: Int) { self.count = count }

  /// One update: the identity and the text of the element.
  struct Update {
    let id: Int
    let text: String
  }

  /// Returns the updates to push repeatedly, in order. Each element occurs several times, each time with a different text.
  func updates() -> [Update] {
    var random = BenchmarkRandom(seed: 11)
    let ids = (0..<elements).shuffled(using: &random).prefix(Self.mostUpdated)
    let laps = max(2, min(4096, Self.mostBytes / payload) / ids.count)
    return (0..<laps).flatMap { lap in
      ids.map { Update(id: $0, text: element($0, version: 1_000_000_000 + lap, &random)) }
    }
  }

  func initialElements() -> [String] {
    var random = BenchmarkRandom(seed: 12)
    return (0..<elements).map { element($0, version: 1_000_000_000 - 1, &random) }
  }

  private func element(_ id: Int, version: Int, _ random: inout BenchmarkRandom) -> String {
    // The numbers have equal lengths, so that all messages of the job have equal lengths.
    let head = #"{"id":\#(1_000_000_000 + id),"version":\#(version),"text":""#
    return head + random.words(max(1, payload - head.utf8.count - 2)) + "\"}"
  }

  static let feed = "bench"
  static let definition = #"{"feed":"bench","kind":"collection"}"#
}

/// A pseudo-random generator with the same sequence in every run (SplitMix64).
struct BenchmarkRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64 = 1) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Returns a number in `0..<bound`.
  /// - Precondition: `bound` is at least 1.
  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  /// Returns lower-case words and spaces of that many bytes in total.
  mutating func words(_ length: Int) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(length)
    while bytes.count < length {
      let letter = below(30)
      bytes.append(letter < 26 ? UInt8(ascii: "a") + UInt8(letter) : UInt8(ascii: " "))
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
