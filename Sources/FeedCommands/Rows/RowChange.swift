import FeedChange
import FeedClient
import FeedJSON
import FeedQuery

/// What happened to one row, as far as a notification and the rows known before tell.
struct RowChange {
  enum Kind: Equatable {
    /// A row of the first snapshot of a watch.
    case initial
    case added
    case updated
    /// The row has another place and the same element.
    case moved
    /// The row has another place, and another element or one that cannot be compared with the one before.
    case movedAndUpdated
    case deleted
    /// A row of a snapshot after a reset that is as it was before.
    case unchanged
    /// A row of a snapshot after a reset. Whether the row is new is unknown.
    case unknown
  }

  var kind: Kind
  /// The place before the change; nil for a new row.
  var before: Place?
  /// The place after the change; nil for a deleted row.
  var after: Place?
  /// The element after the change. Valid as long as the notification.
  var element: JSONView?
  var type: String?
  /// The identity as JSON text; nil if unknown.
  var id: [UInt8]?
  /// Whether the filter accepts the element. A deleted row has that of its last element, and is accepted if nothing is known.
  var isAccepted = true
  /// The index of the element in the notification's `elements`; nil for a deleted row.
  var number: Int?
  /// The index of the row in the notification's `deleted`; nil if it is not listed there.
  var deletedNumber: Int?

  struct Place: Equatable {
    var path: IndexPath
    /// The name of the section; nil if unknown.
    var section: String?
    /// The value of a section by value, as JSON text.
    var key: [UInt8]?

    /// Whether the section has this name; nil if unknown.
    func isIn(_ name: String?) -> Bool { (section ?? "").isSame(as: name ?? "") }
  }
}

/// What tells the rows of a feed apart. Identities are unique in each feed whose rows are shown, which the names of sections
/// begin with. Slots and views can have rows of several feeds in their one section (see ``IdentityPaths/areShared(in:)``): such
/// rows may share an identity.
struct RowIdentity: Hashable {
  private let feed: String?
  private let id: [UInt8]

  /// - Parameters:
  ///   - id: the identity as JSON text; the result is nil without one.
  ///   - section: the name of the section; nil if unknown.
  init?(_ id: [UInt8]?, in section: String?) {
    guard let id else { return nil }
    (feed, self.id) = (section.map(SectionWord.feed), RowPrint.canonical(id))
  }
}

struct RowNews {
  var rows: [RowChange] = []
  /// The reason and the position of a reset, with the first part of its snapshot.
  var reset: Reset?
  /// Whether the notification is a part of the snapshot of a reset.
  var isOfReset = false
  var identities = IdentityPaths.id
  /// A delta with the ``RowPrint`` of each row in place of its element; nil for a snapshot.
  var delta: Delta?
  /// Whether `rows` have all rows of the sections that a delta deletes, because their numbers were known.
  var hasAllDeleted = false

  /// The beginning of a reset: the copy of the watcher is replaced by a new snapshot.
  struct Reset {
    /// Why, for people.
    var reason: String
    /// The sections of the snapshot; nil if the notification has them.
    var sections: [SectionSummary]?
    /// Whether the rows from before are known, so that new rows are told from old ones.
    var isCompared: Bool
  }
}

/// What a display wants to know of the rows.
enum RowNeeds {
  /// Nothing.
  case none
  /// Only when a snapshot replaces what was shown before.
  case resets
  /// What each notification does to each row.
  case all
}

/// The kinds of rows that `--only` and `--where` let through.
struct ChangeFilter {
  /// The words of `--only`, in the order of the help.
  static let words = ["added", "updated", "deleted", "moved"]

  /// The words that were given; nil for all rows.
  var words: Set<String>?
  var filter: Filter?
  var section: SectionWord?

  /// Parses the values of the options.
  init(_ list: String?, option name: String, where condition: String?, section: SectionWord? = nil) throws(Failure) {
    self.section = section
    if let list {
      let given = list.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
      if let wrong = given.first(where: { !Self.words.contains($0) }) {
        let advice = Spelling.suggestion(
          for: wrong, in: Self.words, otherwise: "; expected a list of \(Self.words.joined(separator: ", "))")
        throw .usage("--\(name) '\(list)': unknown kind '\(wrong)'\(advice)")
      }
      words = Set(given)
    }
    guard let condition else { return }
    do throws(QueryError) {
      filter = try Filter(parsing: condition)
    } catch {
      throw .usage("--where '\(condition)': \(error.message) at byte \(error.offset)")
    }
  }

