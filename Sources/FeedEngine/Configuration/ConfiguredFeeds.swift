import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The definitions of the last applied configuration, and of those that wait for the log.
///
/// Invariant: each name of an applied configuration is defined in the catalog, unless a client undefined it since.
struct ConfiguredFeeds {
  private typealias Definitions = [String: FeedDefinition]

  private struct Submission {
    var definitions: Definitions
    /// Those of them that were in effect when they were submitted.
    let unchanged: Definitions
  }

  /// Nil before the first configuration.
  private var applied: Definitions?
  /// The feeds that this member of a group configured before its start, until a configuration is applied.
  fileprivate var former: Set<String> = []
  /// Those of configurations that were submitted and are not executed yet, in order.
  private var submitted: [Submission] = []
  /// The number of submitted configurations that failed.
  private(set) var failures = 0

  /// The definitions that will be in effect if nothing fails.
  private var definitions: Definitions { submitted.last?.definitions ?? applied ?? [:] }
  var all: [FeedDefinition] { Array(definitions.values) }

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
      if let known, isInEffect(definition) || submitted.isEmpty && known.given == definition { continue }
      entries.append(entry)
      if known == nil { changes.defined.append(definition.name) } else { changes.redefined.append(definition.name) }
    }
    let names = Set(configuration.entries.map(\.definition.name))
    // One that waits for the log undefines a feed that it does not have: a second time would fail.
    changes.undefined = managed.filter { !names.contains($0) && (submitted.isEmpty || definitions[$0] != nil) }
    changes.left = definitions.keys.filter { !names.contains($0) && catalog.feeds[$0] != nil }.sorted()
    changes.left.removeAll(where: changes.undefined.contains)
    return (entries, changes)
  }

  /// Whether the configuration gives a feed this definition, whichever of those that wait can be stored.
  private func isInEffect(_ definition: FeedDefinition) -> Bool {
    applied?[definition.name] == definition && submitted.allSatisfy { $0.definitions[definition.name] == definition }
  }

  /// Whether the configuration defines a managed feed in this way.
  func defines(_ name: String, as content: ManagedDefinition) -> Bool {
    definitions[name]?.content == .managed(content)
  }

  /// Whether this daemon configures a feed, or did before its start.
  func contains(_ name: String) -> Bool { definitions[name] != nil || former.contains(name) }

  /// Records that a configuration changes no feed.
  mutating func keep(_ configuration: Configuration) {
    if submitted.isEmpty {
      apply(Self.definitions(of: configuration))
    } else {
      submitted[submitted.count - 1].definitions = Self.definitions(of: configuration)
    }
  }

  /// Records that the changes for a configuration are about to be submitted.
  /// - Parameter entries: the definitions that differ from those in effect.
  mutating func submit(_ configuration: Configuration, changing entries: [Configuration.Entry]) {
    let definitions = Self.definitions(of: configuration)
    let changed = Set(entries.map(\.definition.name))
    submitted.append(Submission(definitions: definitions, unchanged: definitions.filter { !changed.contains($0.key) }))
  }

  /// Records that the changes for the first submitted configuration were executed, or that they failed: the next reading compares
  /// with what was in effect before. No effect for those of replay, which were not submitted.
  mutating func didComplete(isApplied: Bool) {
    if submitted.isEmpty { return }
    let first = submitted.removeFirst()
    if isApplied {
      apply(first.definitions)
    } else {
      failures += 1
      // After a start, nothing else tells which feeds the file defines.
      applied = (applied ?? [:]).merging(first.unchanged) { $1 }
    }
  }

  private mutating func apply(_ definitions: Definitions) { (applied, former) = (definitions, []) }

  /// Records the definitions of a configuration that feeds were given before, if it is the first one. It could not be applied.
  mutating func keepGiven(_ configuration: Configuration, in catalog: Catalog) {
    guard applied == nil, submitted.isEmpty else { return }
    applied = Self.definitions(of: configuration).filter { catalog.feeds[$0.key]?.given == $0.value }
  }

  private static func definitions(of configuration: Configuration) -> Definitions {
    Dictionary(uniqueKeysWithValues: configuration.entries.map { ($0.definition.name, $0.definition) })
  }
}

extension Engine {
  /// The definitions of the configuration in use: those that will be in effect if nothing fails.
  public var configuredDefinitions: [FeedDefinition] { ownWork.configured.all }

