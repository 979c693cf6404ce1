import FeedChange
import FeedJSON

/// What `trigger` hands over of one row: a ``RowChange`` that outlives its notification.
struct TriggerChange: Equatable {
  enum Kind: String {
    case added, updated, moved, deleted
  }

  var kind: Kind
  /// Whether a moved row has, or may have, another element.
  var isUpdated = false
  var before: RowChange.Place?
  var after: RowChange.Place?
  /// The identity as JSON text; nil if it is not known.
  var id: [UInt8]?
  var type: String?
  /// The compact text of the element; nil for a deleted row.
  var element: [UInt8]?
  var isAccepted: Bool
  /// Whether it is known that the change is one. Rows of a reset may be as they were before.
  var isCertain = true

  /// Returns nil for a row that did not change.
  init?(_ row: RowChange, initial: Bool) {
    switch row.kind {
    case .initial where initial, .added: kind = .added
    case .unknown: (kind, isCertain) = (.added, false)
    case .updated: (kind, isUpdated) = (.updated, true)
    case .moved: kind = .moved
    case .movedAndUpdated: (kind, isUpdated) = (.moved, true)
    case .deleted: kind = .deleted
    case .initial, .unchanged: return nil
    }
    (before, after) = (row.before, row.after)
    (id, type, element, isAccepted) = (row.id, row.type, row.element?.compactText, row.isAccepted)
  }

  /// The change that a command which follows one section sees, or nil: a row that moves into the section is added, and one that
  /// leaves it is deleted.
  func seen(inSection section: SectionName?) -> TriggerChange? {
    var seen = self
    switch section?.passage(from: before, to: after) ?? .inside {
    case .inside: break
    case .outside: return nil
    case .enters:
      if kind == .moved { (seen.kind, seen.before) = (.added, nil) }
    case .leaves:
      (seen.kind, seen.after, seen.element, seen.type) = (.deleted, nil, nil, nil)
    }
    return seen
  }

  /// The change with the one kind that the command is told, or nil if it does not want it: a moved row with another element is
  /// updated, if the command wants those.
  func wanted(_ kinds: Set<String>) -> TriggerChange? {
    guard isAccepted else { return nil }
    var wanted = self
    if kind == .moved, isUpdated, kinds.contains("updated") { wanted.kind = .updated }
    return kinds.contains(wanted.kind.rawValue) ? wanted : nil
  }

  /// Adds the members of the change to the JSON object that the command reads.
  func add(to object: inout ParameterWriter) {
    object.add("kind", kind.rawValue)
    if let place = after ?? before, let section = place.section {
      object.add("section", section)
      if let key = place.key { object.add("key", json: String(decoding: key, as: UTF8.self)) }
    }
    if let after { object.add("at", json: "\(after.path)") }
    if let before, before.path != after?.path { object.add("was", json: "\(before.path)") }
    if let id { object.add("id", json: String(decoding: id, as: UTF8.self)) }
    if let type { object.add("type", type) }
    if !isCertain { object.add("certain", false) }
    if let element { object.add("element", json: String(decoding: element, as: UTF8.self)) }
  }
}

/// One run of the command: what it reads, and what is told of it.
struct TriggerItem: Equatable {
  /// Numbers the items of a state file.
  var number: Int
  var revision: UInt64
  /// The value of FEEDD_KIND.
  var kind: String
  /// The identities of its rows. Items with a common one run in order.
  var ids: Set<[UInt8]>
  /// The JSON object that the command reads.
  var input: [UInt8]

  init(number: Int, revision: UInt64, kind: String, ids: Set<[UInt8]>, input: [UInt8]) {
    (self.number, self.revision, self.kind, self.ids, self.input) = (number, revision, kind, ids, input)
  }

  /// Reads the object that ``json`` returned.
  init?(_ view: JSONView) {
    guard let number = view.member("number")?.int,
      let revision = view.member("revision")?.int.flatMap({ UInt64(exactly: $0) }),
      let kind = view.member("kind")?.string, let ids = view.member("ids"), let input = view.member("input")
    else { return nil }
    self.init(
      number: number, revision: revision, kind: kind, ids: Set(ids.elements.map(\.compactText)),
      input: input.compactText)
  }

  var json: String {
    var object = ParameterWriter()
    object.add("number", number)
    object.add("revision", json: "\(revision)")
    object.add("kind", kind)
    object.add("ids", json: ids.map { String(decoding: $0, as: UTF8.self) }.sorted())
    object.add("input", json: String(decoding: input, as: UTF8.self))
    return object.finish()
  }
}
