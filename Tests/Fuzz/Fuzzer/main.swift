import FeedChange
import FeedEngine
import FeedJSON
import FeedModel
import FeedQuery
import FeedWire
import Glibc

@testable import FeedServer
@testable import Simulator

// The program that scripts/fuzz builds: feedd-fuzz TARGET [LIBFUZZER OPTION]... [CORPUS]...
// It is not part of the default build. libFuzzer mutates the inputs; the address sanitizer and the assertions find faults.

@_silgen_name("LLVMFuzzerRunDriver")
func runLibFuzzer(
  _ count: UnsafeMutablePointer<Int32>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
  _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

/// Scans the input and walks over its value; the compact copy must be JSON with the same value.
func fuzzJSON(_ bytes: UnsafeRawBufferPointer) {
  var scanner = JSONScanner()
  guard let value = try? scanner.scan(bytes) else { return }
  var compact = ByteBuffer()
  compact.append(compact: value)
  var other = JSONScanner()
  let isSame = try? other.scan(compact.bytes).equals(value)
  precondition(isSame == true, "the compact copy differs from the value")
}

/// Splits the input at its first zero byte into a text and a JSON value.
func splitting(_ bytes: UnsafeRawBufferPointer, _ body: (String, JSONView) -> Void) {
  guard let end = bytes.firstIndex(of: 0) else { return }
  let text = String(decoding: bytes[..<end], as: UTF8.self)
  var scanner = JSONScanner()
  guard let value = try? scanner.scan(UnsafeRawBufferPointer(rebasing: bytes[(end + 1)...])) else { return }
  body(text, value)
}

/// Parses a JSONPath and evaluates it within a budget of steps.
func fuzzPath(_ bytes: UnsafeRawBufferPointer) {
  splitting(bytes) { text, value in
    guard let path = try? JSONPath(parsing: text) else { return }
    var steps = 20_000
    path.evaluate(value, steps: &steps) { _ in }
  }
}

/// Parses an I-Regexp and matches the text after the first zero byte, whatever bytes it has.
func fuzzRegexp(_ bytes: UnsafeRawBufferPointer) {
  guard let end = bytes.firstIndex(of: 0) else { return }
  guard let expression = try? IRegexp(parsing: String(decoding: bytes[..<end], as: UTF8.self)) else { return }
  let text = UnsafeRawBufferPointer(rebasing: bytes[(end + 1)...])
  let matches = expression.matches(whole: text)
  precondition(!matches || expression.searches(in: text), "the whole text matches and no part of it")
}

/// Parses a filter, with its regular expressions, and evaluates it within a budget of steps. It must not take more steps than
/// its bound.
func fuzzFilter(_ bytes: UnsafeRawBufferPointer) {
  splitting(bytes) { text, value in
    guard let filter = try? Filter(parsing: text) else { return }
    var steps = 20_000
    _ = filter.accepts(value, steps: &steps)
    precondition(20_000 - max(steps, 0) <= filter.mostSteps(over: value.text.count), "the bound is too low")
  }
}

/// Reads the definition of a feed.
func fuzzDefinition(_ bytes: UnsafeRawBufferPointer) {
  var scanner = JSONScanner()
  guard let object = try? scanner.scan(bytes) else { return }
  _ = try? FeedDefinition(parsing: object, limits: Limits())
}

/// Reads a configuration file.
func fuzzConfiguration(_ bytes: UnsafeRawBufferPointer) {
  let accounts = AccountNames(
    user: { $0 == "root" ? 0 : nil }, group: { $0 == "staff" ? (gid: 50, members: [1000, 1001]) : nil })
  let surroundings = Configuration.Surroundings(directory: "/etc/feedd", limits: Limits(), accounts: accounts)
  do throws(ConfigurationError) {
    _ = try Configuration(parsing: bytes, surroundings).effectiveLimits(surroundings)
  } catch {
    precondition(!"\(error)".contains("\n"), "an error of several lines")
  }
}

/// Sends the lines of the input as frames to a daemon with some feeds, as one client; the last line as it stands, header and
/// all. Everything answered must be frames of JSON, and what the log stored must lead to the same state again.
func fuzzRequest(_ bytes: UnsafeRawBufferPointer) {
  var limits = Limits()
  limits.maxQuerySteps = 20_000
  guard let daemon = try? SimulatedDaemon(limits: limits, window: 1, disk: nil) else { return }
  daemon.link.isCalm = true
  let line = daemon.link.connect(Peer(uid: 0, gid: 0, pid: 1))
  run(daemon)
  for text in definitions { daemon.link.send(line, FrameText.frame(text)) }
  run(daemon)
  let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
  for text in lines.dropLast() where !text.isEmpty {
    daemon.link.send(line, FrameText.header(text.count))
    daemon.link.send(line, Array(text))
  }
  if let last = lines.last { daemon.link.send(line, Array(last)) }
  for _ in 0..<5 {
    run(daemon)
    daemon.advance(seconds: 0.3)
  }
  check(daemon.link.take(line))
  let (revision, contents) = (daemon.engine.catalog.revision, allContents(daemon))
  do { try daemon.restart(.kill(tail: 0)) } catch { preconditionFailure("replay fails: \(error)") }
  precondition(daemon.engine.catalog.revision == revision, "replay leads to another revision")
  precondition(allContents(daemon) == contents, "replay leads to other rows")
}

/// Runs turns as long as one is due.
func run(_ daemon: SimulatedDaemon) {
  for _ in 0..<2000 {
    if !daemon.isDue { return }
    do throws(SimulationFailure) { try daemon.runTurn() } catch { preconditionFailure("\(error)") }
    _ = daemon.log.takeOutcomes()
  }
  preconditionFailure("the daemon has work and makes no progress")
}

/// The rows and the selections of all feeds, as text.
func allContents(_ daemon: SimulatedDaemon) -> [String] {
  daemon.engine.catalog.feeds.keys.sorted().map { "\($0): \(daemon.content(of: $0) ?? [])" }
    + daemon.selections().sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
}

/// The feeds that the requests of the corpus name.
let definitions = [
  #"{"jsonrpc":"2.0","id":0,"method":"define","params":{"feed":"inbox","kind":"collection","bins":[{"name":"urgent","filter":"@.priority >= 8"},{"name":"rest"}]}}"#,
  #"{"jsonrpc":"2.0","id":0,"method":"define","params":{"feed":"styles","kind":"array","type":"$.kind"}}"#,
  #"{"jsonrpc":"2.0","id":0,"method":"define","params":{"feed":"banner","kind":"single"}}"#,
  #"{"jsonrpc":"2.0","id":0,"method":"define","params":{"feed":"home","kind":"composed","children":["inbox","styles","banner"]}}"#,
  #"{"jsonrpc":"2.0","id":0,"method":"define","params":{"feed":"tabs","kind":"segmented","children":["inbox","styles"],"current":0}}"#,
  #"{"jsonrpc":"2.0","id":0,"method":"watch","params":{"feed":"home"}}"#,
]

/// The stream is whole frames of JSON.
func check(_ stream: [UInt8]) {
  stream.withUnsafeBytes { bytes in
    var rest = bytes
    while !rest.isEmpty {
      guard case .complete(let payload) = Frame.first(in: rest, maxFrame: .max) else {
        preconditionFailure("an incomplete frame was written")
      }
      var scanner = JSONScanner()
      precondition((try? scanner.scan(payload)) != nil, "a message is not JSON")
      rest = UnsafeRawBufferPointer(rebasing: rest[(Frame.headerLength + payload.count)...])
    }
  }
}

/// Plays a history of the simulator, which compares the daemon with the reference model: eight bytes of seed, then eight
/// bytes for each step.
func fuzzModel(_ bytes: UnsafeRawBufferPointer) {
  guard bytes.count >= 8 else { return }
  var numbers = (0..<min(bytes.count / 8, 60)).map { bytes.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self) }
  let seed = numbers.removeFirst()
  do {
    try Simulation(seed: seed).run(numbers)
  } catch {
    preconditionFailure("\(error)")
  }
}

let targets: [String: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32] = [
  "json": { run($0, $1, fuzzJSON) },
  "path": { run($0, $1, fuzzPath) },
  "filter": { run($0, $1, fuzzFilter) },
  "regexp": { run($0, $1, fuzzRegexp) },
  "definition": { run($0, $1, fuzzDefinition) },
  "configuration": { run($0, $1, fuzzConfiguration) },
  "request": { run($0, $1, fuzzRequest) },
  "model": { run($0, $1, fuzzModel) },
  "recovery": { run($0, $1, fuzzRecovery) },
  "client": { run($0, $1, fuzzClient) },
]

func run(_ bytes: UnsafePointer<UInt8>?, _ count: Int, _ body: (UnsafeRawBufferPointer) -> Void) -> Int32 {
  body(UnsafeRawBufferPointer(start: bytes, count: count))
  return 0
}

let words = CommandLine.arguments
guard words.count > 1, let target = targets[words[1]] else {
  print("feedd-fuzz: missing or unknown target; use one of \(targets.keys.sorted().joined(separator: ", "))")
  exit(2)
}
var count = CommandLine.argc - 1
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv + 1
exit(runLibFuzzer(&count, &arguments, target))