  /// The number of configurations that could not be stored or applied after they were submitted.
  public var failedConfigurations: Int { ownWork.configured.failures }

  /// Sets the feeds that this member of a group configured before its start. A managed one that is in the first configuration no
  /// longer is undefined.
  public func useFormerFeeds(_ names: Set<String>) { ownWork.configured.former = names }

  /// Applies a configuration as one commit. If it throws, nothing changed.
  /// - Parameter others: the feeds that other members of the group configure: they stay defined.
  /// - Precondition: no batch is executed in part.
  @discardableResult
  public func configure(
    _ configuration: Configuration, keeping others: Set<String> = [], now: Instant
  ) throws(ConfigurationError) -> ConfigurationChanges {
    precondition(!longWork.isUnderWay, "the commit of a long request is open")
    begin(at: now)
    let managed = managedFeeds.map(\.name).filter { name in
      !catalog.keepsManagedRows || ownWork.configured.contains(name) && !others.contains(name)
    }
    var (entries, changes) = ownWork.configured.changes(for: configuration, in: catalog, managed: managed)
    entries = try findOrder(of: entries, undefining: changes.undefined)
    if entries.isEmpty && changes.undefined.isEmpty {
      ownWork.configured.keep(configuration)
    } else {
      ownWork.reports.didSubmit()
      ownWork.configured.submit(configuration, changing: entries)
      submit(.configure(define: entries.map(\.definition), undefine: changes.undefined))
    }
    // In a group, also a configuration that changes no feed decides whose databases this daemon reads.
    ownWork.managed.definitionsDidChange()
    changes.access = useAccess(of: configuration)
    return changes
  }

  /// Records that the first configuration after a start could not be applied: the definitions that feeds have already stay in effect,
  /// as those of a former configuration do if a later one is refused. No effect after a configuration was applied.
  public func keepGivenFeeds(of configuration: Configuration) {
    ownWork.configured.keepGiven(configuration, in: catalog)
    ownWork.managed.definitionsDidChange()
  }

  /// Applies the access rules of a configuration, also of one whose feeds cannot be defined yet. Returns whether they are others than
  /// before.
  @discardableResult
  public func useAccess(of configuration: Configuration) -> Bool {
    let isOther = !access.isSame(as: configuration.access)
    access.replace(with: configuration.access, atOnce: sessions.isEmpty)
    return isOther
  }

  /// The most orders in which definitions are tried.
  private static let maxOrders = 16

  /// Returns the definitions in an order in which they can be applied one after the other.
  ///
  /// The order of the configuration fails if a feed may show more only after another one shows less. A definition that exceeds a
  /// limit, or conflicts with a feed as it is, is tried again behind all others. If there is one, feeds that show a bin which another
  /// definition removes are redefined without it first: the new definition may show a bin that this other one adds.
  private func findOrder(
    of entries: [Configuration.Entry], undefining names: [String]
  ) throws(ConfigurationError) -> [Configuration.Entry] {
    var order = entries
    // Nil before an order failed: most need none.
    var detached: [Configuration.Entry]?
    var failure: ConfigurationError?
    for _ in 0..<Self.maxOrders {
      let all = (detached ?? []) + order
      guard let (index, error) = try rehearse(all, undefining: names) else { return all }
      let first = failure ?? ConfigurationError(all[index].place, error.reason)
      guard error.mayDependOnOrder else { throw first }
      if detached == nil {
        let known = detachments(before: entries)
        detached = known
        if !known.isEmpty { continue }
      }
      failure = first
      let place = index - (all.count - order.count)
      guard place >= 0, place + 1 < order.count else { throw first }
      order.append(order.remove(at: place))
    }
    if let failure { throw failure }
    return order
  }

  private func detachments(before entries: [Configuration.Entry]) -> [Configuration.Entry] {
    let places = Dictionary(uniqueKeysWithValues: entries.map { ($0.definition.name, $0.place) })
    return catalog.detachments(before: entries.map(\.definition)).compactMap { definition in
      places[definition.name].map { Configuration.Entry(definition: definition, place: $0) }
    }
  }

