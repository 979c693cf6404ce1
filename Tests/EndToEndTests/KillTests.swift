import FeedSystem
import Glibc
import TestSupport
import Testing

/// Kills the daemon at random moments under load and compares each restarted daemon with a record: no acknowledged request is
/// lost, no transaction is applied in part, order and bins are right, and resuming watchers receive the missed changes.
///
/// 120 kills over all runs, 2,000 with `scripts/test --long`, or `FEEDD_KILLS`. The runs are independent and run side by side.
struct KillTests {
  private static let runs = 4
  private static var killsOfARun: Int { TestEffort.count(120, long: 2_000, variable: "FEEDD_KILLS") / runs }

  @Test(arguments: 0..<runs) func acknowledgedRequestsSurviveKills(_ run: Int) throws {
    let killer = try Killer(seed: UInt64(run), durability: run == 3 ? "disk" : "process")
    try killer.define()
    for _ in 0..<Self.killsOfARun { try killer.restartAndKill() }
    try killer.restart { _ in }
    let returns = killer.watchers.reduce(0) { $0 + $1.returns }
    let resumptions = killer.watchers.reduce(0) { $0 + $1.resumptions }
    expect(returns >= Self.killsOfARun)
    expect(resumptions * 10 >= returns * 9, "seed \(run): \(resumptions) of \(returns) resumed by delta")
  }
}

/// Starts and kills daemons on one state directory, and checks what each of them serves.
final class Killer {
  let directory: TemporaryDirectory
  let seed: UInt64
  let durability: String
  var random: SeededRandom
  let watchers = ["all", "c/hi", "log"].map { KillWatcher(feed: $0) }
  var model = KillModel()
  /// The last request that was acknowledged, and the last one that was sent.
  var acknowledged = 0
  var sent = 0

  init(seed: UInt64, durability: String) throws {
    self.seed = seed
    self.durability = durability
    random = SeededRandom(seed: seed)
    directory = try TemporaryDirectory()
  }

  private var arguments: [String] {
    // With a small journal an image is nearly always being written.
    [
      "--state", directory.file("state"), "--durability", durability, "--image-journal", "16K", "--log-level",
      "warning",
    ]
  }

  func define() throws {
    let daemon = try DaemonProcess(arguments, directory: directory)
    let client = try daemon.connect()
    for definition in KillModel.definitions {
      try client.send(#"{"jsonrpc":"2.0","id":1,"method":"define","params":\#(definition)}"#)
      try require(try JSONValue(client.receive()).has("result"))
    }
    daemon.process.signal(SIGKILL)
    _ = try daemon.process.waitForExit()
  }

  /// Starts a daemon, compares its state with the record, and passes it to `use`.
  func restart(_ use: (DaemonProcess) throws -> Void) throws {
    let daemon = try DaemonProcess(arguments, directory: directory)
    for watcher in watchers {
      let problem = try watcher.comeBack(to: daemon)
      expectEqual(problem, nil, "seed \(seed), after request \(acknowledged), watcher of \(watcher.feed)")
    }
    let found = watchers[0].sections
    let last = found.first?.last.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    expect(last >= acknowledged, "seed \(seed): acknowledged requests were lost")
    expect(last <= sent, "seed \(seed): the state contains a request that was not sent")
    model.advance(to: last)
    expectEqual(found, model.sections, "seed \(seed), after request \(last)")
    (acknowledged, sent) = (last, last)
    try use(daemon)
  }

  /// Starts a daemon, sends requests, and kills it after none, some or all of them were answered.
  func restartAndKill() throws {
    if Int.random(in: 0..<8, using: &random) == 0 { try killDuringStart() }
    let count = Int.random(in: 1...200, using: &random)
    let answers = Int.random(in: 0...count, using: &random)
    var (first, got) = (0, 0)
    try restart { daemon in
      first = model.last + 1
      let writer = try daemon.connect()
      try writer.sendBytes((first..<first + count).flatMap { RawClient.frame(Array(KillModel.request($0).utf8)) })
      var last = 0
      while got < answers, let answer = try writer.receive() {
        last = try Self.check(answer, after: last, first: first)
        got += 1
      }
      daemon.process.signal(SIGKILL)
      while let answer = try writer.receive() {
        last = try Self.check(answer, after: last, first: first)
        got += 1
      }
      for watcher in watchers { try watcher.drain() }
      _ = try daemon.process.waitForExit()
    }
    sent = first + count - 1
    acknowledged = first + got - 1
  }

  /// Checks that an answer is a result and the next one in order.
  private static func check(_ answer: String, after last: Int, first: Int) throws -> Int {
    let expected = last == 0 ? first : last + 1
    let frame = try JSONValue(answer)
    guard frame["id"].int == expected, frame.has("result") else {
      throw TestFailure("expected the result of request \(expected): \(answer)")
    }
    return expected
  }

  /// Kills a daemon while it starts: at once, or directly after it read its state.
  private func killDuringStart() throws {
    let process = try ChildProcess(
      BuildProducts.program("feedd"), ["--socket", directory.file("feedd.sock")] + arguments.dropLast(2))
    if Bool.random(using: &random) { try process.errors.wait(lines: 1) }
    process.signal(SIGKILL)
    _ = try process.waitForExit()
  }
}
