import FeedChange
import FeedModel

/// The identities of the rows of a feed at one revision, by position: JSON texts, and nil for rows that have none.
///
/// A value, so that a copy can go back to an earlier revision while the original follows the feed. Rows are in chunks that
/// copies share until one of them changes.
///
///     let removed = rows.apply(change) { path in feed.element(at: path).identityText }
///     rows.undo(change, removed)
struct RowIdentities {
  /// The rows that a change removes from their places: those of `Change.deleted`, and those of each section of
  /// `Change.sectionsDeleted`.
  struct Removed {
    var rows: [String?] = []
    var sections: [[String?]] = []

    /// The memory in bytes.
    var bytes: Int {
      rows.reduce(0) { $0 + RowIdentities.bytes(of: $1) }
        + sections.reduce(0) { $0 + $1.reduce(32) { $0 + RowIdentities.bytes(of: $1) } }
    }
  }

  private var sections: [ChunkedList<String?>] = []
  /// The memory in bytes.
  private(set) var bytes = 0

  /// The memory of one row: short texts are held in place.
  private static func bytes(of text: String?) -> Int {
    let length = text?.utf8.count ?? 0
    return 16 + (length > 15 ? 32 + length : 0)
  }

  // MARK: Reading a feed

  /// Appends a section without rows.
  mutating func appendSection() { sections.append(ChunkedList()) }

  /// Appends rows to the last section.
  mutating func append(_ rows: [String?]) {
    bytes += rows.reduce(0) { $0 + Self.bytes(of: $1) }
    sections[sections.count - 1].append(contentsOf: rows)
  }

  // MARK: Changes

  /// The rows that a change, which fits, would remove.
  func removed(by change: borrowing Change) -> Removed {
    var removed = Removed()
    if !change.deleted.isEmpty {
      removed.rows.reserveCapacity(change.deleted.count)
      for run in change.deleted.runsOfSections() {
        removed.rows += sections[run.section].elements(at: change.deleted[run.places].lazy.map { Int($0.row) })
      }
    }
    for section in change.sectionsDeleted { removed.sections.append(Array(sections[Int(section)])) }
    return removed
  }

  /// Follows a change of the feed. Returns the rows that it removed.
  ///
  /// - Parameters:
  ///   - step: called after about each thousand rows.
  ///   - identity: returns the identity of a row after the change.
  mutating func apply(
    _ change: borrowing Change, step: () -> Void = {}, identity: (IndexPath) -> String?
  ) -> Removed {
    let removed = removed(by: change)
    bytes -= removed.bytes - 32 * removed.sections.count
    for run in change.deleted.runsOfSections() {
      sections[run.section].remove(change.deleted[run.places].lazy.map { Int($0.row) })
    }
    if !change.hasSameSections { change.applySections(to: &sections) { _ in ChunkedList() } }
    for run in change.added.runsOfSections() {
      let rows = change.added[run.places].enumerated().map { place, path in
        if place & 1023 == 1023 { step() }
        return identity(path)
      }
      bytes += rows.reduce(0) { $0 + Self.bytes(of: $1) }
      sections[run.section].insert(rows, at: change.added[run.places].lazy.map { Int($0.row) })
    }
    for run in change.updated.runsOfSections() {
      let places = change.updated[run.places].lazy.map { Int($0.row) }
      let before = sections[run.section].elements(at: places)
      let after = change.updated[run.places].enumerated().map { place, path in
        if place & 1023 == 1023 { step() }
        return identity(path)
      }
      if before == after { continue }
      bytes += after.reduce(0) { $0 + Self.bytes(of: $1) } - before.reduce(0) { $0 + Self.bytes(of: $1) }
      sections[run.section].replace(places, with: after)
    }
    return removed
  }

  /// Goes back to the rows before a change, except for the identities of rows that it updated.
  ///
  /// - Parameter removed: the rows that the change removed.
  mutating func undo(_ change: Change, _ removed: Removed) {
    for run in change.added.runsOfSections() {
      sections[run.section].remove(change.added[run.places].lazy.map { Int($0.row) })
    }
    for addition in change.sectionsAdded.reversed() { sections.remove(at: Int(addition.at)) }
    for (place, section) in change.sectionsDeleted.enumerated() {
      var rows = ChunkedList<String?>()
      rows.append(contentsOf: removed.sections[place])
      sections.insert(rows, at: Int(section))
    }
    for run in change.deleted.runsOfSections() {
      sections[run.section].insert(removed.rows[run.places], at: change.deleted[run.places].lazy.map { Int($0.row) })
    }
  }
}
