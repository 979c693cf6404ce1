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
  }
}

/// The rows of one notification.
struct RowNews {
  var rows: [RowChange] = []
  /// The reason and the position of a reset, with the first part of its snapshot.
  var reset: Reset?
  /// Whether the notification is a part of the snapshot of a reset.
  var isOfReset = false
  var identities = IdentityPaths.id
  /// A delta with the ``RowPrint`` of each row in place of its element; nil for a snapshot.
  var delta: Delta?

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
  /// - Parameter name: the option of the words, for errors.
  init(
    _ list: String?, option name: String, where condition: String?, section: SectionWord? = nil
  ) throws(Failure) {
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
