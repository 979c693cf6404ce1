import FeedEngine
import FeedJSON
import FeedModel
import FeedStorage
import FeedSystem

public struct DaemonOptions: Sendable, Equatable {
  /// `--socket`, or the default for the environment.
  public var socketPath: String
  /// Whether `--socket` was given.
  public var namesSocket = false
  /// `--socket-mode` and `--socket-group`.
  public var socket = SocketSettings()
  /// `--state`: the directory of a durable daemon's state; nil for the default of the environment.
  public var stateDirectory: String?
  public var durability = Durability.process
  /// `--image-interval` and other settings of images.
  public var images = ImagePolicy()
  /// `--skip-batch`: the number of a batch that recovery skips.
  public var skippedBatch: Int?
  /// `--skip-damaged`: whether the log is cut where it does not verify.
  public var skipsDamaged = false
  /// `--config`: definitions, access rules and limits.
  public var configurationPath: String?
  public var limits = Limits()
  /// The names of the limits that are set on the command line.
  public var givenLimits: Set<String> = []
  /// The maximum time between SIGTERM and the end.
  public var drainTimeout: Duration = .seconds(5)
  public var logLevel = LogLevel.info
  /// `--group`: the name of the group of hosts whose feeds these are; nil for none, unless the configuration names one.
  public var group: String?
  /// `--log`: the URLs of the NATS servers that keep the group's log.
  public var logServers: [String] = []
  /// `--log-timeout`: how long a change may wait for the group's log.
  public var logTimeout: Duration = .seconds(5)
  /// `--group-host`: the name of this host in the group.
  public var groupHost: String?
  /// `--metrics-file`: the path of the metrics file; nil for none.
  public var metricsPath: String?

  /// How durably a commit is stored before it is published.
  public enum Durability: String, Sendable, CaseIterable {
    /// Commits are not stored.
    case memory
    /// Commits survive the end of the process.
    case process
    /// Commits survive a power failure.
    case disk
  }
}

extension DaemonOptions {
  /// The result of parsing a command line.
  public enum Outcome: Equatable, Sendable {
    case run(DaemonOptions)
    /// `--check`: verify the state directory.
    case check(DaemonOptions)
    /// `--check-config`: verify a configuration file.
    case checkConfiguration(DaemonOptions)
    /// `--reload` and `--check-reload`: verify the configuration file of the daemon with this pid, then signal it if
    /// `signals`.
    case reload(Int, signals: Bool)
    /// `--help` or `--version`: a text to print on standard output.
    case print(String)
  }

  /// The options that do something other than to run the daemon.
  private static let actionOptions = ["check", "check-config", "reload", "check-reload"]

  /// Parses the arguments without the program's name.
  public static func parse(
    _ arguments: [String], environment: Environment, width: Int
  ) throws(UsageError) -> Outcome {
    let defaultSocket = SocketPath.daemonDefault(environment)
    let table = table(defaultSocket: defaultSocket, defaultState: StatePath.standard(environment))
    let parsed = try table.parse(arguments)
    if parsed.wantsHelp { return .print(table.helpText(width: width)) }
    if parsed.wantsVersion { return .print("feedd \(ProgramVersion.text)\n") }
    if let word = parsed.operands.first { throw UsageError("unexpected word '\(word)': feedd takes options only") }
    var options = DaemonOptions(socketPath: defaultSocket)
    try options.apply(parsed)
    let actions = actionOptions.filter { parsed.contains($0) }
    if actions.count > 1 { throw UsageError("--\(actions[0]) and --\(actions[1]) exclude each other") }
    if let path = parsed.text("check-config") {
      options.configurationPath = path
      return .checkConfiguration(options)
    }
    if let pid = parsed.integer("reload") { return .reload(pid, signals: true) }
    if let pid = parsed.integer("check-reload") { return .reload(pid, signals: false) }
    return parsed.contains("check") ? .check(options) : .run(options)
  }

