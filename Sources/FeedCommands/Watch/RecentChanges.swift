import FeedChange

/// The changes of the last two seconds, which ``LiveList`` marks and counts in the headings of sections.
struct RecentChanges {
  /// The numbers of recent changes of one section.
  struct Tally: Equatable {
    var added = 0
    var updated = 0
    var moved = 0
    var deleted = 0

    static func + (one: Tally, other: Tally) -> Tally {
      Tally(
        added: one.added + other.added, updated: one.updated + other.updated, moved: one.moved + other.moved,
        deleted: one.deleted + other.deleted)
    }
  }

  /// The changes of a tenth of a second, so that a busy feed has a short list.
  private struct Moment {
    /// The time of the first change.
    var time: UInt64
    /// The revision of the first change.
    var revision: UInt64
    /// One for each present section.
    var tallies: [Tally]
  }

  private static let momentTime: UInt64 = 100_000_000
  /// Nanoseconds for which a change is recent.
  private static let time: UInt64 = 2_000_000_000

  /// Oldest first.
  private var moments: [Moment] = []

  /// The time when the oldest change is no longer recent; nil if there is none.
  var deadline: UInt64? { moments.first.map { $0.time &+ Self.time } }

  /// Whether the change that led to a revision is recent.
  func contains(revision: UInt64) -> Bool { moments.first.map { revision >= $0.revision } ?? false }

  /// The numbers of recent changes of a present section.
  func tally(of section: Int) -> Tally {
    moments.reduce(Tally()) { sum, moment in
      moment.tallies.indices.contains(section) ? sum + moment.tallies[section] : sum
    }
  }

  /// Records a change. A moved row counts neither as added nor as deleted.
  /// - Parameter sections: the number of sections before the change.
  mutating func note(_ change: Change, revision: UInt64, sections: Int, now: UInt64) {
    if moments.last.map({ now >= $0.time &+ Self.momentTime }) ?? true {
      moments.append(Moment(time: now, revision: revision, tallies: Array(repeating: Tally(), count: sections)))
    }
    let last = moments.count - 1
    for path in change.deleted { moments[last].tallies[Int(path.section)].deleted += 1 }
    for move in change.moves {
      moments[last].tallies[Int(change.deleted[Int(move.deleted)].section)].deleted -= 1
    }
    if !change.hasSameSections {
      for place in moments.indices { change.applySections(to: &moments[place].tallies) { _ in Tally() } }
    }
    for path in change.added { moments[last].tallies[Int(path.section)].added += 1 }
    for move in change.moves {
      let section = Int(change.added[Int(move.added)].section)
      moments[last].tallies[section].added -= 1
      moments[last].tallies[section].moved += 1
    }
    for path in change.updated { moments[last].tallies[Int(path.section)].updated += 1 }
  }

  /// Forgets changes that are no longer recent.
  mutating func expire(now: UInt64) {
    let old = moments.prefix { now >= $0.time &+ Self.time }
    moments.removeFirst(old.count)
  }
}
