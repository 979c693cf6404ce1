import FeedJSON
import FeedSystem
import Glibc
import Synchronization

extension BenchmarkCommand {
  static let long = BenchmarkCommand(
    name: "long", summary: "measure pings and reads beside requests that take long",
    about: """
      Measures what other connections notice of requests that take long: a feed is imported, sorted into other bins, shown by a \
      view, changed in large parts and replaced, one request at a time. Meanwhile one connection sends pings, one reads an \
      element of the same feed, and one an element of another feed, each after the answer to the previous one. Starts a feedd.
      """,
    options: [
      count("number of elements of the feed", default: defaultLongCount),
      OptionDescription(
        "watchers", value: .integer(0...100), help: "number of connections that watch the feed",
        defaultText: "\(defaultLongWatchers)"),
      OptionDescription(
        "durability", value: .choice(["memory", "process", "disk"]), help: "durability of the started feedd",
        defaultText: "process"),
    ],
    notes: """
      Each request is sent once. The limits of a feedd apply, so a query of many elements may be refused when it has taken its \
      steps.
      """
  ) { options, report in
    let daemon = try DaemonUnderTest(durability: options.text("durability") ?? "process")
    let measures = LongMeasures(
      server: FeeddServer(path: daemon.socketPath), count: options.integer("count") ?? defaultLongCount,
      watchers: options.integer("watchers") ?? defaultLongWatchers)
    try withExtendedLifetime(daemon) { try measures.run(&report) }
  }

  private static let defaultLongCount = 1_000_000
  private static let defaultLongWatchers = 1
}

/// The cases of `feedbench long`.
struct LongMeasures {
  let server: FeeddServer
  /// The number of elements of the feed.
  let count: Int
  let watchers: Int

  private static let mostLevels = 500

