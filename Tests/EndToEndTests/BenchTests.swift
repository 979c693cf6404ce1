import FeedJSON
import FeedSystem
import Glibc
import TestSupport
import Testing

/// `feedbench` runs and prints plausible measurements. No test depends on speed.
struct BenchTests {
  private func run(_ arguments: [String]) throws -> ClientCommand.Outcome {
    try ClientCommand.finish(try ChildProcess(BuildProducts.program("feedbench"), arguments))
  }

  /// Parts that take 15 seconds of the processor also at the smallest scale.
  private static let longRuns =
    TestEffort.isLong ? [["core", "--part", "fanout", "--part", "large", "--scale", "1"]] : []

  @Test(
    "Every command prints numbers, one object a line",
    arguments: [
      ["engine", "--count", "600", "--watchers", "0", "--watchers", "3", "--elements", "9"],
      ["socket", "--count", "600", "--watchers", "1", "--watchers", "3", "--snapshot", "500"],
      ["long", "--count", "300"],
      ["core", "--part", "memory", "--part", "nesting", "--scale", "1"],
    ] + longRuns)
  func runs(_ arguments: [String]) throws {
    let outcome = try run(arguments + ["--runs", "1", "--json"])
    expectEqual(outcome.code, 0, "\(outcome.errors)")
    expect(outcome.lines.count >= 2)
    for line in outcome.lines { try expect(measurement(line, of: arguments[0]), "\(line)") }
  }

  /// Whether a line is an object with the command, a case and a positive number.
  private func measurement(_ line: String, of command: String) throws -> Bool {
    var scanner = JSONScanner()
    return try Array(line.utf8).withUnsafeBytes { bytes in
      let object = try scanner.scan(bytes)
      let numbers = object.members.filter { $0.value.kind == .number }
      return object.member("benchmark")?.string == command && object.member("case")?.string?.isEmpty == false
        && numbers.contains { Double(String(decoding: $0.value.text, as: UTF8.self)).map { $0 > 0 } ?? false }
    }
  }

  @Test func tableNamesItsUnits() throws {
    let outcome = try run(["engine", "--count", "20", "--watchers", "0", "--elements", "9", "--runs", "1"])
    expectEqual(outcome.code, 0)
    expectEqual(outcome.lines.first, "pushes of 200 bytes, 256 in a turn")
    expect(outcome.lines.dropFirst().allSatisfy { $0.contains(" ns ") })
  }

  @Test func helpListsCommandsAndOptions() throws {
    let help = try run(["--help"])
    expectEqual(help.code, 0)
    for command in ["engine", "socket", "long", "core"] {
      expect(help.output.contains("\n  \(command) "))
      let own = try run([command, "--help"])
      expectEqual(own.code, 0)
      expect(own.output.contains(command == "core" ? "--scale N" : "--count N"))
    }
  }

  @Test(arguments: [
    (
      ["sokcet"],
      "unknown command 'sokcet': the commands are engine, socket, long, core, log"
    ),
    (["engine", "--cuont", "1"], "unknown option --cuont; did you mean --count?"),
    (["engine", "extra"], "unexpected argument 'extra'"),
    (["engine", "--watchers", "-1"], "--watchers '-1': expected an integer from 0 to 10,000"),
  ])
  func wrongCommandLineIsRefused(_ arguments: [String], message: String) throws {
    let outcome = try run(arguments)
    expectEqual(outcome.code, 2)
    expect(outcome.output.isEmpty)
    expectEqual(outcome.errors, "feedbench: \(message); run 'feedbench --help'\n")
  }

  @Test func missingDaemonIsNamed() throws {
    let outcome = try run(["socket", "--count", "10", "--runs", "1", "--socket", "/nonexistent/feedd.sock"])
    expectEqual(outcome.code, 1)
    expect(outcome.errors.contains("/nonexistent/feedd.sock"))
  }
}