  /// Checks whether the definitions can be applied, by applying them and rolling back.
  /// - Returns: the index of the first definition that cannot be applied, and why; nil if all can.
  private func rehearse(
    _ entries: [Configuration.Entry], undefining names: [String]
  ) throws(ConfigurationError) -> (index: Int, error: FeedError)? {
    try catalog.rehearse(at: now) { () throws(ConfigurationError) -> (index: Int, error: FeedError)? in
      for (index, entry) in entries.enumerated() {
        do throws(FeedError) {
          try catalog.define(entry.definition, replace: true)
        } catch {
          return (index, error)
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
      return nil
    }
  }
}

extension FeedError {
  /// Whether a definition with this error may be applied after others.
  fileprivate var mayDependOnOrder: Bool {
    switch self {
    case .limitExceeded, .definitionConflict: true
    default: false
    }
  }
}

/// What the last reading of the configuration file did, for `stats` and `feedd --reload`.
///
/// Invariant: `error` is nil unless the file, or what it changes, was refused.
public struct ConfigurationReport: Equatable, Sendable {
  /// The path of the file; nil if there is none.
  public let file: String?
  /// The time of the reading: RFC 3339, in UTC.
  public let time: String
  public internal(set) var changes: ConfigurationChanges
  /// The names of settings that differ and take effect at the next start.
  public let restart: [String]
  /// Why no feed changed; nil if the file is in effect.
  public internal(set) var error: String?
  /// Whether the feeds of the file wait for the log of the group. Then `changes` has only those of the access rules.
  public let feedsWait: Bool

  public init(
    file: String?, time: String, changes: ConfigurationChanges = ConfigurationChanges(), restart: [String] = [],
    error: String? = nil, feedsWait: Bool = false
  ) {
    (self.file, self.time, self.changes, self.restart) = (file, time, changes, restart)
    (self.error, self.feedsWait) = (error, feedsWait)
  }

  /// One line: the changes, and what needs a new start, or why nothing changed.
  public var text: String {
    if let error {
      return "\(error); \(changes.access ? "only the access rules were replaced" : "nothing was changed")"
    }
    let news =
      feedsWait
      ? "\(changes.access ? "\(changes.text); " : "")the feeds wait for the log of the group" : changes.text
    return restart.isEmpty
      ? news : "\(news); takes effect when feedd is started again: \(restart.joined(separator: ", "))"
  }
}

/// The reports of the configuration, and its changes that wait for the log.
struct ConfigurationReports {
  /// The number of readings since the start.
  private var reads = 0
  private var last: ConfigurationReport?
  /// The number of `$configure` requests that are submitted or in flight.
  private var waiting = 0

  mutating func add(_ report: ConfigurationReport, isOfLastReading: Bool) {
    if !isOfLastReading { reads += 1 }
    last = report
  }

  mutating func didSubmit() { waiting += 1 }

  /// Records that a request was executed, or why it changed nothing: then only the access rules are in effect, unless the request of
  /// a later reading decides. Requests of replay were not submitted.
  mutating func didComplete(_ error: String?) {
    waiting = max(0, waiting - 1)
    guard waiting == 0, let error, let access = last?.changes.access else { return }
    last?.error = error
    last?.changes = ConfigurationChanges(access: access)
  }

  /// Appends `,"configuration":{…}` if the configuration was ever read.
  func append(to out: inout ByteBuffer) {
    guard let last else { return }
    out.append(",\"configuration\":{\"reads\":", integer: reads)
    out.append(",\"status\":")
    out.append(last.error != nil ? "\"refused\"" : waiting > 0 || last.feedsWait ? "\"storing\"" : "\"applied\"")
    out.append(",\"time\":", quoted: last.time)
    if let file = last.file { out.append(",\"file\":", quoted: file) }
    out.append(",\"text\":", quoted: last.text)
    let changes = last.changes
    let lists: [(StaticString, [String])] = [
      (",\"defined\":[", changes.defined), (",\"redefined\":[", changes.redefined),
      (",\"undefined\":[", changes.undefined),
      (",\"kept\":[", changes.left), (",\"restart\":[", last.restart),
    ]
    for (head, names) in lists {
      out.append(head)
      out.appendJSONStrings(names)
      out.append(UInt8(ascii: "]"))
    }
    out.append(changes.access ? ",\"access\":true}" : ",\"access\":false}")
  }
}

extension Engine {
  /// Records what reading the configuration did. Call it after ``configure(_:now:)``.
  /// - Parameter isOfLastReading: whether this reading has a report already, which said that its feeds wait.
  public func report(_ report: ConfigurationReport, isOfLastReading: Bool = false) {
    ownWork.reports.add(report, isOfLastReading: isOfLastReading)
  }
}
