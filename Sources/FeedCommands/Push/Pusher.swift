import FeedClient
import FeedJSON

/// Groups elements into requests and interprets the daemon's answers: a pure state machine.
///
/// Elements are sent in batches, several at a time. A refused batch changed nothing, so its elements are sent again one
/// by one to find the offending one. Before that, the daemon's answers to later batches are awaited; afterwards these
/// batches are sent again, so that of two elements with one identity the later one is kept. Elements that will
/// certainly be refused are sent alone.
///
/// If an accepted request must not be sent again, nothing is sent behind a batch of several elements before its answer.
struct Pusher {
  /// A refused element and the reason.
  struct Refusal: Equatable {
    var line: Int
    var column = 1
    var reason: String

    /// The message for people. The element was sent alone, so the daemon's reason may call it the first of its request.
    var message: String {
      let named = reason.namedElement.map { reason.replacing($0.range, with: "the element") }
      return "line \(line), column \(column): \(named ?? reason)"
    }
  }

  /// The sizes of batches, and the number of batches in flight.
  struct Window: Equatable {
    var batchLines = 256
    var batchBytes = 128 << 10
    /// The maximum number of batches in flight.
    var batches = 8
    /// If fewer batches are in flight, a batch is sent before it is full.
    var eager = 2
  }

  private let window: Window
  /// Whether an accepted request may be sent again, because that changes nothing.
  private let isRepeatable: Bool
  private var filling = PushBatch()
  /// Complete batches that were not sent yet, oldest first.
  private var ready: [PushBatch] = []
  /// Batches in flight, in the order of their answers.
  private var underWay: [PushBatch] = []
  /// The batches to send again after everything in flight was answered; nil unless a batch was refused.
  private var again: [PushBatch]?

  /// The number of acknowledged elements.
  private(set) var pushed = 0
  /// The revision after the last acknowledged element; nil before the first.
  private(set) var revision: Int?

  init(window: Window = Window(), isRepeatable: Bool = true) {
    (self.window, self.isRepeatable) = (window, isRepeatable)
  }

  /// Adds an element, which must be valid JSON.
  /// - Parameter alone: whether it must be the only element of its request.
  mutating func add(_ element: UnsafeRawBufferPointer, line: Int, column: Int = 1, alone: Bool) {
    // One more byte for the comma.
    if alone || filling.bytes.count + element.count + 1 > window.batchBytes { seal() }
    filling.add(element, line: line, column: column)
    if alone || filling.count >= window.batchLines { seal() }
  }

  private mutating func seal() {
    if filling.count == 0 { return }
    ready.append(filling)
    filling = PushBatch()
  }

  /// Whether there is room for more elements.
  var wantsLines: Bool { ready.count < window.batches && again == nil }

  /// Whether every element was answered.
  var isIdle: Bool { underWay.isEmpty && ready.isEmpty && filling.count == 0 && again == nil }

  /// The number of elements in flight or waiting.
  var unanswered: Int { (underWay + ready + (again ?? [])).reduce(filling.count) { $0 + $1.count } }

  /// Returns the next batch to send; nil if an answer or an element is needed first.
  mutating func next() -> PushBatch? {
    guard again == nil, underWay.count < window.batches else { return nil }
    // Only a refused batch of several elements makes later ones be sent again.
    if !isRepeatable, underWay.contains(where: { $0.count > 1 }) { return nil }
    if ready.isEmpty, underWay.count < window.eager { seal() }
    guard !ready.isEmpty else { return nil }
    let batch = ready.removeFirst()
    underWay.append(batch)
    return batch
  }

  /// Records that the daemon acknowledged the oldest batch in flight at `revision`.
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

  /// Records that the daemon refused the oldest batch in flight.
  /// - Returns: the offending element, if it is known.
  mutating func refused(_ reason: String) -> Refusal? {
    guard !underWay.isEmpty else { return nil }
    let batch = underWay.removeFirst()
    defer { goAgainIfAnswered() }
    if again != nil {
      again?.append(batch)
    } else if batch.count == 1 {
      return Refusal(line: batch.lines[0], column: batch.columns[0], reason: reason)
    } else {
      again = batch.singles()
    }
    return nil
  }

  /// Sends what is ready, as far as the output of the connection has room.
  mutating func send(to target: PushTarget, over connection: Connection) throws(ClientError) {
    while connection.outputCount < 1 << 20, let batch = next() {
      connection.send(target.method) { target.append(batch, to: &$0) }
    }
    try connection.flush()
  }

