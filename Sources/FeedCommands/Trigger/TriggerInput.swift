import FeedChange
import FeedClient
import FeedJSON

/// Writes what the command of `trigger` reads: a change, or all changes of a batch.
struct TriggerInput {
  private let settings: TriggerSettings
  private let position: FeedPosition
  private let isReset: Bool

  /// - Parameters:
  ///   - position: that after the changes.
  ///   - isReset: whether they come from a comparison after a reset, and not from the daemon.
  init(_ settings: TriggerSettings, _ position: FeedPosition, isReset: Bool = false) {
    (self.settings, self.position, self.isReset) = (settings, position, isReset)
  }

  /// Returns the item of one change; nil if the command does not want it.
  /// - Parameter number: returns the number of a new item.
  func item(of change: TriggerChange, number: () -> Int) -> TriggerItem? {
    guard let change = seen(change) else { return nil }
    var object = heading()
    change.add(to: &object)
    return item([change], kind: change.kind.rawValue, object.finish(), number())
  }

  /// Returns the item of a batch; nil if the command wants none of its changes.
  /// - Parameter from: the revision before the changes; nil at the first start.
  func item(of changes: [TriggerChange], from: UInt64?, number: () -> Int) -> TriggerItem? {
    let changes = changes.compactMap(seen)
    guard !changes.isEmpty else { return nil }
    let kinds = Set(changes.map(\.kind.rawValue))
    var object = heading()
    if let from { object.add("from", json: "\(from)") }
    object.add(
      "changes",
      json: changes.map { change in
        var entry = ParameterWriter()
        change.add(to: &entry)
        return entry.finish()
      })
    let kind = ChangeFilter.words.filter(kinds.contains).joined(separator: ",")
    return item(changes, kind: kind, object.finish(), number())
  }

  private func seen(_ change: TriggerChange) -> TriggerChange? {
    change.seen(inSection: settings.section)?.wanted(settings.kinds)
  }

  private func heading() -> ParameterWriter {
    var object = ParameterWriter()
    object.add("feed", settings.feed)
    object.add("epoch", position.epoch)
    object.add("revision", json: "\(position.revision)")
    if isReset { object.add("reset", true) }
    return object
  }

  private func item(_ changes: [TriggerChange], kind: String, _ input: String, _ number: Int) -> TriggerItem {
    TriggerItem(
      number: number, revision: position.revision, kind: kind,
      ids: Set(changes.compactMap { $0.id.map(RowPrint.canonical) }),
      input: Array(input.utf8))
  }
}

extension Delta {
  /// The parameters of the notification as JSON text, with the present elements.
  var text: String {
    func list(_ paths: [IndexPath]) -> [String] { paths.map(\.description) }
    var object = ParameterWriter()
    object.add("feed", feed)
    object.add("from", json: "\(from)")
    object.add("revision", json: "\(revision)")
    object.add("deleted", json: list(change.deleted))
    object.add("added", json: list(change.added))
    object.add("updated", json: list(change.updated))
    if !change.moves.isEmpty { object.add("moves", json: change.moves.map { "[\($0.deleted),\($0.added)]" }) }
    if !change.hasSameSections {
      var sections = ParameterWriter()
      sections.add("deleted", json: change.sectionsDeleted.map { "\($0)" })
      sections.add(
        "added",
        json: change.sectionsAdded.map { section in
          var object = ParameterWriter()
          object.add("at", json: "\(section.at)")
          object.add("name", section.name)
          if let key = section.key { object.add("key", json: String(decoding: key, as: UTF8.self)) }
          return object.finish()
        })
      object.add("sections", json: sections.finish())
    }
    object.add("elements", json: elements.map { String(decoding: $0, as: UTF8.self) })
    return object.finish()
  }
}
