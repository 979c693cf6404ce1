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
    catalog.begin(at: now)
    do throws(ConfigurationError) {
      for entry in configuration.entries { try define(entry, &changes) }
      try undefineLeftOut(configuration, &changes)
    } catch {
      catalog.rollBack()
      throw error
    }
    if catalog.commit() { counters.commits &+= 1 }
    configured = Dictionary(
      uniqueKeysWithValues: configuration.entries.map { ($0.definition.name, $0.definition) })
    adopt(configuration.access)
    return changes
  }

  private func define(
    _ entry: Configuration.Entry, _ changes: inout ConfigurationChanges
  ) throws(ConfigurationError) {
    let definition = entry.definition
    let known = catalog.feeds[definition.name]
    if let known {
      if configured[definition.name] == definition || known.given == definition { return }
    }
    do throws(FeedError) {
      try catalog.define(definition, replace: true)
    } catch {
      throw ConfigurationError(entry.place, error.reason)
    }
    if known == nil { changes.defined.append(definition.name) } else { changes.redefined.append(definition.name) }
  }

  private func undefineLeftOut(
    _ configuration: Configuration, _ changes: inout ConfigurationChanges
  ) throws(ConfigurationError) {
    let names = Set(configuration.entries.map(\.definition.name))
    for feed in managedFeeds where !names.contains(feed.name) {
      do throws(FeedError) {
        try catalog.undefine(feed.name)
      } catch {
        throw ConfigurationError(
          .init(line: 1, column: 1, member: "feeds"),
          "managed feed \"\(feed.name)\" is not in the file any more and cannot go: \(error.reason)")
      }
      changes.undefined.append(feed.name)
    }
  }
}

extension FeedError {
  /// What is wrong, as a part of a sentence.
  var reason: String {
    switch self {
    case .definitionConflict(_, let reason), .permissionDenied(let reason), .internalError(let reason): reason
    case .unknownFeed(let name): "shows \"\(name)\", which is defined neither here nor in the daemon"
    case .limitExceeded(let limit, let value, let reason): "limit \(limit) (\(value)) is exceeded: \(reason)"
    case .invalidParams(let member, let reason): "\(member) \(reason)"
    case .noIdentity(_, let index, let path, let found):
      "row \(index) has no identity: \(path) must be a string or a number, and there is \(found)"
    default: "\(self)"
    }
  }
}
