import FeedEngine
import FeedJSON
import FeedModel
import FeedSources
import FeedSystem

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
  /// - Parameter isChecked: whether to look for what is allowed but probably a mistake.
  static func verify(
    _ file: ConfigurationFile, _ options: DaemonOptions, isChecked: Bool = false
  ) throws -> Configuration {
    let configuration = try file.read(isChecked: isChecked)
    var options = options
    options.limits = file.limits(configuration)
    let engine = try makeEngine(options, nil, nil, Log(threshold: .error, style: .timestamps))
    _ = try file.apply(configuration, to: engine, now: ServerClock(after: 0).now)
    return configuration
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