  private mutating func apply(_ parsed: ParsedOptions) throws(UsageError) {
    configurationPath = parsed.text("config")
    durability = parsed.text("durability").flatMap(Durability.init(rawValue:)) ?? durability
    if let interval = parsed.duration("image-interval") {
      images.interval = max(1, Int(clamping: interval.components.seconds))
    }
    images.journalBytes = parsed.bytes("image-journal") ?? images.journalBytes
    if let path = parsed.text("socket") {
      socketPath = path
      namesSocket = true
    }
    if let text = parsed.text("socket-mode") {
      guard let mode = SocketSettings.mode(text) else {
        throw UsageError("--socket-mode '\(text)': expected \(SocketSettings.modeSyntax)")
      }
      socket.mode = mode
    }
    if let text = parsed.text("socket-group") {
      guard let group = SocketSettings.group(text) else {
        throw UsageError("--socket-group '\(text)': there is no such group")
      }
      socket.group = group
    }
    stateDirectory = parsed.text("state")
    skippedBatch = parsed.integer("skip-batch")
    skipsDamaged = parsed.contains("skip-damaged")
    drainTimeout = parsed.duration("drain-timeout") ?? drainTimeout
    group = parsed.text("group")
    logServers = parsed.text("log").map { $0.split(separator: ",").map(String.init) } ?? []
    logTimeout = parsed.duration("log-timeout") ?? logTimeout
    groupHost = parsed.text("group-host")
    if group != nil && durability == .memory {
      throw UsageError("--group needs a state directory; remove --durability memory")
    }
    if let name = ["skip-batch", "skip-damaged"].first(where: parsed.contains) {
      if group != nil { throw UsageError("--\(name) is for a log in the state directory; remove --group") }
      if durability == .memory { throw UsageError("--\(name) needs a state directory; remove --durability memory") }
    }
    metricsPath = parsed.text("metrics-file")
    logLevel = parsed.text("log-level").flatMap(LogLevel.init(name:)) ?? logLevel
    for limit in Limits.all {
      if let number = limit.unit.number(limit.flag, in: parsed) {
        limits[keyPath: limit.keyPath] = number
        givenLimits.insert(limit.name)
      }
    }
  }
}

extension DaemonOptions {
  /// The command line of `feedd`.
  /// - Parameters:
  ///   - socketPath: the default path, for the help.
  ///   - statePath: the default state directory, for the help; nil if there is none.
  public static func table(defaultSocket socketPath: String, defaultState statePath: String?) -> OptionTable {
    OptionTable(
      program: "feedd", usage: ["[OPTION]..."],
      about: """
        Keeps lists for the programs of this machine in sync. Programs push JSON elements over a Unix socket; feedd sorts \
        them into bins, composes feeds, and tells every watcher by position what changed.
        """,
      examples: """
        feedd --socket "$XDG_RUNTIME_DIR/feedd.sock"    run a daemon of your own
        feedd --config feedd.json --durability disk     survive a loss of power
        feedd --check-config feedd.json                 find mistakes in a file
        """,
      groups: [files(socketPath, statePath), operation, grouping, OptionGroup("Limits", Limits.all.map(limit))],
      notes: """
        BYTES takes the suffixes K, M and G (powers of 1024).
        TIME takes the suffixes ms, s, m, h and d.
        Exit status: 0 ended as asked, 1 failed at run time, 2 wrong command line.
        """)
  }

  private static func files(_ socketPath: String, _ statePath: String?) -> OptionGroup {
    OptionGroup(
      "Files",
      [
        OptionDescription("socket", value: .text("PATH"), help: "socket for clients", defaultText: socketPath),
        OptionDescription(
          "socket-mode", value: .text("MODE"), help: "permissions of the socket, in octal", defaultText: "0660"),
        OptionDescription(
          "socket-group", value: .text("GROUP"), help: "group of the socket, as a name or number",
          defaultText: "that of feedd"),
        OptionDescription(
          "state", value: .text("DIR"), help: "state directory; unused with --durability memory",
          defaultText: statePath),
        OptionDescription(
          "config", value: .text("FILE"), help: "definitions, access rules and limits; SIGHUP reads the file again"),
      ])
  }

