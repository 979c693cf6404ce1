import FeedChange
import FeedClient
import FeedEngine
import FeedJSON
import FeedModel
import FeedSources
import FeedSystem

extension Daemon {
  /// `--reload` and `--check-reload`: verify the configuration file with which a running daemon was started. `--reload`
  /// parses it, sends SIGHUP to the daemon, which knows whether it fits its feeds, and prints what took effect. So a service
  /// manager's reload fails if the file is invalid, and the daemon keeps its configuration.
  /// - Returns: 0 if the file is valid and, for `--reload`, in effect; otherwise 1.
  static func reload(_ pid: Int, signals: Bool) -> Int32 {
    do {
      let daemon = try RunningDaemon(pid)
      if let file = daemon.configurationFile {
        if signals { _ = try file.read() } else { try daemon.check(file) }
      }
      if signals { try write([try daemon.reload()], to: StandardStreams.output) }
      return 0
    } catch {
      try? write(["feedd: \(error)"], to: StandardStreams.error)
      return 1
    }
  }
}

/// Another process of this program, as `/proc` shows it.
private struct RunningDaemon {
  private let pid: Int
  private let environment: Environment
  let options: DaemonOptions

  /// - Throws: if the process does not exist or is no daemon of this program.
  init(_ pid: Int) throws {
    self.pid = pid
    guard let name = try? SmallFile.read("/proc/\(pid)/comm") else {
      throw UsageError("cannot reload process \(pid): there is no such process")
    }
    guard try name == SmallFile.read("/proc/self/comm") else {
      throw UsageError("cannot reload process \(pid): it is not feedd")
    }
    environment = Environment(parsing: (try? SmallFile.read("/proc/\(pid)/environ")) ?? [])
    let words = try SmallFile.read("/proc/\(pid)/cmdline").split(separator: 0, omittingEmptySubsequences: false)
    let arguments = words.dropFirst().dropLast().map { String(decoding: $0, as: UTF8.self) }
    guard case .run(let options) = try DaemonOptions.parse(arguments, environment: environment, width: 80) else {
      throw UsageError("cannot reload process \(pid): it does not run as a daemon")
    }
    self.options = options
  }

  /// The working directory of the process.
  private var directory: String { "/proc/\(pid)/cwd" }

  var configurationFile: ConfigurationFile? { ConfigurationFile(options, in: directory) }

  /// Verifies a configuration file. What its feeds show may be feeds that clients have defined in the daemon.
  func check(_ file: ConfigurationFile) throws {
    let present = try? DaemonStatistics(socketPath, pid)
    _ = try Daemon.verify(file, options) { present?.hasFeed($0) ?? false }
  }

  /// Makes the daemon read its configuration, and returns what took effect.
  /// - Throws: if the daemon refuses the configuration.
  func reload() throws -> String {
    let statistics: DaemonStatistics
    do {
      statistics = try DaemonStatistics(socketPath, pid)
    } catch {
      try signal()
      return
        "feedd (pid \(pid)) reads its configuration; what took effect is in its log, because it cannot be asked: \(error)"
    }
    let before = try statistics.configuration()
    try signal()
    let report = try statistics.configuration(after: before.reads)
    if report.status == "storing" {
      throw ReloadError(
        "timed out: the feeds of the file are not stored yet; the daemon logs it if they are refused: \(report.text)")
    }
    guard report.status == "applied" else { throw ReloadError(report.text) }
    return "feedd (pid \(pid)) read \(report.file ?? "its databases; it has no configuration file"): \(report.text)"
  }

  private func signal() throws(SystemError) { try ProcessIdentity.send(SignalQueue.hangUp, to: Int32(pid)) }

  private var socketPath: String {
    options.socketPath.hasPrefix("/") ? options.socketPath : "\(directory)/\(options.socketPath)"
  }
}

/// The reason why a daemon did not reload its configuration.
private struct ReloadError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// Asks a daemon over its socket for its statistics and feeds.
private final class DaemonStatistics {
  /// The member `configuration` of `stats`.
  struct Report {
    /// The process ID of the daemon.
    let pid: Int?
    let reads: Int
    let status: String
    let text: String
    let file: String?

    init(_ result: JSONView) {
      let report = result.member("configuration")
      pid = result.member("pid")?.int
      reads = report?.member("reads")?.int ?? 0
      status = report?.member("status")?.string ?? ""
      text = report?.member("text")?.string ?? ""
      file = report?.member("file")?.string
    }
  }

  /// The maximum time to wait for an answer, and for a configuration to be read.
  private static let patience = Duration.seconds(60)
  /// Nanoseconds to wait until the log stores what a configuration changes.
  private static let storingPatience: UInt64 = 10_000_000_000
  /// Nanoseconds between two questions.
  private static let pause: UInt64 = 10_000_000

  private let connection: Connection

  /// Connects to the socket.
  /// - Throws: if it is not the socket of process `pid`.
  init(_ path: String, _ pid: Int) throws {
    connection = try Connection.open(path: path, timeout: Self.patience)
    guard try configuration().pid == pid else { throw ReloadError("\(path) is the socket of another process") }
  }

  private static var deadline: UInt64 { MonotonicClock.now + patience.clampedNanoseconds }

