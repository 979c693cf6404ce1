import FeedModel

@testable import ReferenceModel

/// A client that remembers what it asked and checks all that it is told: every answer comes once, in order, and agrees with
/// the oracle; every copy follows the rules and shows what the oracle knows of its revision.
final class SimulatedClient {
  /// What a request was about.
  enum Question {
    case mutation
    case watch(feed: String, known: Mirror?, initial: Bool, spanning: Bool)
    case watchCounts(feed: String, known: Int?)
    case unwatch(feed: String)
    case snapshot(feed: String)
    case verify(feed: String)
    case sync
    /// Answered with a result, or with an error that the request deserves.
    case other
    /// Answered with an error.
    case wrong
  }

  private struct Expected {
    /// Nil when the answer has the id null.
    let id: Int?
    let question: Question
  }

  let number: Int
  let uid: UInt32
  private let maxFrame: Int
  /// An honest client sends sound frames and reads: the daemon has no reason to close its connection.
  let isHonest: Bool
  /// The line of the connection; nil when there is none.
  private(set) var line: Int?
  /// The epoch of the daemon that it is connected to.
  private var epoch = ""
  /// What was sent and has not left yet.
  var outbox: [UInt8] = []
  private var inbox: [UInt8] = []
  private var expected: [Expected] = []
  private(set) var mirrors: [String: Mirror] = [:]
  private(set) var counts: [String: CountsMirror] = [:]
  /// Copies of revisions at which feeds were seen, to resume from; they survive the connection.
  private(set) var seen: [String: [(epoch: String, mirror: Mirror)]] = [:]
  private var snapshots: [String: Mirror] = [:]
  /// Feeds whose notifications cannot be checked until the next watch.
  private var ignored: Set<String> = []
  /// Whether the connection can send nothing sound any more.
  var isDoomed = false
  /// Whether it has half closed.
  var hasEnded = false
  /// Why the daemon said that it closes.
  private(set) var farewell: String?
  /// The latest revision that an answer to a mutation named.
  private var acknowledged = 0
  /// What happened, so that a run shows that it met what it is made for.
  private(set) var events: [String: Int] = [:]

  init(number: Int, uid: UInt32, isHonest: Bool, maxFrame: Int) {
    (self.number, self.uid, self.isHonest, self.maxFrame) = (number, uid, isHonest, maxFrame)
  }

  var isConnected: Bool { line != nil }
  var maySend: Bool { line != nil && !isDoomed && !hasEnded && farewell == nil }
  /// Answers that are still to come.
  var pending: Int { expected.count }

  func connect(line: Int, epoch: String) {
    self.line = line
    self.epoch = epoch
    outbox = []
    inbox = []
    expected = []
    mirrors = [:]
    counts = [:]
    snapshots = [:]
    ignored = []
    (isDoomed, hasEnded, farewell) = (false, false, nil)
    acknowledged = 0
  }

  func disconnect() { line = nil }

  /// Remembers that an answer will come.
  func expect(_ id: Int?, _ question: Question) { expected.append(Expected(id: id, question: question)) }

  private func count(_ event: String) { events[event, default: 0] += 1 }

  // MARK: Receiving

  func receive(_ bytes: [UInt8], _ oracle: Oracle) throws {
    inbox += bytes
    for text in FrameText.take(from: &inbox) {
      do { try receive(text, oracle) } catch { throw SimulationFailure("client \(number): \(error)\n  in \(text)") }
    }
  }

  private func receive(_ text: String, _ oracle: Oracle) throws {
    guard let frame = Value(text) else { throw SimulationFailure("a frame that is not JSON") }
    if text.utf8.count > maxFrame { throw SimulationFailure("a frame of \(text.utf8.count) bytes") }
    if farewell != nil { throw SimulationFailure("a frame behind bye") }
    if !frame.items.isEmpty {
      for response in frame.items { try take(response: response, oracle) }
    } else if let method = frame["method"]?.string {
      try take(method, frame["params"] ?? frame, oracle)
    } else {
      try take(response: frame, oracle)
    }
  }

  private func take(_ method: String, _ params: Value, _ oracle: Oracle) throws {
    if method == "bye" {
      farewell = params["reason"]?.string ?? "without a reason"
      return count("bye \(farewell ?? "")")
    }
    guard let feed = params["feed"]?.string else { throw SimulationFailure("a notification without a feed") }
    if ignored.contains(feed) { return }
    if let known = counts[feed] { return try take(method, params, known, oracle) }
    guard var mirror = mirrors[feed] else { throw SimulationFailure("nobody watches \(feed)") }
    switch method {
    case "delta":
      try mirror.take(delta: params)
      count("delta")
    case "snapshot":
      try mirror.take(snapshot: params)
      count(params["reset"]?.bool == true ? "reset" : "part")
    case "bookmark":
      try mirror.take(bookmark: params, epoch: epoch)
      count("bookmark")
      seen[feed, default: []].append((epoch, mirror.asOf(params["current"]?.int ?? 0)))
    case "selection": return
    default: throw SimulationFailure("an unknown notification")
    }
    if mirror.isEnded {
      mirrors[feed] = nil
      return count("end")
    }
    mirrors[feed] = mirror
    try check(mirror, oracle)
  }