  /// Whether everything passes.
  var isOpen: Bool { words == nil && filter == nil && section == nil }

  /// Whether the rows before a change must be known: to judge what a deleted row was, or to tell whether a moved one is updated.
  var needsRows: Bool {
    let wants = { [words] (word: String) in words?.contains(word) ?? true }
    return filter != nil && wants("deleted") || wants("moved") != wants("updated")
  }

  /// Returns the changes that pass, as they are seen in the section: a row that comes there is added, one that leaves it deleted.
  func seen(_ changes: [RowChange]) -> [RowChange] {
    changes.compactMap { change in
      var change = change
      switch section?.passage(from: change.before, to: change.after) ?? .inside {
      case .outside: return nil
      case .inside: break
      case .enters:
        if change.kind == .moved || change.kind == .movedAndUpdated { change.kind = .added }
        (change.before, change.deletedNumber) = (nil, nil)
      case .leaves:
        change.kind = .deleted
        (change.after, change.element, change.type, change.number) = (nil, nil, nil, nil)
      }
      return accepts(change) ? change : nil
    }
  }

  private func accepts(_ change: RowChange) -> Bool {
    guard change.isAccepted else { return false }
    guard let words else { return true }
    switch change.kind {
    case .initial, .unchanged: return false
    case .added, .unknown: return words.contains("added")
    case .updated: return words.contains("updated")
    case .moved: return words.contains("moved")
    case .movedAndUpdated: return words.contains("moved") || words.contains("updated")
    case .deleted: return words.contains("deleted")
    }
  }
}

/// Compares the rows of a new snapshot with those known before it, by identity and digest.
///
/// A row with an identity is compared with one of the same identity and feed. Where types name the feeds, it is one of the same
/// type, or one whose type is unknown. If there are several, it is one of the same section, and of those one of the same digest,
/// because a view may show rows of several feeds that have one identity. A row without an identity is the same as any with the
/// same digest.
struct ResetComparison {
  private struct Known {
    var place: RowChange.Place
    var print: RowPrint
    var isTaken = false
  }

  private var known: [Known] = []
  /// The indexes in `known` by identity, or by digest for rows without one: a list for each run of rows of one type, section and digest, in which the
  /// first row is at the end.
  private var byID: [RowIdentity: [[Int]]] = [:]
  private var byDigest: [UInt64: [[Int]]] = [:]

  /// Creates the comparison with the rows of a mirror of prints.
  init(_ sections: [Mirror.Section]) {
    for (number, section) in sections.enumerated() {
      for (row, text) in section.rows.enumerated() {
        guard let print = RowPrint(text.element) else { continue }
        let path = IndexPath(section: UInt32(number), row: UInt32(row))
        known.append(Known(place: RowChange.Place(path: path, section: section.name, key: section.key), print: print))
      }
    }
    for index in known.indices.reversed() {
      let print = known[index].print
      if let identity = RowIdentity(print.id, in: known[index].place.section) {
        Self.add(index, to: &byID[identity, default: []], known)
      } else {
        Self.add(index, to: &byDigest[print.digest, default: []], known)
      }
    }
  }

  private static func add(_ index: Int, to lists: inout [[Int]], _ known: [Known]) {
    let row = known[index]
    // The rows of a section come one after another.
    if let last = lists.last, rank(of: known[last[0]], for: row.print, row.place.section) == maxRank {
      lists[lists.count - 1].append(index)
    } else {
      lists.append([index])
    }
  }

  mutating func judge(_ print: RowPrint, section: String?) -> (kind: RowChange.Kind, before: RowChange.Place?) {
    guard let index = take(print, section) else { return (.added, nil) }
    known[index].isTaken = true
    let (before, isSame) = (known[index].place, known[index].print.digest == print.digest)
    if before.isIn(section) { return (isSame ? .unchanged : .updated, before) }
    return (isSame ? .moved : .movedAndUpdated, before)
  }

  private mutating func take(_ print: RowPrint, _ section: String?) -> Int? {
    guard let identity = RowIdentity(print.id, in: section) else {
      return Self.take(from: &byDigest[print.digest], print, section, known)
    }
    return Self.take(from: &byID[identity], print, section, known)
  }