  /// Asks for the present report.
  func configuration() throws -> Report {
    do throws(ClientError) {
      return try connection.call("stats", deadline: Self.deadline) { Report($0) }
    } catch .timedOut {
      throw ReloadError("timed out after 60 s")
    } catch .refused(let error) {
      throw ReloadError(error.message)
    }
  }

  /// Whether the daemon has a feed, as far as it tells.
  func hasFeed(_ name: String) -> Bool {
    let found = try? connection.call(
      "get",
      params: {
        $0.append("{\"feed\":", quoted: FeedName.feeds)
        $0.append(",\"id\":", quoted: name)
        $0.append("}")
      }, deadline: Self.deadline
    ) { $0.member("found")?.bool }
    return found == true
  }

  /// Waits for the report of a later reading, until its changes are stored, but not long for the log.
  func configuration(after reads: Int) throws -> Report {
    let start = MonotonicClock.now
    let end = Self.deadline
    while MonotonicClock.now < end {
      let report = try configuration()
      let mayWait = report.status == "storing" && MonotonicClock.now - start < Self.storingPatience
      if report.reads > reads && !mayWait { return report }
      _ = try connection.wait(until: MonotonicClock.now + Self.pause)
    }
    throw ReloadError("timed out after 60 s: the daemon has not said what became of the file; see its log")
  }
}

extension Daemon {
  /// `--check-config`: reads a configuration file, applies it to an engine without feeds, and compiles the queries of its
  /// managed feeds. Warnings are printed on standard error.
  /// - Returns: 0 if it is valid, otherwise 1.
  static func checkConfiguration(_ options: DaemonOptions) -> Int32 {
    do {
      guard let file = ConfigurationFile(options) else { return 2 }
      let configuration = try verify(file, options, isChecked: true)
      let findings = file.findings(in: configuration)
      try? write(findings.map(\.text), to: StandardStreams.error)
      if findings.contains(where: \.isError) { return 1 }
      let rules =
        configuration.access.map { counted($0.count, "access rule") }
        ?? "no access rules: every client may do everything"
      let (feeds, limits) = (counted(configuration.feedCount, "feed"), counted(configuration.limits.count, "limit"))
      let warnings = findings.isEmpty ? "" : "; \(counted(findings.count, "warning"))"
      try write(["\(file.path): ok: \(feeds), \(limits), \(rules)\(warnings)"], to: StandardStreams.output)
      return 0
    } catch {
      try? write(["\(error)"], to: StandardStreams.error)
      return 1
    }
  }

  /// Reads a configuration file and applies it to an engine without feeds.
  /// - Parameters:
  ///   - isChecked: whether to look for what is allowed but probably a mistake.
  ///   - isElsewhere: whether there is a feed that the file does not define. What shows one is not applied.
  fileprivate static func verify(
    _ file: ConfigurationFile, _ options: DaemonOptions, isChecked: Bool = false,
    isElsewhere: (String) -> Bool = { _ in false }
  ) throws -> Configuration {
    let configuration = try file.read(isChecked: isChecked)
    var options = options
    options.limits = file.limits(configuration)
    let engine = try makeEngine(options, nil, nil, Log(threshold: .error, style: .timestamps))
    let applied = try configuration.leavingOut(isElsewhere)
    _ = try file.apply(applied, to: engine, keeping: [], now: ServerClock(after: 0).now)
    return configuration
  }
}

extension Configuration {
  /// Returns the configuration without the feeds that show feeds from elsewhere, themselves or through others.
  fileprivate func leavingOut(_ isElsewhere: (String) -> Bool) throws(ConfigurationError) -> Configuration {
    let names = Set(entries.map(\.definition.name))
    var left: Set<String> = []
    let rest = entries.filter { entry in
      let isLeft = entry.definition.content.shown.contains {
        let name = String($0.prefix { $0 != "/" })
        return left.contains(name) || !names.contains(name) && isElsewhere(name)
      }
      if isLeft { left.insert(entry.definition.name) }
      return !isLeft
    }
    return try Configuration(entries: rest, limits: limits, access: access)
  }
}

extension ConfigurationFile {
  /// What a check finds in a valid file.
  struct Finding {
    /// Whether it is an error: a query that cannot be executed.
    let isError: Bool
    let text: String
  }

  /// Checks what the daemon accepts: rules for feeds that are not in the file, and managed feeds with their databases.
  func findings(in configuration: Configuration) -> [Finding] {
    var findings = configuration.remarks.map { warning($0) }
    for entry in configuration.entries {
      guard case .managed(let managed) = entry.definition.content else { continue }
      let specification = SourceSpecification(entry.definition.name, managed, limits(configuration))
      for finding in SourceCheck.run(specification) {
        switch finding {
        case .query(let reason):
          let error = ConfigurationError(entry.members["query"] ?? entry.place, reason)
          findings.append(Finding(isError: true, text: "\(path):\(error)"))
        case .database(let reason):
          findings.append(warning(ConfigurationError(entry.members["database"] ?? entry.place, reason)))
        }
      }
    }
    return findings
  }

  private func warning(_ remark: ConfigurationError) -> Finding {
    Finding(
      isError: false,
      text: "\(path):\(remark.place.line):\(remark.place.column): warning: \(remark.place.member): \(remark.reason)")
  }
}
