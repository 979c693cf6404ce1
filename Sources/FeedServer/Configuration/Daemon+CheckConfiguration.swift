import FeedEngine
import FeedModel
import FeedSystem

extension Daemon {
  /// Says whether a configuration file is right: read, and applied to a daemon that has no feeds yet.
  /// - Returns: 0 when it is, else 1.
  static func checkConfiguration(_ options: DaemonOptions) -> Int32 {
    do {
      guard let file = ConfigurationFile(options) else { return 2 }
      let configuration = try file.read()
      var options = options
      options.limits = file.limits(configuration)
      let engine = try makeEngine(options, nil, Log(threshold: .error, style: .timestamps))
      _ = try file.apply(configuration, to: engine, now: ServerClock(after: 0).now)
      let rules =
        configuration.access.map { "\($0.count) access rules" } ?? "no access rules: everybody may do everything"
      try StandardStreams.writeAll(
        "\(file.path): ok: \(configuration.feedCount) feeds, \(configuration.limits.count) limits, \(rules)\n",
        to: StandardStreams.output)
      return 0
    } catch {
      try? StandardStreams.writeAll("\(error)\n", to: StandardStreams.error)
      return 1
    }
  }
}