  private static func take(from lists: inout [[Int]]?, _ print: RowPrint, _ section: String?, _ known: [Known]) -> Int?
  {
    var best: (rank: Int, row: Int, place: Int)?
    for place in (lists ?? []).indices.reversed() {
      guard let row = lists?[place].last, let rank = Self.rank(of: known[row], for: print, section) else { continue }
      if best.map({ ($0.rank, row) < (rank, $0.row) }) ?? true { best = (rank, row, place) }
      if rank == maxRank { break }
    }
    guard let best else { return nil }
    lists?[best.place].removeLast()
    if lists?[best.place].isEmpty == true { lists?.remove(at: best.place) }
    return best.row
  }

  private static let maxRank = 7

  /// How likely a known row is the one with this print; nil if it is not.
  private static func rank(of row: Known, for print: RowPrint, _ section: String?) -> Int? {
    let hasType = row.print.type == print.type
    // The type is unknown of rows that a former version saved, and when the definitions could not be read.
    guard hasType || row.print.type == nil || print.type == nil else { return nil }
    return (hasType ? 4 : 0) + (row.place.isIn(section) ? 2 : 0) + (row.print.digest == print.digest ? 1 : 0)
  }

  /// The known rows that the snapshot did not have, in order.
  var missing: [RowChange] {
    known.filter { !$0.isTaken }.map {
      RowChange(kind: .deleted, before: $0.place, id: $0.print.id, isAccepted: $0.print.isAccepted)
    }
  }
}

/// The rows of one revision of a feed, to compare later ones with.
struct SavedRows {
  var sections: [SectionSummary]
  /// The print of each row; nil if they are not known.
  var prints: [Mirror.Section]?

  init(sections: [SectionSummary], prints: [Mirror.Section]?) { (self.sections, self.prints) = (sections, prints) }

  /// Reads the array that ``text(maxRows:maxBytes:)`` returned; nil if there is none, or it is something else.
  init?(_ view: JSONView?) {
    guard let view, view.kind == .array else { return nil }
    sections = []
    var prints: [Mirror.Section]? = []
    for entry in view.elements {
      guard let name = entry.member("name")?.string, let count = entry.member("count")?.int, count >= 0 else {
        return nil
      }
      let key = entry.member("key")?.compactText
      sections.append(SectionSummary(name: name, key: key, count: count))
      guard let texts = entry.member("rows")?.elements.map(\.compactText) else {
        prints = nil
        continue
      }
      guard texts.count == count, texts.allSatisfy({ RowPrint($0) != nil }) else { return nil }
      var rows = ChunkedList<Row>()
      rows.append(contentsOf: texts.map { Row(element: $0) })
      prints?.append(Mirror.Section(name: name, key: key, rows: rows))
    }
    self.prints = prints
  }

  /// Returns the sections with their prints as a JSON array, of at most `maxBytes` bytes.
  ///
  /// The prints are left out if there are more than `maxRows` rows, or if the array would be too long. Everything is left out
  /// if there are as many sections, or if their names alone are too long.
  func text(maxRows: Int, maxBytes: Int) -> String? {
    guard sections.count <= maxRows else { return nil }
    let prints = self.prints.flatMap { fits($0, maxRows: maxRows, maxBytes: maxBytes) ? $0 : nil }
    if let prints, let text = text(prints, maxBytes: maxBytes) { return text }
    return text(nil, maxBytes: maxBytes)
  }

  /// Returns the array with these prints; nil if it is too long.
  private func text(_ prints: [Mirror.Section]?, maxBytes: Int) -> String? {
    var text = "["
    for (number, section) in sections.enumerated() {
      if number > 0 { text += "," }
      var object = ParameterWriter(section)
      if let rows = prints?[number].rows {
        object.add("rows", json: rows.map { String(decoding: $0.element, as: UTF8.self) })
      }
      text += object.finish()
      guard text.utf8.count < maxBytes else { return nil }
    }
    return text + "]"
  }

  /// Whether there are not too many rows, nor clearly too many bytes of them to write the text.
  private func fits(_ prints: [Mirror.Section], maxRows: Int, maxBytes: Int) -> Bool {
    guard prints.count == sections.count, sections.reduce(0, { $0 + $1.count }) <= maxRows else { return false }
    var bytes = 0
    for section in prints {
      for row in section.rows { bytes += row.element.count + 1 }
    }
    return bytes <= maxBytes
  }
}
