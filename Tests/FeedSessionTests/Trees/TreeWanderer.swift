import FeedModel

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// A watcher that at random stops reading, disconnects, resumes from an old mirror and throttles its deltas.
final class TreeWanderer {
  private let world: TreeWorld
  private var id: ConnectionID
  private(set) var mirrors: [String: Mirror] = [:]
  /// The watches whose answer has not been read, each with the mirror that it resumes from.
  private var asked: [(name: String, known: Mirror?, spanning: Bool)] = []
  private(set) var isStopped = false
  /// Counts of events, to check that each occurred.
  private(set) var events: [String: Int] = [:]

  init(_ world: TreeWorld) {
    self.world = world
    id = world.harness.connect()
  }

  private func below(_ count: Int) -> Int { world.generator.below(count) }

  /// Does a random operation.
  func act() throws {
    switch below(8) {
    case 0, 1: isStopped ? resume() : stop()
    case 2: leave()
    default: if !isStopped { watch() }
    }
    try receive()
  }

  private func stop() {
    isStopped = true
    world.harness.stopped.insert(id)
  }

  func resume() {
    isStopped = false
    world.harness.resume(id)
  }

  private func leave() {
    world.harness.disconnect(id)
    id = world.harness.connect()
    (mirrors, asked, isStopped) = ([:], [], false)
  }

  /// Watches a random feed, mostly from an old revision.
  private func watch() {
    guard let name = world.views.keys.sorted().randomElement(using: &world.generator.random) else { return }
    var params = "\"feed\":\"\(name)\""
    var known: Mirror?
    if let past = world.past[name], !past.isEmpty, below(10) > 0 {
      let place = below(past.count)
      // The mirror is valid up to the revision before the next one.
      let next = place + 1 < past.count ? past[place + 1].revision : Int(world.harness.engine.catalog.revision) + 1
      let copy = past[place].asOf(past[place].revision + below(max(1, next - past[place].revision)))
      params += ",\"since\":{\"epoch\":\"test\",\"revision\":\(copy.revision)}"
      known = copy
    }
    if below(3) == 0 { params += ",\"throttle\":\(1 + below(400))" }
    let spanning = below(2) == 0
    if spanning { params += ",\"spanning\":true" }
    if below(2) == 0 { params += ",\"ids\":true" }
    asked.append((name, known, spanning))
    world.harness.send(id, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"watch\",\"params\":{\(params)}}")
  }

  /// Checks the received frames.
  func receive() throws {
    for text in world.harness.take(id) {
      guard let frame = Value(text) else { throw world.fail("invalid JSON: \(text)") }
      do { try take(frame) } catch { throw world.fail("a wanderer: \(error) in \(text)") }
    }
  }

  private func take(_ frame: Value) throws {
    guard let method = frame["method"]?.string else {
      guard let result = frame["result"], !asked.isEmpty else { throw world.fail("response without a request") }
      let (name, known, spanning) = asked.removeFirst()
      mirrors[name] = try Mirror(result, since: known, initial: true, spanning: spanning)
      events[result["resumed"]?.bool == true ? "resumed" : "started", default: 0] += 1
      return
    }
    guard method != "selection", let params = frame["params"], let name = params["feed"]?.string else { return }
    guard var mirror = mirrors[name] else { throw world.fail("notification of \(name), which is not watched") }
    if method == "delta" {
      try mirror.take(delta: params, settled: world.settled[name])
      events["deltas", default: 0] += 1
    } else {
      try mirror.take(snapshot: params)
      if params["reset"]?.bool == true { events["resets", default: 0] += 1 }
    }
    mirrors[name] = mirror.isEnded ? nil : mirror
  }

  /// Checks that the mirrors equal the reference, unless the watcher is stopped.
  func compare() throws {
    if isStopped { return }
    if !asked.isEmpty { throw world.fail("no answer to watch") }
    for (name, mirror) in mirrors {
      guard let view = world.views[name], mirror.isLive, world.same(mirror, view) else {
        throw world.fail("a wanderer has \(mirror), not \(world.views[name]?.short ?? "nothing")")
      }
    }
  }
}
