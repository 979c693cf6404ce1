import FeedChange
import FeedModel
import TestSupport

/// A watcher's copy of one feed, updated only by the rules of `Protocol/README.md`, "The change" and "Watching".
///
/// A delta that breaks a rule is thrown as an error that says which.
struct Mirror {
  struct Row: Equatable {
    var element: String
    /// The JSON text of the row's type; `null` where it has none.
    var type = "null"
  }

  struct Section: Equatable {
    var name: String
    var rows: [Row] = []
  }

  /// What a rule of the protocol was broken by.
  struct Violation: Error, CustomStringConvertible {
    let description: String
  }

  /// What the copy is waiting for.
  private enum Phase: Equatable {
    /// The first part of the snapshot, or one that follows.
    case snapshot(isFirst: Bool)
    case live
    case ended
  }

  let feed: String
  private(set) var sections: [Section] = []
  private(set) var revision: Int
  /// Whether the watch asked for parts of snapshots that may span sections.
  private let isSpanning: Bool
  private var phase: Phase
  /// How many rows each section will have once the snapshot is complete.
  private var promised: [Int] = []
  /// Whether a resumed watch may still be told once what it missed.
  private(set) var resets = 0
  private(set) var deltas = 0

  /// Begins with the answer to `watch`.
  ///
  /// - Parameter known: the copy that the watch was to go on from, or that was read for `initial: false`.
  init(_ result: Value, since known: Mirror?, initial: Bool, spanning: Bool = false) throws(Violation) {
    guard let feed = result["feed"]?.string, let revision = result["revision"]?.int,
      let resumed = result["resumed"]?.bool, let sections = result["sections"]
    else { throw Violation(description: "the answer to watch lacks a member: \(result)") }
    self.feed = feed
    isSpanning = spanning
    phase = .live
    if resumed {
      guard let known else { throw Violation(description: "resumed without being asked to") }
      self.revision = known.revision
      self.sections = known.sections
    } else if initial {
      self.revision = revision
      phase = .snapshot(isFirst: true)
      begin(sections)
    } else {
      guard let known, known.revision == revision else {
        throw Violation(description: "deltas of \(feed) start at \(revision), the copy is of \(known?.revision ?? -1)")
      }
      self.revision = revision
      self.sections = known.sections
    }
  }

  /// A copy read with method `snapshot`.
  init(snapshot result: Value, of feed: String) {
    self.feed = feed
    isSpanning = false
    revision = result["revision"]?.int ?? -1
    phase = .live
    sections = (result["sections"]?.items ?? []).map { section in
      let rows = Self.rows(section["elements"], section["types"])
      return Section(name: section["name"]?.string ?? "", rows: rows)
    }
  }

  /// A copy of a feed that shows these sections.
  init(sections: [Section], of feed: String, at revision: Int) {
    self.feed = feed
    self.revision = revision
    self.sections = sections
    isSpanning = false
    phase = .live
  }

  var isLive: Bool { phase == .live }
  var isEnded: Bool { phase == .ended }

  /// The digest that method `verify` gives.
  var digest: String {
    var crc = CRC32()
    let lists = sections.map { "[" + $0.rows.map(\.element).joined(separator: ",") + "]" }
    let text = "[" + lists.joined(separator: ",") + "]"
    Array(text.utf8).withUnsafeBytes { crc.update($0) }
    return crc.hex8
  }

  private mutating func begin(_ list: Value) {
    sections = list.items.map { Section(name: $0["name"]?.string ?? "") }
    promised = list.items.map { $0["count"]?.int ?? -1 }
  }

  private static func rows(_ elements: Value?, _ types: Value?) -> [Row] {
    let types = types?.items
    return (elements?.items ?? []).enumerated().map { place, element in
      Row(
        element: element.text, type: types.map { $0.indices.contains(place) ? $0[place].text : "missing" } ?? "null")
    }
  }
}

/// Notifications.
extension Mirror {
  mutating func take(snapshot part: Value) throws(Violation) {
    let isReset = part["reset"]?.bool == true
    if isReset {
      guard phase != .ended else { throw Violation(description: "a reset of an ended watch: \(part)") }
      guard let list = part["sections"], let new = part["revision"]?.int, new >= revision else {
        throw Violation(description: "a reset to \(part["revision"]?.text ?? "nothing") from \(revision)")
      }
      begin(list)
      revision = new
      resets += 1
    }
    guard isReset || phase == .snapshot(isFirst: true) || phase == .snapshot(isFirst: false) else {
      throw Violation(description: "a part of a snapshot while \(phase)")
    }
    guard part["revision"]?.int == revision else {
      throw Violation(description: "a part of \(part["revision"]?.text ?? "nothing") in a snapshot of \(revision)")
    }
    var rows = Self.rows(part["elements"], part["types"])[...]
    if let first = nextSection, part["at"]?.path != [first, sections[first].rows.count] {
      throw Violation(
        description: "a part at \(part["at"]?.text ?? "nothing"), not \(first),\(sections[first].rows.count)")
    }
    while let place = nextSection, !rows.isEmpty {
      let taken = isSpanning ? rows.prefix(promised[place] - sections[place].rows.count) : rows
      sections[place].rows += taken
      rows = rows.dropFirst(taken.count)
    }
    if !rows.isEmpty { throw Violation(description: "more rows than promised: \(part)") }
    let isComplete = sections.indices.allSatisfy { sections[$0].rows.count == promised[$0] }
    guard part["last"]?.bool == isComplete else {
      throw Violation(description: "the part says last: \(part["last"]?.text ?? "nothing"), complete is \(isComplete)")
    }
    phase = isComplete ? .live : .snapshot(isFirst: false)
    if part["ended"]?.bool == true { phase = .ended }
  }

