import FeedChange
import FeedEngine
import FeedGroup
import FeedJSON
import FeedModel
import FeedSystem

/// The file of `--config`, read at start and again at SIGHUP.
struct ConfigurationFile {
  /// The path as it was given, for messages.
  let path: String
  /// The absolute path, independent of later changes of the working directory.
  private let place: String
  private let surroundings: Configuration.Surroundings
  /// The settings of the command line.
  private let socket: SocketSettings
  private let options: DaemonOptions

  /// - Parameters:
  ///   - options: the limits of the command line, which take precedence over those of the file.
  ///   - directory: where a relative path starts; nil for the working directory.
  init?(_ options: DaemonOptions, in directory: String? = nil) {
    guard let path = options.configurationPath else { return nil }
    self.path = path
    place = FilePath.absolute(directory.map { path.hasPrefix("/") ? path : "\($0)/\(path)" } ?? path)
    socket = options.socket
    self.options = options
    surroundings = Configuration.Surroundings(
      directory: FilePath.directory(of: place), limits: options.limits, fixedLimits: options.givenLimits,
      accounts: AccountNames(user: SystemAccounts.user(named:), group: SystemAccounts.group(named:)))
  }

  /// Reads the current content of the file.
  /// - Parameters:
  ///   - isChecked: whether to look for what is allowed but probably a mistake.
  ///   - present: the limits of the daemon that runs; nil at a start.
  ///   - log: for accounts of access rules that do not exist, which must not prevent a start; nil if they are errors.
  func read(
    isChecked: Bool = false, under present: Limits? = nil, forgiving log: Log? = nil
  ) throws(ConfigurationFileError) -> Configuration {
    var surroundings = surroundings
    (surroundings.findsRemarks, surroundings.present) = (isChecked, present)
    if let log {
      surroundings.forgive = { [path] error in log.write(.warning, "\(path):\(error); the rule is applied without it") }
    }
    let bytes: [UInt8]
    do {
      bytes = try SmallFile.read(place)
    } catch {
      var error = error
      if error.path == place { error.path = path }
      throw .unreadable(error)
    }
    let result = bytes.withUnsafeBytes { bytes in
      Result { [surroundings] () throws(ConfigurationError) in try Configuration(parsing: bytes, surroundings) }
    }
    return try result.mapError { ConfigurationFileError.refused(path, $0) }.get()
  }

  /// Applies a configuration that was read.
  /// - Parameter others: the feeds that other hosts configure.
  func apply(
    _ configuration: Configuration, to engine: Engine, keeping others: Set<String>, now: Instant
  ) throws(ConfigurationFileError) -> ConfigurationChanges {
    do {
      return try engine.configure(configuration, keeping: others, now: now)
    } catch {
      throw .refused(path, error)
    }
  }

  /// The settings of the socket of the file and the command line combined.
  func socket(_ configuration: Configuration) -> SocketSettings { socket.completed(by: configuration.socket) }

  /// What the file and the command line say of the group; nil if a daemon would join none.
  func group(_ configuration: Configuration) -> GroupSettings? {
    try? GroupStart.settings(options, configuration.group, member: "")
  }

  /// The limits of the file and the command line combined.
  func limits(_ configuration: Configuration) -> Limits { configuration.effectiveLimits(surroundings) }
}

/// The reason why the configuration cannot be used.
enum ConfigurationFileError: Error, CustomStringConvertible {
  case unreadable(SystemError)
  case refused(String, ConfigurationError)
  /// The file does not fit the group.
  case group(String, GroupError)

  var description: String {
    switch self {
    case .unreadable(let error): "\(error)"
    case .refused(let path, let error): "\(path):\(error)"
    case .group(let path, let error): "\(path): \(error)"
    }
  }
}

/// The text of a configuration. Finds the line and column of a member.
struct ConfigurationText {
  /// The offsets of the ends of lines, ascending: every definition has a place, and there may be thousands of them.
  private let lineEnds: [Int]

  init(_ bytes: UnsafeRawBufferPointer) {
    lineEnds = bytes.indices.filter { bytes[$0] == UInt8(ascii: "\n") }
  }

  /// The place of an offset. O(log lines).
  func place(_ offset: Int, _ member: String) -> ConfigurationError.Place {
    let before = lineEnds.indices.partitionPoint { lineEnds[$0] < offset }
    let start = before > 0 ? lineEnds[before - 1] + 1 : 0
    return .init(line: before + 1, column: max(offset, 0) - start + 1, member: member)
  }

  func error(at view: JSONView, _ member: String, _ reason: String) -> ConfigurationError {
    ConfigurationError(place(view.byteOffset, member), reason)
  }

  /// The error of a definition or rule at `view` with the path `member`. Points to the offending member inside it, if
  /// that can be found.
  func error(_ error: FeedError, in view: JSONView, _ member: String) -> ConfigurationError {
    switch error {
    case .invalidParams(let inner, let reason):
      let found = Self.find(inner, in: view) ?? view
      return self.error(at: found, "\(member).\(inner)", reason)
    case .badQuery(let inner, let text, let offset, let reason):
      let found = Self.find(inner, in: view) ?? view
      // The offset inside the string, after its quote; exact unless the string has escapes.
      let isExact = found.kind == .string && !found.hasEscapes
      let start = found.byteOffset + (isExact ? 1 + offset : 0)
      return ConfigurationError(
        place(start, "\(member).\(inner)"), "does not parse at byte \(offset) of \"\(text)\": \(reason)")
    default: return self.error(at: view, member, error.reason)
    }
  }

  /// The value at a path such as `bins[0].filter`, or at the longest prefix of the path that exists.
  private static func find(_ path: String, in view: JSONView) -> JSONView? {
    var found: JSONView?
    var current = view
    for step in path.split(whereSeparator: { $0 == "." || $0 == "[" }) {
      let next: JSONView?
      if step.hasSuffix("]") {
        next = Int(step.dropLast()).flatMap { current.element(at: $0) }
      } else {
        next = current.member(named: String(step))
      }
      guard let next else { return found }
      (found, current) = (next, next)
    }
    return found
  }
}

/// Refuses unknown and repeated members in a configuration file.
enum FileMembers {
  static let file = ["feeds", "limits", "access", "socketMode", "socketGroup", "group"]
  static let group = [
    "name", "log", "host", "user", "password", "token", "credentials", "authority", "certificate", "key", "replicas",
  ]
  static let rule = ["uid", "user", "gid", "group", "feeds", "allow"]

  static func check(
    _ object: JSONView, _ known: [String], _ place: String, _ text: ConfigurationText
  ) throws(ConfigurationError) {
    do throws(KnownMembers.Refusal) {
      try KnownMembers.check(object, known, at: place.isEmpty ? "" : "\(place).", repeats: .refused)
    } catch {
      throw explain(error, error.path, text)
    }
  }

  static func check(
    definition object: JSONView, _ place: String, _ text: ConfigurationText
  ) throws(ConfigurationError) {
    do throws(KnownMembers.Refusal) {
      try KnownMembers.check(definition: object, defaultKind: Configuration.defaultKind, repeats: .refused)
    } catch {
      throw explain(error, "\(place).\(error.path)", text)
    }
  }

  private static func explain(
    _ error: KnownMembers.Refusal, _ path: String, _ text: ConfigurationText
  ) -> ConfigurationError {
    ConfigurationError(text.place(error.offset, path), error.reason)
  }
}
