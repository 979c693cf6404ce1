import FeedModel
import FeedSystem

extension DaemonOptions {
  /// What a command line comes to.
  public enum Outcome: Equatable, Sendable {
    case run(DaemonOptions)
    /// `--check`: a state directory is to be verified.
    case check(DaemonOptions)
    /// `--check-config`: the file is read and the daemon not started.
    case checkConfiguration(DaemonOptions)
    /// `--help` or `--version`: to be printed on standard output.
    case print(String)
  }

  /// Reads the words after the program's name.
  /// - Parameter width: the columns of the help.
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
    try options.take(parsed)
    if let path = parsed.text("check-config") {
      options.configurationPath = path
      return .checkConfiguration(options)
    }
    return parsed.contains("check") ? .check(options) : .run(options)
  }

  private mutating func take(_ parsed: ParsedOptions) throws(UsageError) {
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
    stateDirectory = parsed.text("state")
    drainTimeout = parsed.duration("drain-timeout") ?? drainTimeout
    logLevel = parsed.text("log-level").flatMap(LogLevel.init(name:)) ?? logLevel
    for limit in Limits.all {
      if let number = limit.unit.number(limit.flag, in: parsed) {
        limits[keyPath: limit.keyPath] = number
        givenLimits.insert(limit.name)
      }
    }
  }
}
