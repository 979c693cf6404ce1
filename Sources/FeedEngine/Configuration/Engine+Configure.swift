import FeedChange
import FeedModel

/// Putting a configuration into effect.
extension Engine {
  /// Applies a configuration as one commit, or changes nothing and says why.
  ///
  /// A feed that is not there is defined. One whose definition in the file is another than when it was applied last (or, the
  /// first time, another than the one that it was given) is redefined and keeps its elements. A feed that is gone from the
  /// file stays, now a feed like any other; but a managed feed, which only the configuration may define, is undefined.
  @discardableResult
  public func configure(
    _ configuration: Configuration, now: Instant
  ) throws(ConfigurationError) -> ConfigurationChanges {
    self.now = now
    var changes = ConfigurationChanges()
    var entries: [Configuration.Entry] = []
    for entry in configuration.entries {
      let definition = entry.definition
      let known = catalog.feeds[definition.name]
      if let known, configured[definition.name] == definition || known.given == definition { continue }
      entries.append(entry)
      if known == nil { changes.defined.append(definition.name) } else { changes.redefined.append(definition.name) }
    }
    let names = Set(configuration.entries.map(\.definition.name))
    changes.undefined = managedFeeds.map(\.name).filter { !names.contains($0) }
    changes.left = configured.keys.filter { !names.contains($0) && catalog.feeds[$0] != nil }.sorted()
    changes.left.removeAll(where: changes.undefined.contains)
    try rehearse(entries, undefining: changes.undefined)
    if !entries.isEmpty || !changes.undefined.isEmpty {
      submit(.configure(define: entries.map(\.definition), undefine: changes.undefined))
    }
    configured = Dictionary(
      uniqueKeysWithValues: configuration.entries.map { ($0.definition.name, $0.definition) })
    access.replace(with: configuration.access, atOnce: sessions.isEmpty)
    return changes
  }

  /// Finds out, without leaving a trace, whether definitions can be put into effect.
  private func rehearse(_ entries: [Configuration.Entry], undefining names: [String]) throws(ConfigurationError) {
    catalog.begin(at: now)
    defer { catalog.rollBack() }
    for entry in entries {
      do throws(FeedError) {
        try catalog.define(entry.definition, replace: true)
      } catch {
        throw ConfigurationError(entry.place, error.reason)
      }
    }
    for name in names {
      do throws(FeedError) {
        try catalog.undefine(name)
      } catch {
        throw ConfigurationError(
          .init(line: 1, column: 1, member: "feeds"),
          "managed feed \"\(name)\" is not in the file any more and cannot go: \(error.reason)")
      }
    }
  }
}
