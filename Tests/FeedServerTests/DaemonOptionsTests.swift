import FeedModel
import FeedServer
import FeedSystem
import TestSupport
import Testing

@Suite("Command line of feedd")
struct DaemonOptionsTests {
  func parse(_ arguments: [String], _ variables: [String: String] = [:]) throws -> DaemonOptions {
    switch try DaemonOptions.parse(arguments, environment: Environment(variables), width: 80) {
    case .run(let options), .check(let options), .checkConfiguration(let options): return options
    case .reload(let pid, _): throw UsageError("reload: \(pid)")
    case .print(let text): throw UsageError("printed: \(text)")
    }
  }

  func failure(_ arguments: [String]) -> String? {
    do {
      _ = try parse(arguments)
      return nil
    } catch {
      return "\(error)"
    }
  }

  @Test func defaultsWithoutArguments() throws {
    let options = try parse([])
    expectEqual(options.socketPath, "/run/feedd/feedd.sock")
    expect(!options.namesSocket)
    expectEqual(options.limits, Limits())
    expectEqual(options.durability, .process)
    expectEqual(options.drainTimeout, .seconds(5))
    expectEqual(options.logLevel, .info)
    expectEqual(options.stateDirectory, nil)
    try expectEqual(parse([], ["FEEDD_SOCKET": "/a"]).socketPath, "/a")
  }

  @Test func optionsAndVariablesAreParsed() throws {
    let options = try parse([
      "--socket", "/b", "--state=/var/lib/feedd", "--durability", "memory", "--drain-timeout", "250ms", "--log-level",
      "debug", "--max-frame", "1M", "--max-connections=10", "--frame-timeout", "1.5s", "--history-seconds", "2m",
    ])
    expectEqual(options.socketPath, "/b")
    expect(options.namesSocket)
    expectEqual(options.stateDirectory, "/var/lib/feedd")
    expectEqual(options.drainTimeout, .milliseconds(250))
    expectEqual(options.logLevel, .debug)
    expectEqual(options.limits.maxFrame, 1 << 20)
    expectEqual(options.limits.maxConnections, 10)
    expectEqual(options.limits.frameTimeout, 2)
    expectEqual(options.limits.historySeconds, 120)
  }

  @Test(arguments: [
    (["--durability", "paper"], "--durability 'paper': expected one of memory, process, disk"),
    (["serve"], "unexpected word 'serve': feedd takes options only"),
    (["--max-frame", "0"], "--max-frame '0': expected a number of bytes from 4KiB to 1GiB, such as 4096, 64K or 16M"),
    (["--check", "--check-config", "a.json"], "--check and --check-config exclude each other"),
    (["--check-reload", "7", "--reload", "7"], "--reload and --check-reload exclude each other"),
    (["--group", "g", "--skip-damaged"], "--skip-damaged is for a log in the state directory; remove --group"),
    (["--skip-batch", "3", "--group", "g"], "--skip-batch is for a log in the state directory; remove --group"),
    (
      ["--durability", "memory", "--skip-damaged"],
      "--skip-damaged needs a state directory; remove --durability memory"
    ),
    (["--max-connections", "many"], "--max-connections 'many': expected an integer from 1 to 1,000,000"),
  ])
  func wrongCommandLinesAreRefused(arguments: [String], message: String) {
    expectEqual(failure(arguments), message)
  }

  /// Every limit has a flag that sets it, and the help contains its default in the notation of the flag.
  @Test func everyLimitHasAFlag() throws {
    guard case .print(let help) = try DaemonOptions.parse(["--help"], environment: Environment([:]), width: 100) else {
      Issue.record("no help")
      return
    }
    for limit in Limits.all {
      expect(help.contains("--\(limit.flag) "))
      for value in [limit.range.lowerBound, limit.range.upperBound] {
        let options = try parse(["--\(limit.flag)", "\(value)"])
        expectEqual(options.limits[keyPath: limit.keyPath], value, "\(limit.flag)")
      }
      expect(limit.range.contains(Limits()[keyPath: limit.keyPath]), "\(limit.flag)")
    }
    expect(help.contains("(default: 16MiB)"))
    expect(help.contains("(default: 30s)"))
  }

  @Test func version() throws {
    let outcome = try DaemonOptions.parse(["-V"], environment: Environment([:]), width: 80)
    expectEqual(outcome, .print("feedd \(ProgramVersion.text)\n"))
  }
}