  private func take(_ method: String, _ params: Value, _ known: CountsMirror, _ oracle: Oracle) throws {
    var known = known
    switch method {
    case "delta": try known.take(delta: params, oracle)
    case "snapshot": try known.take(reset: params, oracle)
    case "bookmark": try known.take(bookmark: params, epoch: epoch)
    default: throw SimulationFailure("counts are told of \(method)")
    }
    count("counts \(method)")
    counts[known.feed] = known.isEnded ? nil : known
  }

  /// A copy shows what the feed showed at the copy's revision.
  private func check(_ mirror: Mirror, _ oracle: Oracle) throws(SimulationFailure) {
    guard mirror.isLive else { return }
    guard mirror.revision <= oracle.revision else {
      throw SimulationFailure("\(mirror.feed) at \(mirror.revision), the daemon is at \(oracle.revision)")
    }
    let content = oracle.content(of: mirror.feed, at: mirror.revision)
    guard mirror.sections == content else {
      throw SimulationFailure(
        "the copy of \(mirror.feed) at \(mirror.revision) is \(mirror.sections), not \(content ?? [])")
    }
    var list = seen[mirror.feed, default: []]
    if let last = list.last, last.epoch == epoch, last.mirror.revision == mirror.revision { return }
    list.append((epoch, mirror))
    seen[mirror.feed] = Array(list.suffix(12))
  }

  // MARK: Answers

  private func take(response: Value, _ oracle: Oracle) throws {
    guard let next = expected.first else { throw SimulationFailure("an answer to nothing") }
    guard response["id"]?.text == next.id.map({ "\($0)" }) ?? "null" else {
      throw SimulationFailure("the answer to \(next.id.map { "\($0)" } ?? "null") should be next")
    }
    expected.removeFirst()
    let result = response["result"]
    guard result != nil || response.errorCode != nil else { throw SimulationFailure("neither a result nor an error") }
    switch next.question {
    case .mutation: try takeMutation(next.id ?? 0, response, oracle)
    case .watch(let feed, let known, let initial, let spanning):
      if let result { try begin(feed, known, initial: initial, spanning: spanning, result, oracle) }
    case .watchCounts(let feed, let known):
      if let result {
        mirrors[feed] = nil
        ignored.remove(feed)
        counts[feed] = try CountsMirror(result, since: known, oracle)
      }
    case .unwatch(let feed):
      if result != nil {
        mirrors[feed] = nil
        counts[feed] = nil
        ignored.remove(feed)
      }
    case .snapshot(let feed): try takeSnapshot(feed, result, oracle)
    case .verify(let feed):
      guard let result, let revision = result["revision"]?.int else { break }
      let mirror = oracle.content(of: feed, at: revision).map { Mirror(sections: $0, of: feed, at: revision) }
      guard result["digest"]?.string == mirror?.digest else {
        throw SimulationFailure("the digest of \(feed) is wrong")
      }
    case .sync:
      if let mirror = mirrors.values.first(where: { !$0.isLive }) {
        throw SimulationFailure("sync was answered before the snapshot of \(mirror.feed) was complete")
      }
    case .other: break
    case .wrong: if result != nil { throw SimulationFailure("a wrong request was executed") }
    }
    count(result == nil ? "error" : "result")
  }

  private func takeMutation(_ tag: Int, _ response: Value, _ oracle: Oracle) throws(SimulationFailure) {
    switch oracle.outcome(of: tag) {
    case .done(let revision):
      guard let result = response["result"] else {
        throw SimulationFailure("refused, to be executed at \(revision)")
      }
      if result["selected"] != nil { break }
      guard result["revision"]?.int == revision else { throw SimulationFailure("the revision is not \(revision)") }
      acknowledged = max(acknowledged, revision)
    case .refused(let code):
      guard let found = response.errorCode else {
        throw SimulationFailure("executed, to be refused with \(code.map { "\($0)" } ?? "an error")")
      }
      if let code, code != found { throw SimulationFailure("refused with \(found), not \(code)") }
    case nil:
      // What cannot be a request of the log is refused before it is stored.
      if response.errorCode == nil { throw SimulationFailure("acknowledged and not stored") }
    }
  }

  private func takeSnapshot(_ feed: String, _ result: Value?, _ oracle: Oracle) throws {
    snapshots[feed] = nil
    guard let result else { return }
    let mirror = Mirror(snapshot: result, of: feed)
    guard mirror.sections == oracle.content(of: feed, at: mirror.revision) else {
      throw SimulationFailure("the snapshot of \(feed) at \(mirror.revision) is wrong")
    }
    let latest = max(mirror.revision, acknowledged)
    guard oracle.content(of: feed, at: latest) == mirror.sections else {
      throw SimulationFailure("\(feed) was read at \(mirror.revision) after \(acknowledged) was acknowledged")
    }
    snapshots[feed] = mirror
  }

  private func begin(
    _ feed: String, _ known: Mirror?, initial: Bool, spanning: Bool, _ result: Value, _ oracle: Oracle
  ) throws {
    mirrors[feed] = nil
    counts[feed] = nil
    ignored.remove(feed)
    let isResumed = result["resumed"]?.bool == true
    let base = initial ? known : (known ?? snapshots.removeValue(forKey: feed))
    if !initial && !isResumed && base?.revision != result["revision"]?.int {
      // The copy was read before something else happened, or could not be read.
      ignored.insert(feed)
      return
    }
    let mirror = try Mirror(result, since: base, initial: initial, spanning: spanning)
    mirrors[feed] = mirror
    count(isResumed ? "resumed" : "watch")
    try check(mirror, oracle)
  }
}
