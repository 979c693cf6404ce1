import TestSupport

@testable import FeedChange
@testable import FeedModel

/// The changes that a commit publishes: one of the collection and one of each bin.
extension CollectionPair {
  private final class Published: CommitObserver {
    var changes: [String: Change] = [:]
    var ended: [String] = []

    func didChange(_ feed: Feed, by change: borrowing Change, _ publication: Publication) {
      changes[feed.name] = copy change
    }
    func didEnd(_ feed: Feed) { ended.append(feed.name) }
    func didPublish() {}
    func didCarrySelection(of feed: Feed) {}
  }

  /// Commits, and checks the changes that are published against the state before the commit.
  func commit(from before: CollectionReference) throws {
    let observer = Published()
    let feeds = try [feed] + feed.kind.bins
    for feed in feeds { feed.channel = watched }
    let revision = catalog.revision
    let isCommit = catalog.finish(to: observer)
    guard catalog.revision == revision + (isCommit ? 1 : 0) else { throw Mismatch("the revision") }
    let change = observer.changes["c"] ?? Change()
    try check(change, from: before, "the commit", isExact: !isRedefining)
    for feed in feeds {
      let isChanged = observer.changes[feed.name] != nil
      guard feed.revision == catalog.revision || !isChanged else { throw Mismatch("the revision of \(feed.name)") }
      if observer.ended.contains(feed.name) {
        // Another feed of the name ended with the same revision, from which no watch of this one resumes.
        guard feed.history?.reaches(catalog.revision) != true else { throw Mismatch("the past of \(feed.name)") }
      } else {
        try checkHistory(of: feed, change: observer.changes[feed.name])
      }
    }
    for (place, bin) in before.rules.bins.enumerated() {
      let name = "c/\(bin.name)"
      let after = reference.rules.bins.firstIndex { $0.name == bin.name }.map { [reference.rows(of: $0)] } ?? []
      let isOver = observer.ended.contains(name)
      try check(bin: name, from: before.rows(of: place), to: isOver ? [] : after, observer.changes[name])
    }
    let gone = before.rules.bins.map(\.name).filter { name in !reference.rules.bins.contains { $0.name == name } }
    guard Set(gone.map { "c/\($0)" }).isSubset(of: observer.ended) else {
      throw Mismatch("the removed bins \(gone) did not end")
    }
  }

  private func checkHistory(of feed: Feed, change: Change?) throws {
    guard let history = feed.history, let change else { return }
    let place = history.place(after: history.end) - 1
    guard let last = history.change(at: place), last.to == catalog.revision, last.change == change else {
      throw Mismatch("the last change in the history of \(feed.name) is not \(change)")
    }
  }

  /// Checks the published change of a bin, which is a feed with one section.
  private func check(bin name: String, from before: [String], to after: [[String]], _ change: Change?) throws {
    var rows = [before]
    guard let change else {
      guard after == [before] else { throw Mismatch("the change of \(name) was not published") }
      return
    }
    let elements = (change.added + change.updated).map { after[Int($0.section)][Int($0.row)] }
    do { try TestSupport.apply(change, to: &rows, elements: elements) } catch { throw Mismatch("\(name): \(error)") }
    guard rows == after else { throw Mismatch("\(change) of \(name) leads from \(before) to \(rows), not \(after)") }
  }
}

extension CollectionReference {
  func rows(of bin: Int) -> [String] { bins[bin].map { element($0).text } }
}
