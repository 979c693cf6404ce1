import FeedModel
import TestSupport

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Managed feeds: the daemon defines them from its configuration and sets their rows.
extension TreeWorld {
  /// Defines, redefines or undefines a managed feed, or sets its rows.
  func manage() throws {
    let name = generator.pick(TreeGenerator.managedNames)
    guard let feed = reference.feeds[name], generator.chance(85) else { return try configure(name) }
    let elements = generator.rows(of: feed)
    note("rows of \(name): \(elements.map(\.text))")
    var rows = ManagedRows()
    for element in elements {
      let section = feed.managed?.value(element) ?? ""
      Array(element.text.utf8).withUnsafeBytes { rows.append($0, section: section) }
    }
    harness.engine.setManaged(name, rows, SourceStatus(.ok, since: "then"), now: harness.now)
    harness.turn()
    let source = (harness.engine.catalog.feeds[name]?.kind as? ManagedKind)?.source
    try finish("rows", isRefused: source?.state == .error) { (next) throws(TreeReference.Refusal) in
      try next.setManaged(name, elements)
    }
  }

  private func configure(_ name: String) throws {
    let isUndefined = reference.feeds[name] != nil && generator.chance(40)
    let definition = isUndefined ? nil : generator.managed(name)
    note("configure \(name): \(definition?.canonical ?? "nothing")")
    var definitions = reference.feeds.values.filter { $0.managed != nil && $0.definition.name != name }.map(\.given)
    if let definition { definitions.append(definition) }
    let entries = try definitions.map { definition in
      Configuration.Entry(
        definition: try Self.parse(definition), place: .init(line: 1, column: 1, member: definition.name))
    }
    var isRefused = false
    do throws(ConfigurationError) {
      try harness.engine.configure(Configuration(entries: entries, limits: [:], access: nil), now: harness.now)
    } catch {
      isRefused = true
    }
    harness.turn()
    try finish("configure", isRefused: isRefused) { (next) throws(TreeReference.Refusal) in
      try next.configure(name, definition)
    }
  }

  private static func parse(_ definition: TreeDefinition) throws -> FeedDefinition {
    try withJSON(definition.canonical) { try FeedDefinition(parsing: $0, limits: Limits()) }
  }

  /// Adopts what the daemon did by itself, or checks that the reference refuses it too.
  private func finish(
    _ step: String, isRefused: Bool, _ body: (inout TreeReference) throws(TreeReference.Refusal) -> Void
  ) throws {
    var next = reference
    (next.isStructural, next.rebinned) = (false, [])
    do throws(TreeReference.Refusal) {
      try body(&next)
    } catch {
      if !isRefused { throw fail("\(step) was not refused") }
      statistics["refused \(step)", default: 0] += 1
      return try settle(nil)
    }
    if isRefused { throw fail("\(step) was refused") }
    try settle((next, Int(harness.engine.catalog.revision), []))
    statistics[step, default: 0] += 1
  }
}
