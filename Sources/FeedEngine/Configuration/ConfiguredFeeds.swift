import FeedChange
import FeedModel
import FeedWire

/// The definitions of the last applied configuration.
///
/// Invariant: each name is defined in the catalog or will be, unless a client undefined it since.
struct ConfiguredFeeds {
  private var definitions: [String: FeedDefinition] = [:]

  /// Returns the definitions to apply so that the catalog has the feeds of `configuration`.
  ///
  /// A missing feed is defined. A feed is redefined, keeping its elements, if its definition differs from the last
  /// applied one (the first time: from the one that it was given). A feed that left the file is kept. A managed feed
  /// that left the file is undefined, because only the configuration may define it.
  func changes(
    for configuration: Configuration, in catalog: Catalog, managed: [String]
  ) -> (entries: [Configuration.Entry], changes: ConfigurationChanges) {
    var changes = ConfigurationChanges()
    var entries: [Configuration.Entry] = []
    for entry in configuration.entries {
      let definition = entry.definition
      let known = catalog.feeds[definition.name]
      if let known, definitions[definition.name] == definition || known.given == definition { continue }
      entries.append(entry)
      if known == nil { changes.defined.append(definition.name) } else { changes.redefined.append(definition.name) }
    }
    let names = Set(configuration.entries.map(\.definition.name))
    changes.undefined = managed.filter { !names.contains($0) }
    changes.left = definitions.keys.filter { !names.contains($0) && catalog.feeds[$0] != nil }.sorted()
    changes.left.removeAll(where: changes.undefined.contains)
    return (entries, changes)
  }

  /// Whether the configuration defines a managed feed in this way.
  func defines(_ name: String, as content: ManagedDefinition) -> Bool {
    definitions[name]?.content == .managed(content)
  }

  /// The managed feeds of the last applied configuration.
  var managed: [String] {
    definitions.values.filter { if case .managed = $0.content { true } else { false } }.map(\.name).sorted()
  }

  mutating func didApply(_ configuration: Configuration) {
    definitions = Dictionary(
      uniqueKeysWithValues: configuration.entries.map { ($0.definition.name, $0.definition) })
  }
}

extension Engine {
  /// Applies a configuration as one commit. If it throws, nothing changed.
  @discardableResult
  public func configure(
    _ configuration: Configuration, now: Instant
  ) throws(ConfigurationError) -> ConfigurationChanges {
    begin(at: now)
    var (entries, changes) = ownWork.configured.changes(
      for: configuration, in: catalog,
      managed: catalog.keepsManagedRows
        ? ownWork.configured.managed.filter { catalog.feeds[$0] != nil } : managedFeeds.map(\.name))
    try rehearse(entries, undefining: changes.undefined)
    if !entries.isEmpty || !changes.undefined.isEmpty {
      ownWork.reports.didSubmit()
      submit(.configure(define: entries.map(\.definition), undefine: changes.undefined))
    }
    ownWork.configured.didApply(configuration)
    changes.access = !access.isSame(as: configuration.access)
    access.replace(with: configuration.access, atOnce: sessions.isEmpty)
    return changes
  }

  /// Checks whether the definitions can be applied, by applying them and rolling back.
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
          "cannot undefine managed feed \"\(name)\", which the file no longer defines: \(error.reason)")
      }
    }
  }
}