  /// The first section of which rows are missing in the snapshot; nil if there is none.
  private var nextSection: Int? { sections.indices.first { sections[$0].rows.count < promised[$0] } }

  /// - Parameter settled: the revisions that the feed got in any case, because it no longer shows rows of managed feeds.
  mutating func take(delta: Value, settled: Set<Int>? = nil) throws(Violation) {
    guard phase == .live else { throw Violation(description: "a delta while \(phase): \(delta)") }
    guard delta["from"]?.int == revision, let new = delta["revision"]?.int, new > revision else {
      throw Violation(description: "the copy is at \(revision), the delta is \(delta)")
    }
    let change = Change(delta)
    let isEnd = delta["ended"]?.bool == true
    // Otherwise only changes of several commits can cancel out.
    if change.isEmpty && !isEnd && settled?.contains(new) != true
      && (new == revision + 1 || delta["elements"]?.items.isEmpty == false)
    {
      throw Violation(description: "a delta of nothing: \(delta)")
    }
    try check(identities: delta, of: change)
    var rows = sections.map(\.rows)
    do {
      try TestSupport.apply(change, to: &rows, elements: Self.rows(delta["elements"], delta["types"]))
    } catch {
      throw Violation(description: "\(error): \(delta)")
    }
    var names = sections.map(\.name)
    change.applySections(to: &names) { $0.name }
    sections = zip(names, rows).map { Section(name: $0, rows: $1) }
    revision = new
    deltas += 1
    if isEnd { phase = .ended }
  }

  func take(bookmark: Value, epoch: String) throws(Violation) {
    guard phase == .live, bookmark["revision"]?.int == revision, bookmark["epoch"]?.string == epoch,
      let current = bookmark["current"]?.int, current >= revision
    else { throw Violation(description: "the copy is at \(revision), the bookmark is \(bookmark)") }
  }

  /// The same copy as of a later revision of the daemon at which the feed has not changed.
  func asOf(_ revision: Int) -> Mirror {
    var copy = self
    copy.revision = revision
    return copy
  }
}

/// Identities of deleted rows ("Identities" in the specification). Those that are not told are null.
extension Mirror {
  private func check(identities delta: Value, of change: Change) throws(Violation) {
    guard let rows = delta["deletedIDs"], rows.text != "null" else { return }
    let ofSections = delta["deletedSectionIDs"]?.items ?? []
    guard rows.items.count == change.deleted.count, ofSections.count == change.sectionsDeleted.count else {
      throw Violation(description: "identities of other rows: \(delta)")
    }
    for (path, id) in zip(change.deleted, rows.items) {
      guard sections.indices.contains(Int(path.section)),
        sections[Int(path.section)].rows.indices.contains(Int(path.row))
      else { continue }
      try check(id, of: sections[Int(path.section)].rows[Int(path.row)])
    }
    for (section, ids) in zip(change.sectionsDeleted, ofSections) where sections.indices.contains(Int(section)) {
      let rows = sections[Int(section)].rows
      guard rows.count == ids.items.count else { throw Violation(description: "identities of other rows: \(delta)") }
      for (row, id) in zip(rows, ids.items) { try check(id, of: row) }
    }
  }

  private func check(_ id: Value, of row: Row) throws(Violation) {
    let element = Value(row.element)
    let identities = ["id", "v", "feed"].compactMap { element?[$0]?.text }
    if id.text == "null" || identities.contains(id.text) { return }
    throw Violation(description: "the identity \(id.text) for \(row.element)")
  }
}

extension Change {
  /// The change in the members of a delta or of the answer to a mutation.
  init(_ value: Value) {
    func paths(_ name: String) -> [IndexPath] {
      (value[name]?.items ?? []).map { IndexPath(section: UInt32($0.path[0]), row: UInt32($0.path[1])) }
    }
    self.init(
      deleted: paths("deleted"), added: paths("added"), updated: paths("updated"),
      moves: (value["moves"]?.items ?? []).map { Move(deleted: UInt32($0.path[0]), added: UInt32($0.path[1])) },
      sectionsDeleted: (value["sections"]?["deleted"]?.items ?? []).compactMap { UInt32($0.text) },
      sectionsAdded: (value["sections"]?["added"]?.items ?? []).map {
        SectionAddition(at: UInt32($0["at"]?.int ?? -1), name: $0["name"]?.string ?? "")
      })
  }
}
