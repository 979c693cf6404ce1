import FeedChange
import FeedModel

@testable import ReferenceModel

/// What the daemon must hold and answer, worked out from what its log stored by the plain reference.
///
/// It reads the log's batches in their order and knows each request by the `tag` that its sender put into it. It keeps what
/// every feed showed at every revision, so that a copy of any age can be compared.
struct Oracle {
  /// A request that the log stores.
  indirect enum Mutation {
    case operation(TreeOperation)
    case transaction([TreeOperation])
    case select(feed: String, isSelect: Bool, at: [[Int]]?)
    /// A request that is executed only if the feed has this revision; nil if it is not defined.
    case conditional(feed: String, revision: Int?, Mutation)
    /// A request that has to be refused, for whatever reason.
    case invalid
    /// A `watch` that may begin a history: it changes nothing that is seen.
    case watch
  }

  /// How a request must be answered.
  enum Outcome: Equatable {
    /// With the revision after it.
    case done(revision: Int)
    case refused(code: Int?)
  }

  private struct Content {
    let revision: Int
    /// Nil when the feed is gone.
    let sections: [Mirror.Section]?
  }

  /// What a start can go back to.
  private struct State {
    var reference = TreeReference()
    var views: [String: TreeView] = [:]
    var revision = 0
    var contents: [String: [Content]] = [:]
    /// The revisions of commits that redefined a feed twice. If it was put back, it and others may have the revision although they
    /// show the same.
    var redefinedTwice: Set<Int> = []
  }

  private var state = State()
  /// The states before each batch, if a loss of power may lose batches.
  private var past: [State]?
  private var requests: [Int: Mutation] = [:]
  private var outcomes: [Int: Outcome] = [:]
  private var lastTag = 0
  /// The commits that evicted expired elements.
  private(set) var evictions = 0

  /// The code of the error that requests get when the log fails.
  static let storageFailed = -32008

  /// - Parameter mayLose: whether a loss of power may lose batches that were stored.
  init(mayLose: Bool) {
    if mayLose { past = [] }
  }

  var reference: TreeReference { state.reference }
  /// What every feed and bin shows now.
  var views: [String: TreeView] { state.views }
  var revision: Int { state.revision }
  private var contents: [String: [Content]] { state.contents }

  /// Registers a request and returns its tag, which is its id as well.
  mutating func register(_ mutation: Mutation?) -> Int {
    lastTag += 1
    requests[lastTag] = mutation
    return lastTag
  }

  /// How a request was to be answered; nil while the log has not stored or failed it.
  func outcome(of tag: Int) -> Outcome? { outcomes[tag] }

  // MARK: What feeds show

  /// What a feed showed at a revision; nil when it was not there.
  func content(of feed: String, at revision: Int) -> [Mirror.Section]? {
    if let known = contents[feed]?.last(where: { $0.revision <= revision }) { return known.sections }
    // It is there from the beginning.
    return feed == TreeReference.listName ? [Mirror.Section(name: feed, rows: [])] : nil
  }

  func content(of feed: String) -> [Mirror.Section]? { content(of: feed, at: .max) }

  /// The revision of a feed or bin; nil when it is not there.
  func revision(of feed: String) -> Int? {
    guard let last = contents[feed]?.last, last.sections != nil else { return nil }
    return last.revision
  }

  /// Whether a feed or bin may be at a revision, according to what it shows.
  func allows(_ feed: String, at revision: Int?) -> Bool {
    revision == self.revision(of: feed) || isPutBack(feed, at: revision)
  }

  private func isPutBack(_ feed: String, at revision: Int?) -> Bool {
    guard let revision, let known = self.revision(of: feed) else { return false }
    return known < revision && state.redefinedTwice.contains(revision)
  }

  /// Whether a feed may have been put back.
  var mayLearn: Bool { !state.redefinedTwice.isEmpty }

  /// Learns the revision of a feed that was put back.
  mutating func learn(_ feed: String, at revision: Int?) {
    guard let revision, isPutBack(feed, at: revision) else { return }
    state.contents[feed, default: []].append(Content(revision: revision, sections: content(of: feed)))
  }

  /// The feeds and bins that are there.
  var names: [String] { views.keys.sorted() }

  // MARK: The log

  /// Executes a batch that failed because of a sync, and that the disk kept all the same.
  mutating func executeKept(_ batch: StoredRequests) throws(SimulationFailure) {
    var bytes = batch.bytes
    for text in FrameText.take(from: &bytes) {
      if let tag = Value(text)?["tag"]?.int { outcomes[tag] = nil }
    }
    try execute(batch, failure: nil)
  }

  /// Executes the requests of a batch in order, or refuses them if the log failed.
  mutating func execute(_ batch: StoredRequests, failure: String?) throws(SimulationFailure) {
    if failure == nil {
      past?.append(state)
      state.reference.moment = batch.at.milliseconds
    }
    var bytes = batch.bytes
    for text in FrameText.take(from: &bytes) {
      guard let request = Value(text) else { throw SimulationFailure("the log has no JSON: \(text)") }
      if let method = request["method"]?.string, method.hasPrefix("$") {
        // A request of the daemon itself. The others change nothing that is seen.
        if method == "$evict", failure == nil { evict() }
        continue
      }
      guard let tag = request["tag"]?.int, let mutation = requests[tag] else {
        throw SimulationFailure("the log has a request that nobody sent or that changes nothing: \(text)")
      }
      guard outcomes[tag] == nil else { throw SimulationFailure("the log has a request twice: \(text)") }
      if failure != nil {
        if case .watch = mutation { continue }
        outcomes[tag] = .refused(code: Self.storageFailed)
      } else {
        outcomes[tag] = execute(mutation)
      }
    }
    if !bytes.isEmpty { throw SimulationFailure("the log has \(bytes.count) bytes behind its frames") }
  }

