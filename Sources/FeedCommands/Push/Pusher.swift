import FeedClient
import FeedJSON

/// Decides which lines go to the daemon in which request, and what its answers mean: a pure state machine between the
/// lines of an input and a connection.
///
/// Lines travel in batches, several of them under way at once. A refused batch changed nothing, so its lines go again
/// one by one, to find out which of them is to blame; before that, what was sent behind it is waited for, and
/// afterwards sent again, so that of two lines with one identity the later one counts. Lines that are sure to be
/// refused travel alone from the start.
struct Pusher {
  /// A line that the daemon, or this program, did not take.
  struct Refusal: Equatable {
    var line: Int
    var reason: String
  }

  /// Where batches end and how much is under way.
  struct Window: Equatable {
    var batchLines = 256
    var batchBytes = 128 << 10
    /// Batches under way at once.
    var batches = 8
    /// While so many are under way, a batch that is not full waits for more lines.
    var eager = 2
  }

  private let window: Window
  private var filling = PushBatch()
  /// Complete batches that were not sent, first to last.
  private var ready: [PushBatch] = []
  /// Batches under way, in the order of their answers.
  private var underWay: [PushBatch] = []
  /// A batch was refused: what must be sent again once everything under way is answered.
  private var again: [PushBatch]?

  /// Lines that the daemon has taken.
  private(set) var pushed = 0
  /// The revision after the last of them; nil while there is none.
  private(set) var revision: Int?

  init(window: Window = Window()) { self.window = window }

  /// Adds an element, which has been found to be JSON.
  /// - Parameter alone: whether it must not share a request.
  mutating func add(_ element: UnsafeRawBufferPointer, line: Int, alone: Bool) {
    if alone || filling.bytes.count + element.count > window.batchBytes { seal() }
    filling.add(element, line: line)
    if alone || filling.count >= window.batchLines { seal() }
  }

  private mutating func seal() {
    if filling.count == 0 { return }
    ready.append(filling)
    filling = PushBatch()
  }

  /// Whether more lines are wanted before those that are there have left.
  var wantsLines: Bool { ready.count < window.batches && again == nil }

  /// Whether every line has been answered.
  var isIdle: Bool { underWay.isEmpty && ready.isEmpty && filling.count == 0 && again == nil }

  /// How many lines are under way or waiting.
  var unanswered: Int { (underWay + ready + (again ?? [])).reduce(filling.count) { $0 + $1.count } }

  /// The batch to send next; nil when an answer, or a line, must come first.
  mutating func next() -> PushBatch? {
    guard again == nil, underWay.count < window.batches else { return nil }
    if ready.isEmpty, underWay.count < window.eager { seal() }
    guard !ready.isEmpty else { return nil }
    let batch = ready.removeFirst()
    underWay.append(batch)
    return batch
  }

  /// The oldest batch under way was taken, at `revision`.
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

  /// The oldest batch under way was refused.
  /// - Returns: the line that is to blame, if it is known.
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

/// What pushing means for the feed at hand: the method, and what an element needs.
struct PushTarget: Equatable {
  var feed: String
  var method: String
  /// Whether a request takes many elements.
  var takesMany: Bool
  /// Where the identity is; nil when elements need none.
  var id: MemberPath?
  /// Whether the identity is at a path that only the daemon can follow.
  var hasObscureID = false
  /// The hint that goes with each request.
  var animation: String?

  /// The target of a feed that is described so.
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

  /// Whether the element must have a request of its own: it will be refused, or nobody here can tell.
  func mustTravelAlone(_ element: JSONView) -> Bool {
    if !takesMany || hasObscureID { return true }
    guard let id else { return false }
    let kind = id.resolve(element)?.kind
    return kind != .string && kind != .number
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