  func run(_ report: inout Report) throws {
    var dialogue = Dialogue(try server.connect())
    try dialogue.ask("define", #"{"feed":"other","kind":"collection"}"#)
    try dialogue.ask("update", #"{"feed":"other","element":{"id":1}}"#)
    try dialogue.ask("define", Self.definition(bins: 1))
    try report.title("\(count) elements, \(watchers) watchers: pings and reads of other connections")
    try measure("nothing", report) { usleep(500_000) }
    try measure("import", report) {
      for start in stride(from: 0, to: count, by: 10_000) {
        try dialogue.ask("update", Self.elements(start..<min(count, start + 10_000)))
      }
    }
    let readers = try (0..<watchers).map { _ in try StreamReader(watching: "bench", on: server) }
    try measure("define with 4 bins", report) { try dialogue.ask("define", Self.definition(bins: 4)) }
    try measure("define with 1 bin", report) { try dialogue.ask("define", Self.definition(bins: 1)) }
    let view = #"{"feed":"view","kind":"view","of":"bench","filter":"@.k < 900","sort":[{"by":"$.v"},{"by":"$.n"}]}"#
    try measure("define a view", report) { try dialogue.ask("define", view) }
    try measure("undefine the view", report) { try dialogue.ask("undefine", #"{"feed":"view"}"#) }
    let updated = Self.elements(0..<max(1, count / 20), version: 1)
    try measure("update 1/20", report) { try dialogue.ask("update", updated) }
    let operations = Self.transaction(0..<min(count, 60_000))
    try measure("transaction of \(min(count, 60_000))", report) { try dialogue.ask("transaction", operations) }
    try measure("query", report) {
      // A refusal at the limit of steps takes as long as an answer.
      try? dialogue.ask("query", #"{"feed":"bench","path":"$[?@.k == 5 && @.n > 100]"}"#)
    }
    try measure("delete 3/10", report) { try dialogue.ask("delete", #"{"feed":"bench","where":"@.k < 300"}"#) }
    let part = Self.elements(stride(from: 0, to: count, by: 10), version: 3)
    try measure("set 1/10", report) { try dialogue.ask("set", part) }
    let whole = Self.setShort(count)
    try measure("set all", report) { try dialogue.ask("set", whole) }
    try measure("undefine the feed", report) { try dialogue.ask("undefine", #"{"feed":"bench"}"#) }
    for reader in readers { reader.stop() }
    try measureChain(&dialogue, report)
  }

  /// Pushes below a chain of slots feeds.
  private func measureChain(_ dialogue: inout Dialogue, _ report: Report) throws {
    let levels = min(Self.mostLevels, max(1, count / 10))
    try dialogue.ask("define", Self.definition(bins: 1))
    try dialogue.ask("update", Self.elements(0..<1))
    var below = "bench"
    for level in 0..<levels {
      let name = "level\(level)"
      try dialogue.ask(
        "define",
        #"{"feed":"\#(name)","kind":"slots","contents":{"A":"\#(below)"},"pattern":["A"]}"#)
      below = name
    }
    try measure("100 updates below \(levels) slots feeds", report) {
      for number in 0..<100 { try dialogue.ask("update", Self.elements(number..<number + 1, version: number)) }
    }
  }

  /// Measures the other connections while `body` runs.
  private func measure(_ name: String, _ report: Report, _ body: () throws -> Void) throws {
    let pings = try Bystander(server, Texts.request("ping"))
    let same = try Bystander(server, Texts.request("get", #"{"feed":"bench","id":0}"#))
    let other = try Bystander(server, Texts.request("get", #"{"feed":"other","id":1}"#))
    let start = MonotonicClock.now
    try body()
    let time = Double(MonotonicClock.now - start)
    try report.add(name, [Metric(name: "milliseconds", value: time / 1e6, unit: "ms")])
    try report.add("  a ping beside it", try pings.end().metrics)
    try report.add("  a read of the same feed", try same.end().metrics)
    try report.add("  a read of another feed", try other.end().metrics)
  }

  // MARK: Requests

  private static func element(_ id: Int, _ version: Int) -> String {
    #"{"id":\#(id),"n":\#(id * 7919 % 1_000_003),"k":\#(id % 1000),"v":\#(version),"text":"some text of an element"}"#
  }

  /// The parameters of `update` and of `set`.
  private static func elements(_ ids: some Sequence<Int>, version: Int = 0) -> String {
    #"{"feed":"bench","elements":[\#(ids.map { element($0, version) }.joined(separator: ","))]}"#
  }

  /// As many elements as one request can carry.
  private static func setShort(_ count: Int) -> String {
    #"{"feed":"bench","elements":[\#((0..<min(count, 1_000_000)).map { "{\"id\":\($0)}" }.joined(separator: ","))]}"#
  }

  private static func transaction(_ ids: Range<Int>) -> String {
    let operations = ids.map { id in
      #"{"method":"update","params":{"feed":"bench","element":\#(element(id, 2))}}"#
    }
    return #"{"ops":[\#(operations.joined(separator: ","))]}"#
  }

  private static func definition(bins: Int) -> String {
    let list = (0..<bins).map { bin in
      let (from, to) = (bin * 1000 / bins, (bin + 1) * 1000 / bins)
      return #"{"name":"b\#(bin)","filter":"@.k >= \#(from) && @.k < \#(to)","sort":[{"by":"$.n"}]}"#
    }
    return #"{"feed":"bench","kind":"collection","bins":[\#(list.joined(separator: ","))],"replace":true}"#
  }
}

/// A connection that sends one request repeatedly on its own thread, each after the answer to the previous one.
private final class Bystander: Sendable {
  private let result = Mutex<Result<Latencies, any Error>>(.success(Latencies()))
  private let isEnding = Atomic<Bool>(false)
  private let thread = Mutex<Thread?>(nil)

  /// Microseconds between two requests, in which the daemon and the others have the processors.
  private static let pause: UInt32 = 300

  init(_ server: FeeddServer, _ request: String) throws {
    let started = try Thread("bystander") { [self] in
      let measured = Result { try measure(server, request) }
      result.withLock { $0 = measured }
    }
    thread.withLock { $0 = started }
  }

  private func measure(_ server: FeeddServer, _ request: String) throws -> Latencies {
    var latencies = Latencies()
    var ping = try Ping(server, request)
    repeat {
      latencies.add(try ping.once())
      usleep(Self.pause)
    } while !isEnding.load(ordering: .relaxed)
    return latencies
  }

  /// Ends the thread. Returns the times of the requests.
  func end() throws -> Latencies {
    isEnding.store(true, ordering: .relaxed)
    thread.withLock { $0.take() }?.join()
    return try result.withLock { try $0.get() }
  }
}

/// A connection that watches a feed, and reads everything on its own thread.
private final class StreamReader: Sendable {
  private let stream: UnixStream
  private let thread = Mutex<Thread?>(nil)

  init(watching feed: String, on server: FeeddServer) throws {
    var dialogue = Dialogue(try server.connect())
    try dialogue.ask("watch", #"{"feed":"\#(feed)"}"#)
    let stream = dialogue.stream
    self.stream = stream
    let started = try Thread("watcher") {
      let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
      defer { space.deallocate() }
      while let count = try? stream.read(into: space), count > 0 {}
    }
    thread.withLock { $0 = started }
  }

  /// Ends the connection and the thread.
  func stop() {
    stream.shutDown(.both)
    thread.withLock { $0.take() }?.join()
  }
}