  /// Goes back to the state before the last batch that is left. Returns false if there is none.
  mutating func goBack() -> Bool {
    guard let state = past?.popLast() else { return false }
    self.state = state
    return true
  }

  private mutating func execute(_ mutation: Mutation) -> Outcome {
    switch mutation {
    case .operation(let operation): commit([operation])
    case .transaction(let operations): commit(operations)
    case .select(let feed, let isSelect, let paths): select(feed, isSelect, paths)
    case .conditional(let feed, let expected, let mutation):
      revision(of: feed) == expected ? execute(mutation) : .refused(code: -32009)
    case .invalid: .refused(code: nil)
    case .watch: .done(revision: revision)
    }
  }

  private mutating func commit(_ operations: [TreeOperation]) -> Outcome {
    var next = reference
    (next.isStructural, next.rebinned) = (false, [])
    for operation in operations {
      do throws(TreeReference.Refusal) {
        try next.apply(operation)
      } catch {
        return .refused(code: error.code)
      }
    }
    adopt(next, changed: Set(operations.map(\.feed)))
    let redefined = operations.compactMap { operation in
      if case .define(let definition, replace: true) = operation { definition.name } else { nil }
    }
    if Set(redefined).count < redefined.count { state.redefinedTwice.insert(revision) }
    return .done(revision: revision)
  }

  /// Evicts the elements whose time is over, each feed's in a commit of its own.
  private mutating func evict() {
    while let name = reference.due {
      var next = reference
      (next.isStructural, next.rebinned) = (false, [])
      next.evictDue(name)
      adopt(next, changed: [name])
      evictions += 1
    }
  }

  /// The state after a commit, or after operations without effect.
  /// - Parameter changed: the feeds that the operations name.
  private mutating func adopt(_ given: TreeReference, changed: Set<String>) {
    var next = given
    for name in changed.sorted() where !next.rebinned.contains(name) {
      if let feed = reference.feeds[name], feed.hasIdentity { next.reunite(name, since: feed) }
    }
    let new = next.isStructural ? next.views() : next.views(views, changed: changed)
    state.reference = next
    if next.isStructural || new != views {
      state.revision += 1
      keep(new)
    }
    state.views = new
  }

  /// Keeps what changed. A definition that shows the same is no change of the feed.
  private mutating func keep(_ new: [String: TreeView]) {
    for name in views.keys where new[name] == nil {
      state.contents[name, default: []].append(Content(revision: revision, sections: nil))
    }
    for (name, view) in new where views[name] != view {
      let sections = view.sections.map { section in
        Mirror.Section(name: section.name, rows: section.rows.map { .init(element: $0.text, type: $0.type) })
      }
      state.contents[name, default: []].append(Content(revision: revision, sections: sections))
    }
  }

  private func select(_ feed: String, _ isSelect: Bool, _ paths: [[Int]]?) -> Outcome {
    guard let view = views[feed] else { return .refused(code: -32000) }
    let definition = reference.rules(of: feed)
    if isSelect && definition?.selectable == false { return .refused(code: -32006) }
    let places = Set(view.paths.map { [$0.section, $0.row] })
    if let paths, paths.contains(where: { !places.contains($0) }) { return .refused(code: -32005) }
    let isMultiple = definition?.multiple ?? true
    let wanted = Set(paths ?? Array(places))
    if isSelect && !isMultiple && wanted.count > 1 { return .refused(code: -32602) }
    var replaced: Set<String> = []
    if isSelect, let code = reference.refusal(ofSelecting: wanted, in: feed, views, replaced: &replaced) {
      return .refused(code: code)
    }
    return .done(revision: revision)
  }
}

extension Instant {
  /// Whole milliseconds, in which the reference counts time.
  var milliseconds: Int { Int(nanoseconds / 1_000_000) }
}

/// Frames as texts.
enum FrameText {
  static func frame(_ text: String) -> [UInt8] {
    let bytes = Array(text.utf8)
    return header(bytes.count) + bytes
  }

  static func header(_ length: Int) -> [UInt8] {
    withUnsafeBytes(of: UInt32(truncatingIfNeeded: length).bigEndian, Array.init)
  }

  /// Takes the whole frames at the beginning of `bytes`.
  static func take(from bytes: inout [UInt8]) -> [String] {
    var texts: [String] = []
    var start = 0
    while bytes.count - start >= 4 {
      let length = bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
      guard bytes.count >= start + 4 + length else { break }
      texts.append(String(decoding: bytes[start + 4..<start + 4 + length], as: UTF8.self))
      start += 4 + length
    }
    bytes.removeFirst(start)
    return texts
  }

  /// Removes the first whole frame whose text fits.
  static func removeFirst(of bytes: inout [UInt8], where fits: (String) -> Bool) {
    var rest = bytes
    var texts = take(from: &rest)
    guard let place = texts.firstIndex(where: fits) else { return }
    texts.remove(at: place)
    bytes = texts.flatMap(frame) + rest
  }
}

/// What the auditor found wrong.
struct SimulationFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
