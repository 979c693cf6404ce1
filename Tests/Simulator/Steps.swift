import FeedModel

import FeedEngine
@testable import ReferenceModel

/// What may happen in a step.
extension Simulation {
  func step() throws {
    switch generator.below(100) {
    case ..<38: push(anyClient { $0.maySend })
    case ..<55: watch(anyClient { $0.maySend })
    case ..<62: read(anyClient { $0.maySend })
    case ..<70: stall(anyClient { !$0.isHonest && $0.isConnected })
    case ..<74: lie(anyClient { !$0.isHonest && $0.maySend })
    case ..<76: halfClose(anyClient { $0.maySend })
    case ..<79: if let client = anyClient({ $0.isConnected }) { lose(client, isNoticed: generator.chance(50)) }
    case ..<84: if let client = anyClient({ !$0.isConnected }) { connect(client) }
    case ..<91: store()
    case ..<96: try passTime()
    case ..<97: try settle()
    case ..<99: try die()
    default: try stop()
    }
  }

  private func anyClient(_ fits: (SimulatedClient) -> Bool) -> SimulatedClient? {
    let fitting = clients.filter(fits)
    return fitting.isEmpty ? nil : generator.pick(fitting)
  }

  // MARK: Requests

  /// A request's text. Without an id it is a notification, which is never answered.
  private func text(_ tag: Int, _ method: String, _ params: String, hasID: Bool = true) -> String {
    "{\"jsonrpc\":\"2.0\",\(hasID ? "\"id\":\(tag)," : "")\"tag\":\(tag),\"method\":\"\(method)\",\"params\":\(params)}"
  }

  /// Sends requests in frames of their own, or sometimes as one JSON-RPC batch.
  ///
  /// A `watch` is never part of a batch: its notifications may arrive before its answer, so they could not be checked.
  private func send(_ client: SimulatedClient, _ texts: [String], mayBatch: Bool = true) {
    let isBatch = mayBatch && texts.count > 1 && generator.chance(20)
    note("client \(client.number) sends\(isBatch ? " as a batch" : "") \(texts.joined(separator: "\n    "))")
    if isBatch {
      client.outbox += FrameText.frame("[\(texts.joined(separator: ","))]")
    } else {
      for text in texts { client.outbox += FrameText.frame(text) }
    }
  }

  /// A line of mutations, as a reader and a writer would mix them.
  private func push(_ client: SimulatedClient?) {
    guard let client, client.pending < 24 else { return }
    send(client, (0..<(1 + generator.below(3))).map { _ in mutation(of: client) })
  }

  private func mutation(of client: SimulatedClient) -> String {
    var (mutation, method, params) = self.mutation()
    if generator.chance(12), let (feed, revision) = condition() {
      mutation = .conditional(feed: feed, revision: revision, mutation)
      params.removeLast()
      params += ",\"if\":{\"feed\":\"\(feed)\",\"revision\":\(revision.map { "\($0)" } ?? "null")}}"
    }
    let tag = oracle.register(mutation)
    let hasID = generator.chance(92)
    if hasID { client.expect(tag, .mutation) }
    return text(tag, method, params, hasID: hasID)
  }

  /// A feed or bin and a revision of it: mostly the present one.
  private func condition() -> (feed: String, revision: Int?)? {
    guard let feed = generator.chance(10) ? "nobody" : anyName else { return nil }
    let revision = oracle.revision(of: feed)
    return (feed, generator.chance(80) ? revision : revision.map { $0 - 1 } ?? 3)
  }

  private func mutation() -> (Oracle.Mutation, method: String, params: String) {
    if generator.chance(6), let feed = anyName { return selection(of: feed) }
    if generator.chance(12) {
      let operations = (0..<(1 + generator.below(4))).map { _ in self.operation() }
      return (
        .transaction(operations), "transaction", "{\"ops\":[\(operations.map(\.json).joined(separator: ","))]}"
      )
    }
    let operation = self.operation()
    return (.operation(operation), operation.method, operation.params)
  }

  private func operation() -> TreeOperation {
    if oracle.reference.feeds.count < 5 && generator.chance(50) {
      let name = generator.pick(TreeGenerator.names)
      return .define(generator.newDefinition(name, oracle.reference, oracle.views), replace: false)
    }
    return generator.operation(on: oracle.reference, oracle.views)
  }

  private func selection(of feed: String) -> (Oracle.Mutation, method: String, params: String) {
    let isSelect = generator.chance(75)
    let places = oracle.views[feed]?.paths.map { [$0.section, $0.row] } ?? []
    let paths: [[Int]]? =
      generator.chance(15) || places.isEmpty ? nil : (0..<(1 + generator.below(2))).map { _ in generator.pick(places) }
    let rest = paths.map { "\"at\":\($0)" } ?? "\"all\":true"
    return (
      .select(feed: feed, isSelect: isSelect, at: paths), isSelect ? "select" : "deselect",
      "{\"feed\":\"\(feed)\",\(rest)}"
    )
  }

  private var anyName: String? {
    let names = oracle.names
    return names.isEmpty ? nil : generator.pick(names)
  }

  /// Watches a feed: from its beginning, from a copy, from an impossible revision, or from a snapshot that is read before.
  private func watch(_ client: SimulatedClient?) {
    guard let client, client.pending < 24, let name = generator.chance(97) ? anyName : "nobody" else { return }
    // Mostly a feed of which there is a copy.
    let feed = client.seen.isEmpty || generator.chance(50) ? name : generator.pick(client.seen.keys.sorted())
    var params = "\"feed\":\"\(feed)\""
    var texts: [String] = []
    var known: Mirror?
    var isOld = false
    var initial = true
    if generator.chance(30) { params += ",\"throttle\":\(1 + generator.below(800))" }
    let copies = client.seen[feed] ?? []
    if !copies.isEmpty && generator.chance(60) {
      let copy = generator.pick(copies)
      known = copy.mirror
      isOld = copy.epoch != daemon.epoch
      params += ",\"since\":{\"epoch\":\"\(copy.epoch)\",\"revision\":\(copy.mirror.revision)}"
    } else if generator.chance(8) {
      let (epoch, revision) = generator.chance(50) ? ("other", oracle.revision) : (daemon.epoch, 1_000_000)
      params += ",\"since\":{\"epoch\":\"\(epoch)\",\"revision\":\(revision)}"
    } else if generator.chance(12) {
      let tag = oracle.register(nil)
      client.expect(tag, .snapshot(feed: feed))
      texts.append(text(tag, "snapshot", "{\"feed\":\"\(feed)\"}"))
      params += ",\"initial\":false"
      initial = false
    }
    let tag = oracle.register(.watch)
    let base = isOld ? nil : known
    if initial && generator.chance(20) {
      params += ",\"elements\":false"
      client.expect(tag, .watchCounts(feed: feed, known: base?.revision))
    } else {
      let spanning = generator.chance(50)
      if spanning { params += ",\"spanning\":true" }
      client.expect(tag, .watch(feed: feed, known: base, initial: initial, spanning: spanning))
    }
    texts.append(text(tag, "watch", "{\(params)}"))
    send(client, texts, mayBatch: false)
  }

  private func read(_ client: SimulatedClient?) {
    guard let client, client.pending < 24, let feed = generator.chance(97) ? anyName : "nobody" else { return }
    let (method, params, question): (String, String, SimulatedClient.Question) =
      switch generator.below(10) {
      case 0: ("unwatch", "{\"feed\":\"\(feed)\"}", .unwatch(feed: feed))
      case 1: ("verify", "{\"feed\":\"\(feed)\"}", .verify(feed: feed))
      case 2: ("sync", "{}", .sync)
      case 3: ("ping", "{}", .other)
      case 4:
        ("query", "{\"feed\":\"\(feed)\",\"path\":\"\(generator.pick(["$[?@.v>3]", "$[0,-1]", "$..n"]))\"}", .other)
      case 5: ("range", "{\"feed\":\"\(feed)\",\"from\":\(generator.below(4)),\"count\":\(generator.below(9))}", .other)
      case 6: (generator.pick(["feeds", "hello", "clients", "stats"]), "{}", .other)
      case 7: (generator.pick(["describe", "selected"]), "{\"feed\":\"\(feed)\"}", .other)
      default: ("snapshot", "{\"feed\":\"\(feed)\"}", .snapshot(feed: feed))
      }
    let tag = oracle.register(nil)
    client.expect(tag, question)
    send(client, [text(tag, method, params)])
  }

  // MARK: Bad peers

  /// A client stops reading, reads again, or reads a little.
  private func stall(_ client: SimulatedClient?) {
    guard let client, let line = client.line else { return }
    let room: Int? = generator.pick([0, 0, nil, 1 + generator.below(3000)])
    note("client \(client.number) reads \(room.map { "\($0) bytes" } ?? "everything")")
    daemon.link.setRoom(line, room)
  }

  private func halfClose(_ client: SimulatedClient?) {
    guard let client, let line = client.line, client.outbox.isEmpty, daemon.link.isOpen(line) else { return }
    note("client \(client.number) half closes")
    daemon.link.endInput(line)
    client.hasEnded = true
  }

  private func lie(_ client: SimulatedClient?) {
    guard let client else { return }
    let tag = oracle.register(.invalid)
    switch generator.below(12) {
    case 0:
      wrong(client, nil, generator.pick(["{{", "nul", "\u{0}", "[1,]", "{\"id\":1,}", "\"a", "1e", "[[[[[[["]))
    case 1: wrong(client, nil, generator.pick(["[]", "1", "null", "\"text\"", "{}"]))
    case 2: wrong(client, nil, "{\"jsonrpc\":\"2.0\",\"id\":{\"a\":\(tag)},\"method\":\"ping\"}")
    case 3: wrong(client, nil, String(repeating: "[", count: 600) + String(repeating: "]", count: 600))
    case 4: wrong(client, tag, text(tag, generator.pick(["nothing", "$evict", "", "Update", "update "]), "{}"))
    case 5: wrong(client, tag, text(tag, "update", generator.pick(["[]", "{}", "{\"feed\":5}", "null", "7"])))
    case 6:
      let feed = anyName ?? "nobody"
      wrong(client, tag, text(tag, "define", "{\"feed\":\"\(feed)\",\"kind\":\"\(generator.pick(["tree", ""]))\"}"))
    case 7: wrong(client, tag, text(tag, "transaction", "{\"ops\":[{\"method\":\"ping\",\"params\":{}}]}"))
    case 8:
      let watch = text(tag, "watch", "{\"feed\":\"\(anyName ?? "nobody")\",\"since\":{\"epoch\":3}}")
      wrong(client, tag, watch)
    case 9:
      note("client \(client.number) sends an impossible length")
      client.outbox += FrameText.header(generator.pick([0, 1 << 31, daemon.limits.maxFrame + 1]))
      client.outbox += Array(repeating: 65, count: generator.below(2000))
      client.expect(nil, .wrong)
      client.isDoomed = true
    default:
      let length = 2 + generator.below(generator.chance(50) ? 60_000 : 500)
      note("client \(client.number) begins a frame of \(length) bytes")
      client.outbox += FrameText.header(length)
      client.outbox += Array(repeating: 32, count: generator.below(length))
      if length > daemon.limits.maxFrame { client.expect(nil, .wrong) }
      client.isDoomed = true
    }
  }

  private func wrong(_ client: SimulatedClient, _ id: Int?, _ text: String) {
    note("client \(client.number) lies \(text.prefix(200))")
    client.expect(id, .wrong)
    client.outbox += FrameText.frame(text)
  }

  // MARK: The daemon's own troubles

  /// The log stores late, or fails, or works again.
  private func store() { note(daemon.log.disturb(&generator)) }

  /// Time passes. Honest clients finish their frames before a long time passes.
  private func passTime() throws {
    let seconds = generator.chance(20) ? 31 : Double(generator.below(40)) / 10
    note("\(seconds) seconds pass")
    if seconds > 10 {
      daemon.link.isCalm = true
      try turns(3)
      daemon.link.isCalm = false
    }
    daemon.advance(seconds: seconds)
  }

  /// The process ends without a word, or the machine does.
  private func die() throws {
    if let log = daemon.log as? MemoryLog, generator.chance(20) {
      log.lose("the log is damaged")
      try turns(1)
      guard daemon.lossReason == "the log is damaged" else { throw SimulationFailure("the loss of the log is ignored") }
    }
    let isPowerLoss = daemon.disk != nil && generator.chance(60)
    try crash(isPowerLoss ? .powerLoss(generator.random.next()) : .kill(tail: generator.below(3)))
    for client in clients where generator.chance(70) { connect(client) }
  }
}
