import FeedSystem
import Glibc
import Synchronization
import TestSupport
import Testing

/// Attacks by one user, seen by another one: its requests are answered during the attack, and afterwards the daemon uses as
/// much as before. Without root both are the same user.
@Suite("Attacks")
struct AttackTests {
  /// Requests of a hostile user. Each is answered, with a result or an error.
  struct Attack: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Options of the daemon. Small limits keep the tests fast.
    var options: [String] = []
    /// Requests that must succeed: method and parameters.
    var preparation: [(method: String, params: String)] = []
    let requests: [(method: String, params: String)]
    /// The limit that refuses the last request; nil if it succeeds.
    var limit: String?
  }

  private static func list(_ count: Int, _ element: (Int) -> String) -> String {
    "[" + (0..<count).map(element).joined(separator: ",") + "]"
  }

  private static let slowBins = list(64) { #"{"name":"b\#($0)","filter":"@..[?@ == 'x\#($0)']"}"# }
  private static let quadraticBins = list(40) { #"{"name":"b\#($0)","filter":"@.a[?count($.a[?@ > \#($0)]) == 7]"}"# }
  private static let patterns = list(256) { #"{"name":"b\#($0)","filter":"search(@.a,'(a|b)*a(a|b){13}c\#($0)')"}"# }
  private static func randomText(seed: UInt64) -> String {
    var random = SeededRandom(seed: seed)
    return String((0..<1000).map { _ in Bool.random(using: &random) ? "a" : "b" })
  }
  private static func repeated(_ count: Int) -> String {
    (0..<count).map { _ in "match(@.a,'a{4000}')" }.joined(separator: "||")
  }
  private static let comparisons = (0..<5000).map { "@.a==\($0)" }.joined(separator: "||")
  private static let fixed = (0..<10_000).map { "\"\($0)\":\"y\"" }.joined(separator: ",")
  private static let long = "\"" + String(repeating: "x", count: 4 << 20) + "\""

  static let attacks: [Attack] = [
    Attack(
      testDescription: "a query that compares each element with the last one",
      preparation: [
        ("define", #"{"feed":"a","kind":"array"}"#),
        ("insert", #"{"feed":"a","element":\#(list(20_000) { "[\($0)]" })}"#),
      ],
      requests: [("query", #"{"feed":"a","path":"$[*][?@ == $[0][19999]]"}"#)]),
    Attack(
      testDescription: "a bin whose filter compares each element with the last one",
      options: ["--max-query-steps", "5000"],
      preparation: [
        ("define", #"{"feed":"c","kind":"collection","bins":[{"name":"x","filter":"@.v[?@ == $.v[9999]]"}]}"#)
      ],
      requests: [("update", #"{"feed":"c","element":{"id":1,"v":\#(list(10_000) { "[\($0)]" })}}"#)],
      limit: "maxQuerySteps"),
    Attack(
      testDescription: "filters of many bins over many elements",
      options: ["--max-request-steps", "50000"],
      preparation: [("define", #"{"feed":"c","kind":"collection","bins":\#(slowBins)}"#)],
      requests: [("update", #"{"feed":"c","elements":\#(list(800) { #"{"id":\#($0),"v":[1,2,3]}"# })}"#)],
      limit: "maxRequestSteps"),
    Attack(
      testDescription: "new bins for many elements",
      options: ["--max-request-steps", "100000"],
      preparation: [
        ("define", #"{"feed":"c","kind":"collection"}"#),
        ("update", #"{"feed":"c","elements":\#(list(2000) { #"{"id":\#($0)}"# })}"#),
      ],
      requests: [("define", #"{"feed":"c","kind":"collection","replace":true,"bins":\#(slowBins)}"#)],
      limit: "maxRequestSteps"),
    Attack(
      testDescription: "short elements that filters judge for long",
      preparation: [("define", #"{"feed":"c","kind":"collection","bins":\#(quadraticBins)}"#)],
      requests: (0..<20).map {
        ("update", #"{"feed":"c","element":{"id":\#($0),"a":\#(list(100) { "\($0)" })}}"#)
      }),
    Attack(
      testDescription: "patterns whose matches have many states",
      preparation: [("define", #"{"feed":"c","kind":"collection","bins":\#(patterns)}"#)],
      requests: (0..<5).map { ("update", #"{"feed":"c","element":{"id":1,"a":"\#(randomText(seed: UInt64($0)))"}}"#) }),
    Attack(
      testDescription: "definitions and queries with large patterns",
      preparation: [("define", #"{"feed":"c","kind":"collection"}"#)],
      requests: (0..<10).map {
        ("define", #"{"feed":"p\#($0)","kind":"collection","bins":[{"name":"x","filter":"\#(repeated(5000))"}]}"#)
      } + [
        ("delete", #"{"feed":"c","where":"\#(repeated(2900))"}"#),
        ("query", #"{"feed":"c","path":"$[?\#(repeated(2900))]"}"#),
      ],
      limit: "maxFilterBytes"),
    Attack(
      testDescription: "a filter of many comparisons over many elements",
      options: ["--max-request-steps", "50000"],
      preparation: [
        ("define", #"{"feed":"c","kind":"collection","bins":[{"name":"x","filter":"\#(comparisons)"}]}"#)
      ],
      requests: [("update", #"{"feed":"c","elements":\#(list(100) { #"{"id":\#($0),"a":-1}"# })}"#)],
      limit: "maxRequestSteps"),
    Attack(
      testDescription: "a slots feed with as many fixed rows as are allowed",
      preparation: [
        ("define", #"{"feed":"a","kind":"array"}"#),
        ("define", #"{"feed":"s","kind":"slots","contents":{"x":"a","y":"a2"},"pattern":["x"],"fixed":{\#(fixed)}}"#),
      ],
      requests: (0..<20).map { ("insert", #"{"feed":"a","element":\#($0)}"#) }),
    Attack(
      testDescription: "names of four megabytes",
      preparation: [("define", #"{"feed":"a","kind":"array"}"#)],
      requests: [
        ("hello", #"{"client":\#(long)}"#), ("get", #"{"feed":\#(long),"at":[0,0]}"#), ("watch", #"{"feed":\#(long)}"#),
        ("watch", #"{"feed":"a","since":{"epoch":\#(long),"revision":1}}"#),
        ("query", #"{"feed":"a","path":\#(long)}"#),
      ],
      limit: "maxPathBytes"),
    Attack(
      testDescription: "feeds in feeds in feeds",
      preparation: [("define", #"{"feed":"f0","kind":"array"}"#)]
        + (1...300).map { ("define", #"{"feed":"f\#($0)","kind":"composed","children":["f\#($0 - 1)"]}"#) },
      requests: (0..<5).map { _ in ("feeds", "{}") }
        + (301...513).map { ("define", #"{"feed":"f\#($0)","kind":"composed","children":["f\#($0 - 1)"]}"#) },
      limit: "maxLevels"),
    Attack(
      testDescription: "views with slow filters over the feed of another user",
      options: ["--max-derived-steps", "500000"],
      requests: (0..<10).map {
        ("define", #"{"feed":"v\#($0)","kind":"view","of":"mine","filter":"@..[?@..[?@ == 1]]"}"#)
      },
      limit: "maxDerivedSteps"),
    Attack(
      testDescription: "a transaction of many slow operations",
      options: ["--max-request-steps", "50000"],
      preparation: [("define", #"{"feed":"c","kind":"collection","bins":\#(slowBins)}"#)],
      requests: [
        (
          "transaction",
          #"{"ops":\#(list(800) { #"{"method":"update","params":{"feed":"c","element":{"id":\#($0),"v":[1]}}}"# })}"#
        )
      ],
      limit: nil),
  ]

  @Test("another user is answered during the attack and nothing is left of it", arguments: attacks)
  func attack(_ attack: Attack) throws {
    let directory = try TemporaryDirectory()
    expectEqual(chmod(directory.path, 0o755), 0)
    let daemon = try DaemonProcess(attack.options, directory: directory)
    expectEqual(chmod(daemon.socketPath, 0o666), 0)
    let other = try daemon.connect()
    for feed in ["mine", "a2"] { _ = try HostileTests.ask(other, "define", #"{"feed":"\#(feed)","kind":"array"}"#) }
    let before = try Footprint(of: daemon.process.pid)
    let quiet = try PingMeter.measure(daemon) { for _ in 0..<10 { _ = try HostileTests.ask(other, "ping") } }
    try expect(HostileTests.waitForConnections(1, other))
    var attacker: RawClient? = try OtherUser.connect(daemon.socketPath)
    for (method, params) in attack.preparation {
      let answer = try attacker.map { try HostileTests.ask($0, method, params) }
      expectEqual(answer?.has("result"), true, "\(method): \(String(describing: answer).prefix(200))")
    }
    var last: JSONValue?
    let attacked = try PingMeter.measure(daemon) {
      for (method, params) in attack.requests {
        last = try attacker.map { try HostileTests.answer($0, method, params) }
      }
    }
    // Without limits these attacks take minutes and gigabytes; machines that run tests are slow as well.
    expect(attacked.longestPing < 10_000_000_000)
    // The attacker and the client of the meter.
    expect(attacked.descriptors <= before.descriptors + 2)
    expect(Footprint.isBelow(attacked.memory, before.memory + (160 << 20)))
    let limit = last?["error"]["data"]["limit"].string
    if let expected = attack.limit { expectEqual(limit, expected) }
    // The changes of the other user are as before.
    for row in 0..<10 {
      try expect(HostileTests.ask(other, "insert", #"{"feed":"mine","element":[\#(row)]}"#).has("result"))
    }
    attacker = nil
    try expect(HostileTests.waitForConnections(1, other))
    let after = try Footprint(of: daemon.process.pid)
    expectEqual(after.descriptors, before.descriptors)
    expect(Footprint.isBelow(after.memory, before.memory + (96 << 20)))
    let calm = try PingMeter.measure(daemon) { for _ in 0..<10 { _ = try HostileTests.ask(other, "ping") } }
    for measurement in [quiet, calm] { expect(measurement.longestPing < 10_000_000_000) }
    expect(calm.descriptors <= quiet.descriptors)
  }

  @Test("a daemon starts again after a refused request with a slow filter")
  func poison() throws {
    let directory = try TemporaryDirectory()
    let options = ["--state", directory.file("state"), "--max-query-steps", "5000"]
    var daemon = try DaemonProcess(options, directory: directory)
    let client = try daemon.connect()
    let bins = #"[{"name":"x","filter":"@.v[?@ == $.v[9999]]"}]"#
    _ = try HostileTests.ask(client, "define", #"{"feed":"c","kind":"collection","bins":\#(bins)}"#)
    let element = #"{"id":1,"v":\#(Self.list(10_000) { "[\($0)]" })}"#
    for _ in 0..<5 {
      let refused = try HostileTests.ask(client, "update", #"{"feed":"c","element":\#(element)}"#)
      expectEqual(refused["error"]["code"].int, -32007)
    }
    _ = try HostileTests.ask(client, "update", #"{"feed":"c","element":{"id":2}}"#)
    daemon.process.signal(SIGKILL)
    _ = try daemon.process.waitForExit()
    daemon = try DaemonProcess(options, directory: directory)
    let described = try HostileTests.ask(daemon.connect(), "describe", #"{"feed":"c"}"#)
    expectEqual(described["result"]["revision"].int, 1)
  }
}

/// Connections of another user.
enum OtherUser {
  static let uid = 65534

  /// Connects as another user if this process may change its user. Only the calling thread does so, and only meanwhile.
  static func connect(_ path: String) throws -> RawClient {
    guard geteuid() == 0, let symbol = dlsym(nil, "syscall") else { return try RawClient(path: path) }
    // The function of the C library would change the user of all threads.
    typealias Call = @convention(c) (Int, Int, Int, Int) -> Int
    let call = unsafeBitCast(symbol, to: Call.self)
    #if arch(x86_64)
      let number = 117
    #else
      let number = 147
    #endif
    guard call(number, -1, uid, -1) == 0 else { throw TestFailure("setresuid: errno \(errno)") }
    defer { _ = call(number, -1, 0, -1) }
    return try RawClient(path: path)
  }
}

/// Sends pings of one more client while something else happens, each after the answer to the one before, and looks at what the
/// daemon uses meanwhile.
final class PingMeter: Sendable {
  struct Measurement {
    /// The nanoseconds of the longest round trip.
    var longestPing: UInt64 = 0
    /// The most bytes and descriptors that the daemon used.
    var memory = 0
    var descriptors = 0
  }

  private let path: String
  private let pid: Int32
  private let isOver = Atomic<Bool>(false)
  private let measurement = Mutex(Measurement())

  private init(_ daemon: DaemonProcess) {
    path = daemon.socketPath
    pid = daemon.process.pid
  }

  /// Measures at least one ping.
  static func measure(_ daemon: DaemonProcess, during body: () throws -> Void) throws -> Measurement {
    let meter = PingMeter(daemon)
    let thread = try Thread("ping") { meter.run() }
    do {
      try body()
    } catch {
      meter.isOver.store(true, ordering: .relaxed)
      thread.join()
      throw error
    }
    meter.isOver.store(true, ordering: .relaxed)
    thread.join()
    let measurement = meter.measurement.withLock { $0 }
    if measurement.longestPing == 0 { throw TestFailure("no ping was answered") }
    return measurement
  }

  private func run() {
    guard let client = try? RawClient(path: path) else { return }
    repeat {
      let start = MonotonicClock.now
      guard (try? HostileTests.ask(client, "ping"))?.has("result") == true else { return }
      let time = MonotonicClock.now - start
      guard let footprint = try? Footprint(of: pid) else { return }
      measurement.withLock {
        $0.longestPing = max($0.longestPing, time)
        $0.memory = max($0.memory, footprint.memory)
        $0.descriptors = max($0.descriptors, footprint.descriptors)
      }
    } while !isOver.load(ordering: .relaxed)
  }
}
