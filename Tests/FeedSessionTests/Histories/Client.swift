import FeedModel

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// A client that checks every frame: each request is answered once and in order, and its mirrors of watched feeds follow the
/// rules of the protocol.
final class Client {
  /// What a request asked for, to check its answer.
  enum Question {
    case watch(feed: String, known: Mirror?, initial: Bool, spanning: Bool)
    case unwatch(feed: String)
    case snapshot(feed: String)
    case sync
    /// Answered with a result, or with an error of this code.
    case other(error: Int?)
  }

  let harness: EngineHarness
  private(set) var id: ConnectionID
  private(set) var mirrors: [String: Mirror] = [:]
  /// Mirrors of the revisions at which each feed was seen, to resume from.
  private(set) var seen: [String: [Mirror]] = [:]
  private var questions: [(id: Int, question: Question)] = []
  private var lastID = 0
  /// The feeds whose notifications cannot be checked until the next watch.
  private var ignored: Set<String> = []
  private(set) var isOver = false
  private(set) var syncs = 0
  // Counts of events over all connections. A test checks that each occurred.
  private(set) var resumed = 0
  private(set) var bookmarks = 0
  private(set) var resets = 0
  private(set) var ends = 0
  private(set) var parts = 0

  init(_ harness: EngineHarness, uid: UInt32 = 1000) {
    self.harness = harness
    id = harness.connect(uid: uid)
  }

  var isIdle: Bool { questions.isEmpty }

  /// Disconnects and connects again; the mirrors to resume from are kept.
  func reconnect() {
    harness.disconnect(id)
    id = harness.connect()
    mirrors = [:]
    ignored = []
    questions = []
    isOver = false
  }

  /// Returns the text of a request; of a notification if `question` is nil.
  func request(_ method: String, _ params: String, _ question: Question?) -> String {
    guard let question else { return #"{"jsonrpc":"2.0","method":"\#(method)","params":\#(params)}"# }
    lastID += 1
    questions.append((lastID, question))
    return #"{"jsonrpc":"2.0","id":\#(lastID),"method":"\#(method)","params":\#(params)}"#
  }

  func send(_ texts: [String]) {
    harness.deliver(id, texts.flatMap { EngineHarness.frame($0) })
  }

  /// Checks every received frame.
  func receive() throws {
    for text in harness.take(id) {
      guard let frame = Value(text) else { throw Mirror.Violation(description: "invalid JSON: \(text)") }
      if isOver { throw Mirror.Violation(description: "frame after bye: \(text)") }
      if text.utf8.count > harness.engine.limits.maxFrame {
        throw Mirror.Violation(description: "a frame of \(text.utf8.count) bytes")
      }
      if frame.items.isEmpty { try take(frame) } else { for entry in frame.items { try take(response: entry) } }
    }
  }

  private func take(_ frame: Value) throws {
    guard let method = frame["method"]?.string else { return try take(response: frame) }
    guard let params = frame["params"] else { throw Mirror.Violation(description: "no params: \(frame)") }
    if method == "bye" {
      isOver = true
      return
    }
    guard let feed = params["feed"]?.string else { throw Mirror.Violation(description: "no feed: \(frame)") }
    if ignored.contains(feed) { return }
    guard var mirror = mirrors[feed] else {
      throw Mirror.Violation(description: "notification of a feed that is not watched: \(frame)")
    }
    switch method {
    case "delta": try mirror.take(delta: params)
    case "snapshot":
      if params["reset"]?.bool == true { resets += 1 }
      parts += 1
      try mirror.take(snapshot: params)
    case "bookmark":
      try mirror.take(bookmark: params, epoch: "test")
      bookmarks += 1
      seen[feed, default: []].append(mirror.asOf(params["current"]?.int ?? 0))
    case "selection": break
    default: throw Mirror.Violation(description: "an unknown notification: \(frame)")
    }
    mirrors[feed] = mirror.isEnded ? nil : mirror
    if mirror.isEnded { ends += 1 }
    if mirror.isLive { remember(mirror) }
  }

  private func remember(_ mirror: Mirror) {
    var list = seen[mirror.feed, default: []]
    if list.last?.revision == mirror.revision { return }
    list.append(mirror)
    seen[mirror.feed] = Array(list.suffix(60))
  }

  private func take(response: Value) throws {
    guard let (expected, question) = questions.first else {
      throw Mirror.Violation(description: "response without a request: \(response)")
    }
    guard response["id"]?.int == expected else {
      throw Mirror.Violation(description: "expected the answer to \(expected): \(response)")
    }
    questions.removeFirst()
    let error = response.errorCode
    switch question {
    case .watch(let feed, let known, let initial, let spanning):
      guard let result = response["result"] else { break }
      mirrors[feed] = nil
      ignored.remove(feed)
      let base = initial ? known : (known ?? mirrorOfSnapshot.removeValue(forKey: feed))
      if !initial && base?.revision != result["revision"]?.int && result["resumed"]?.bool == false {
        // The snapshot failed, or the feed changed after it.
        ignored.insert(feed)
      } else {
        mirrors[feed] = try Mirror(result, since: base, initial: initial, spanning: spanning)
        if result["resumed"]?.bool == true { resumed += 1 }
      }
    case .unwatch(let feed):
      if error == nil {
        mirrors[feed] = nil
        ignored.remove(feed)
      }
    case .snapshot(let feed):
      mirrorOfSnapshot[feed] = response["result"].map { Mirror(snapshot: $0, of: feed) }
    case .sync:
      syncs += 1
      if let mirror = mirrors.values.first(where: { !$0.isLive }) {
        throw Mirror.Violation(description: "sync was answered before the snapshot of \(mirror.feed) was over")
      }
    case .other(let wanted):
      guard error == wanted else { throw Mirror.Violation(description: "expected error \(wanted as Any): \(response)") }
    }
  }

  private var mirrorOfSnapshot: [String: Mirror] = [:]
}
