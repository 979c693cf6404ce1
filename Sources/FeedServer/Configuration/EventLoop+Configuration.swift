import FeedEngine
import FeedModel
import FeedSystem

extension EventLoop {
  /// Puts a configuration into effect: definitions, access rules, databases to read.
  mutating func apply(_ configuration: Configuration, _ file: ConfigurationFile) throws(ConfigurationFileError) {
    let changes = try file.apply(configuration, to: engine, now: now)
    log.write(.notice, "\(file.path): \(changes.text)")
    arrangeSources()
  }

  /// Reads the databases of the managed feeds, and no others, when these may have changed.
  mutating func arrangeSources() {
    do throws(SystemError) {
      guard let opened = try sources.arrange(engine, now: now) else { return }
      try link.add(opened.files, as: .fileEvents)
      try link.add(opened.reports, as: .sourceReports)
    } catch {
      log.write(.error, "\(error); managed feeds are not read")
    }
  }

  /// Reads the configuration again; the service manager is told as it expects. A file that cannot be used changes nothing.
  mutating func reload(_ cause: String) {
    service.tell(.reloading)
    defer { service.tell(.ready) }
    guard let file = configurationFile else {
      log.write(.notice, "\(cause): there is no configuration file to read again; start feedd with --config FILE")
      return
    }
    log.write(.notice, "\(cause): reading \(file.path) again")
    do throws(ConfigurationFileError) {
      let configuration = try file.read()
      try apply(configuration, file)
      warnOfLimits(file.limits(configuration))
      service.tell(.status("listening; configuration read again"))
    } catch {
      log.write(.error, "\(error); nothing was changed")
      service.tell(.status("listening; the configuration could not be read again: see the log"))
    }
  }

  /// Limits are fixed when the daemon starts.
  private func warnOfLimits(_ wanted: Limits) {
    let others = Limits.all.filter { wanted[keyPath: $0.keyPath] != engine.limits[keyPath: $0.keyPath] }
    guard !others.isEmpty else { return }
    log.write(
      .warning, "other limits take effect when feedd is started again: \(others.map(\.name).joined(separator: ", "))")
  }
}
