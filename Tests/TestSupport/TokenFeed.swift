import FeedChange

/// A feed whose rows and sections have unique tokens, from which the change between two states is computed directly: the
/// reference for composition.
package struct TokenFeed: Equatable {
  package struct Row: Equatable {
    package var token: Int
    package var version = 0
  }
  package struct Section: Equatable {
    package var token: Int
    package var name = ""
    package var rows: [Row] = []
  }

  package var sections: [Section]
  /// For the token of a moved row, the token that the row had before.
  package var origins: [Int: Int] = [:]
  private var lastToken: Int

  package init(rowCounts: [Int]) {
    var token = 0
    func next() -> Int {
      token += 1
      return token
    }
    sections = rowCounts.map { count in
      Section(token: next(), rows: (0..<count).map { _ in Row(token: next()) })
    }
    lastToken = token
  }

  package var rowCounts: [Int] { sections.map(\.rows.count) }

  /// Returns the feed after a change, applied in the steps of "The change" in `Protocol/README.md`.
  package func applying(_ change: Change) -> TokenFeed {
    var feed = self
    var taken: [Int] = []
    let departed = change.transfers.map { sections[Int($0.from.section)].rows[Int($0.from.row)].token }
    for path in change.deleted.reversed() {
      taken.insert(feed.sections[Int(path.section)].rows.remove(at: Int(path.row)).token, at: 0)
    }
    for section in change.sectionsDeleted.reversed() { feed.sections.remove(at: Int(section)) }
    for addition in change.sectionsAdded {
      feed.lastToken += 1
      feed.sections.insert(Section(token: feed.lastToken, name: addition.name), at: Int(addition.at))
    }
    for (place, path) in change.added.enumerated() {
      feed.lastToken += 1
      feed.sections[Int(path.section)].rows.insert(Row(token: feed.lastToken), at: Int(path.row))
      if let move = change.moves.first(where: { Int($0.added) == place }) {
        feed.origins[feed.lastToken] = taken[Int(move.deleted)]
      } else if let known = change.transfers.firstIndex(where: { Int($0.added) == place }) {
        feed.origins[feed.lastToken] = departed[known]
      }
    }
    for path in change.updated { feed.sections[Int(path.section)].rows[Int(path.row)].version += 1 }
    return feed
  }

  /// Returns the change between this state and a later one of the same history.
  package func change(to later: TokenFeed) -> Change {
    var change = Change()
    let sectionsNow = Set(later.sections.map(\.token))
    let sectionsThen = Set(sections.map(\.token))
    let rowsNow = Set(later.sections.flatMap { $0.rows.map(\.token) })
    var rowsThen: [Int: Row] = [:]
    var placeOfDeleted: [Int: Int] = [:]
    var departed: [Int: IndexPath] = [:]
    for (s, section) in sections.enumerated() {
      if !sectionsNow.contains(section.token) { change.sectionsDeleted.append(UInt32(s)) }
      for (r, row) in section.rows.enumerated() {
        rowsThen[row.token] = row
        if !sectionsNow.contains(section.token) {
          departed[row.token] = IndexPath(section: UInt32(s), row: UInt32(r))
        }
        if sectionsNow.contains(section.token), !rowsNow.contains(row.token) {
          placeOfDeleted[row.token] = change.deleted.count
          change.deleted.append(IndexPath(section: UInt32(s), row: UInt32(r)))
        }
      }
    }
    for (s, section) in later.sections.enumerated() {
      if !sectionsThen.contains(section.token) {
        change.sectionsAdded.append(SectionAddition(at: UInt32(s), name: section.name))
      }
      for (r, row) in section.rows.enumerated() {
        let path = IndexPath(section: UInt32(s), row: UInt32(r))
        if let then = rowsThen[row.token] {
          if then.version != row.version { change.updated.append(path) }
          continue
        }
        var source: Int? = row.token
        while let token = source, rowsThen[token] == nil { source = later.origins[token] }
        if let source, let place = placeOfDeleted[source] {
          change.moves.append(Move(deleted: UInt32(place), added: UInt32(change.added.count)))
        } else if let source, let path = departed[source] {
          change.transfers.append(Transfer(from: path, added: UInt32(change.added.count), keepsElement: false))
        }
        change.added.append(path)
      }
    }
    change.moves.sort { $0.deleted < $1.deleted }
    change.transfers.sort { $0.from < $1.from }
    return change
  }
}

extension Change {
  /// Whether this change equals another one, and both know the same rows of deleted sections.
  package func isIdentical(to other: Change) -> Bool {
    self == other
      && transfers.elementsEqual(other.transfers) { $0.from == $1.from && $0.added == $1.added }
  }
}