  private static let operation = OptionGroup(
    "Operation",
    [
      OptionDescription("check", help: "verify the state directory, print what it contains and exit"),
      OptionDescription("check-config", value: .text("FILE"), help: "verify a configuration file and exit"),
      OptionDescription(
        "reload", value: .integer(1...4_194_304),
        help:
          "verify the configuration file of the daemon with process ID N, make the daemon read it, and print what took effect"
      ),
      OptionDescription(
        "check-reload", value: .integer(1...4_194_304),
        help: "verify the configuration file of the daemon with process ID N and exit"),
      OptionDescription(
        "durability", value: .choice(Durability.allCases.map(\.rawValue)),
        help: "what a change survives before it is answered: nothing, a crash of the daemon, or a loss of power",
        defaultText: "process"),
      OptionDescription(
        "image-interval", value: .duration(.seconds(1)...(.seconds(31_536_000))),
        help: "longest time between two images of all elements", defaultText: "6h"),
      OptionDescription(
        "image-journal", value: .bytes(4096...(1 << 40)),
        help: "bytes of log after which a new image is written, unless the last image is larger",
        defaultText: ByteCount.text(ImagePolicy().journalBytes)),
      OptionDescription(
        "skip-batch", value: .integer(1...Int.max),
        help: "start without batch N of the log; its changes are lost, a new epoch begins"),
      OptionDescription(
        "skip-damaged",
        help: "start with the log up to where it does not verify; what follows is lost, a new epoch begins"),
      OptionDescription(
        "drain-timeout", value: .duration(.zero...(.seconds(3600))),
        help: "longest time to write queued output after SIGTERM", defaultText: "5s"),
      OptionDescription(
        "metrics-file", value: .text("PATH"),
        help: "write metrics in the Prometheus text format to PATH every 15 s, for node_exporter's textfile collector"),
      OptionDescription(
        "log-level", value: .choice(LogLevel.allCases.map(\.name)),
        help: "least severe level to log; see feedclient log-level",
        defaultText: "info"),
    ])

  private static let grouping = OptionGroup(
    "Groups",
    [
      OptionDescription(
        "group", value: .text("NAME"),
        help: "share all feeds with the other hosts of group NAME; needs libnats (Debian: libnats3.4)"),
      OptionDescription(
        "log", value: .text("URL[,URL]..."), help: "NATS servers with JetStream that keep the log of the group",
        defaultText: GroupStart.defaultServer),
      OptionDescription(
        "log-timeout", value: .duration(.milliseconds(100)...(.seconds(3600))),
        help: "time after which a change that the group's log did not store is refused", defaultText: "5s"),
      OptionDescription(
        "group-host", value: .text("NAME"), help: "name of this host in the group", defaultText: "the host's name"),
    ])

  private static func limit(_ limit: LimitDescription) -> OptionDescription {
    OptionDescription(
      limit.flag, value: limit.unit.value(in: limit.range), help: limit.help,
      defaultText: limit.unit.text(Limits()[keyPath: limit.keyPath]))
  }
}

extension SocketSettings {
  /// Returns the number of a group given by its name or number; nil if there is no such group.
  static func group(_ text: String) -> UInt32? { SystemAccounts.group(named: text)?.gid ?? UInt32(text) }
}

/// The unit of a limit, which determines the syntax of its flag.
enum LimitUnit {
  case items
  case bytes
  case seconds

  func value(in range: ClosedRange<Int>) -> OptionValue {
    switch self {
    case .items: .integer(range)
    case .bytes: .bytes(range)
    case .seconds: .duration(.seconds(range.lowerBound)...(.seconds(range.upperBound)))
    }
  }

  func text(_ number: Int) -> String {
    switch self {
    case .items: grouped(number)
    case .bytes: ByteCount.text(number)
    case .seconds: TimeSpan.text(.seconds(number))
    }
  }

  /// The value of a flag in this unit. Fractions of a second are rounded up.
  func number(_ flag: String, in options: ParsedOptions) -> Int? {
    switch self {
    case .items: options.integer(flag)
    case .bytes: options.bytes(flag)
    case .seconds:
      options.duration(flag).map { time in
        Int(clamping: time.components.seconds) + (time.components.attoseconds > 0 ? 1 : 0)
      }
    }
  }
}

extension LimitDescription {
  /// The unit, given by the first word of the help.
  var unit: LimitUnit {
    switch help.prefix(while: { $0 != " " }) {
    case "bytes": .bytes
    case "seconds": .seconds
    default: .items
    }
  }
}
