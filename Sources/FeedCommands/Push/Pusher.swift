import FeedClient
import FeedJSON

/// Groups elements of an input into requests and interprets the daemon's answers: a pure state machine.
///
/// Elements travel in batches, several at a time. A refused batch changed nothing, so its elements are sent again one by
/// one to find the offending one. Before that, the batches sent after it are answered, and afterwards they are sent again,
/// so that of two elements with one identity the later one wins. Elements that will certainly be refused travel alone.
struct Pusher {
  /// An element that was refused, and why.
  struct Refusal: Equatable {
    var line: Int
    var reason: String
  }

  /// The sizes of batches and how many are in flight.
  struct Window: Equatable {
    var batchLines = 256
    var batchBytes = 128 << 10
    /// Batches in flight at most.
    var batches = 8
    /// With fewer batches in flight than this, a batch is sent before it is full.
    var eager = 2
  }

  private let window: Window
  private var filling = PushBatch()
  /// Complete batches that were not sent, oldest first.
  private var ready: [PushBatch] = []
  /// Batches in flight, in the order of their answers.
  private var underWay: [PushBatch] = []
  /// The batches to send again once everything in flight is answered; nil unless a batch was refused.
  private var again: [PushBatch]?

  /// How many elements the daemon has acknowledged.
  private(set) var pushed = 0
  /// The revision after the last of them; nil before the first.
  private(set) var revision: Int?

  init(window: Window = Window()) { self.window = window }

  /// Adds an element, which is valid JSON.
  /// - Parameter alone: whether it must not share a request.
  mutating func add(_ element: UnsafeRawBufferPointer, line: Int, alone: Bool) {
    // One byte more for the comma.
    if alone || filling.bytes.count + element.count + 1 > window.batchBytes { seal() }
    filling.add(element, line: line)
    if alone || filling.count >= window.batchLines { seal() }
  }

  private mutating func seal() {
    if filling.count == 0 { return }
    ready.append(filling)
    filling = PushBatch()
  }

  /// Whether there is room for more elements.
  var wantsLines: Bool { ready.count < window.batches && again == nil }

  /// Whether every element has been answered.
  var isIdle: Bool { underWay.isEmpty && ready.isEmpty && filling.count == 0 && again == nil }

  /// How many elements are in flight or waiting.
  var unanswered: Int { (underWay + ready + (again ?? [])).reduce(filling.count) { $0 + $1.count } }

  /// The batch to send next; nil when an answer or an element must come first.
  mutating func next() -> PushBatch? {
    guard again == nil, underWay.count < window.batches else { return nil }
    if ready.isEmpty, underWay.count < window.eager { seal() }
    guard !ready.isEmpty else { return nil }
    let batch = ready.removeFirst()
    underWay.append(batch)
    return batch
  }

  /// The daemon acknowledged the oldest batch in flight at `revision`.
  mutating func accepted(revision: Int) {
    guard !underWay.isEmpty else { return }
    let batch = underWay.removeFirst()
    if again != nil {
      again?.append(batch)
    } else {
      pushed += batch.count
      self.revision = revision
    }
    goAgainIfAnswered()
  }

  /// The daemon refused the oldest batch in flight.
  /// - Returns: the offending element, if it is known.
  mutating func refused(_ reason: String) -> Refusal? {
    guard !underWay.isEmpty else { return nil }
    let batch = underWay.removeFirst()
    defer { goAgainIfAnswered() }
    if again != nil {
      again?.append(batch)
    } else if batch.count == 1 {
      return Refusal(line: batch.lines[0], reason: reason)
    } else {
      again = batch.singles()
    }
    return nil
  }

  private mutating func goAgainIfAnswered() {
    guard let batches = again, underWay.isEmpty else { return }
    ready = batches + ready
    again = nil
  }
}

/// The elements of one request. Kept until it is answered, because it may have to be sent again.
///
/// Owned by one ``Pusher``.
final class PushBatch {
  /// The elements with commas between them.
  private(set) var bytes = ByteBuffer()
  /// The line of each element, from 1.
  private(set) var lines: [Int] = []
  /// Where each element begins in `bytes`.
  private var starts: [Int] = []

  /// How many elements there are.
  var count: Int { lines.count }

  /// Adds an element that begins in a line.
  func add(_ element: UnsafeRawBufferPointer, line: Int) {
    if !lines.isEmpty { bytes.append(UInt8(ascii: ",")) }
    starts.append(bytes.count)
    lines.append(line)
    bytes.append(element)
  }

  /// Returns a batch for each element, in order.
  func singles() -> [PushBatch] {
    lines.indices.map { place in
      let end = place + 1 < starts.count ? starts[place + 1] - 1 : bytes.count
      let single = PushBatch()
      single.add(UnsafeRawBufferPointer(rebasing: bytes.bytes[starts[place]..<end]), line: lines[place])
      return single
    }
  }
}

/// What `push` does for one feed: the method, and what an element needs.
struct PushTarget: Equatable {
  var feed: String
  var method: String
  /// Whether a request takes many elements.
  var takesMany: Bool
  /// The path of the identity; nil when elements need none.
  var id: MemberPath?
  /// Whether only the daemon can evaluate the path of the identity.
  var hasObscureID = false
  /// The hint that goes with each request.
  var animation: String?

  /// Reads the result of `describe`.
  init(_ description: JSONView) {
    feed = description.member("feed")?.string ?? ""
    switch description.member("kind")?.string {
    case "array": (method, takesMany) = ("insert", true)
    case "single": (method, takesMany) = ("put", false)
    default:
      (method, takesMany) = ("update", true)
      let path = description.member("id")?.string ?? "$.id"
      id = MemberPath(jsonPath: path)
      hasObscureID = id == nil
    }
  }

  /// Whether the element must have a request of its own, because it will or may be refused.
  func mustTravelAlone(_ element: JSONView) -> Bool {
    if !takesMany || hasObscureID { return true }
    guard let id else { return false }
    let kind = id.resolve(element)?.kind
    return kind != .string && kind != .number
  }

  /// An upper bound of the bytes of a request besides its elements.
  var envelopeBytes: Int {
    var params = ByteBuffer()
    append(PushBatch(), to: &params)
    return params.count + method.utf8.count + 128
  }

  /// Writes the parameters of the request that pushes a batch.
  func append(_ batch: PushBatch, to params: inout ByteBuffer) {
    params.append("{\"feed\":")
    params.appendJSONString(feed)
    params.append(takesMany ? ",\"elements\":[" : ",\"element\":")
    params.append(batch.bytes.bytes)
    if takesMany { params.append("]") }
    if let animation {
      params.append(",\"animation\":")
      params.appendJSONString(animation)
    }
    params.append("}")
  }
}