  /// Takes the answer to the oldest batch in flight.
  /// - Returns: the offending element, if the batch was refused and it is known.
  mutating func take(_ result: Result<JSONView, RemoteError>, withCode: Bool) throws(ClientError) -> Refusal? {
    switch result {
    case .success(let answer):
      accepted(revision: answer.member("revision")?.int ?? 0)
      return nil
    case .failure(let error) where error.concernsWholeFeed: throw .refused(error)
    case .failure(let error): return refused(error.lines(withCode: withCode)[0])
    }
  }

  private mutating func goAgainIfAnswered() {
    guard let batches = again, underWay.isEmpty else { return }
    ready = batches + ready
    again = nil
  }
}

/// The elements of one request, kept until it is answered, because it may have to be sent again.
///
/// Owned by one ``Pusher``.
final class PushBatch {
  /// The elements, separated by commas.
  private(set) var bytes = ByteBuffer()
  /// The line of each element, from 1.
  private(set) var lines: [Int] = []
  /// The column of each element, from 1.
  private(set) var columns: [Int] = []
  /// The offset of each element in `bytes`.
  private var starts: [Int] = []

  /// The number of elements.
  var count: Int { lines.count }

  /// Adds an element with its position in the input.
  func add(_ element: UnsafeRawBufferPointer, line: Int, column: Int = 1) {
    if !lines.isEmpty { bytes.append(UInt8(ascii: ",")) }
    starts.append(bytes.count)
    lines.append(line)
    columns.append(column)
    bytes.append(element)
  }

  /// Returns one batch for each element, in order.
  func singles() -> [PushBatch] {
    lines.indices.map { place in
      let end = place + 1 < starts.count ? starts[place + 1] - 1 : bytes.count
      let single = PushBatch()
      single.add(
        UnsafeRawBufferPointer(rebasing: bytes.bytes[starts[place]..<end]), line: lines[place],
        column: columns[place])
      return single
    }
  }
}

/// The target of a `push`: the method for a feed, and the requirements on elements.
struct PushTarget: Equatable {
  var feed: String
  var method: String
  /// Whether a request may contain several elements.
  var takesMany: Bool
  /// The path of the identity as it is written in the definition.
  private(set) var idPath = "$.id"
  /// The path of the identity; nil if elements need none.
  var id: MemberPath?
  /// Whether only the daemon can evaluate the path of the identity.
  var hasObscureID = false
  var animation: String?
  /// The filter that the present elements of each request must match.
  var filter: String?
  /// Whether the feed must not have the elements of a request.
  var isAbsent = false

  /// Parses the result of `describe`.
  init(_ description: JSONView) {
    feed = description.member("feed")?.string ?? ""
    switch description.member("kind")?.string {
    case "array" where description.member("id") == nil: (method, takesMany) = ("insert", true)
    case "single": (method, takesMany) = ("put", false)
    default:
      (method, takesMany) = ("update", true)
      idPath = description.member("id")?.string ?? idPath
      id = MemberPath(jsonPath: idPath)
      hasObscureID = id == nil
    }
  }

  /// Whether the element must be sent alone, because it will or may be refused.
  func mustTravelAlone(_ element: JSONView) -> Bool {
    if !takesMany || hasObscureID { return true }
    guard let id else { return false }
    let kind = id.resolve(element)?.kind
    return kind != .string && kind != .number
  }

  /// An upper bound of the bytes of a request without its elements.
  var envelopeBytes: Int {
    var params = ByteBuffer()
    append(PushBatch(), to: &params)
    return params.count + method.utf8.count + 128
  }

  /// Whether an accepted request may be sent again: one that appends rows, or has a condition that it may have made untrue,
  /// may not.
  var isRepeatable: Bool { method != "insert" && filter == nil && !isAbsent }

  /// The levels of arrays and objects around an element in a request.
  var envelopeDepth: Int { takesMany ? Self.longestEnvelopeDepth : Self.longestEnvelopeDepth - 1 }

  /// The levels around an element of a list: the list, the parameters and the request.
  static let longestEnvelopeDepth = 3

  func append(_ batch: PushBatch, to params: inout ByteBuffer) {
    params.append("{\"feed\":", quoted: feed)
    params.append(takesMany ? ",\"elements\":[" : ",\"element\":")
    params.append(batch.bytes.bytes)
    if takesMany { params.append("]") }
    if let animation {
      params.append(",\"animation\":", quoted: animation)
    }
    if let filter {
      params.append(",\"where\":", quoted: filter)
    }
    if isAbsent { params.append(",\"absent\":true") }
    // Nobody reads the places of the changed rows.
    params.append(",\"result\":\"counts\"}")
  }
}
