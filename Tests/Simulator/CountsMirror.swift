import FeedChange

@testable import ReferenceModel

/// A watcher's knowledge of the numbers of rows of one feed, checked by the rules of `Protocol/README.md`, "Counts".
struct CountsMirror {
  let feed: String
  private(set) var revision: Int
  private(set) var isEnded = false

  /// Begins with the answer to `watch`.
  /// - Parameter known: the revision that the watch was to resume from.
  init(_ result: Value, since known: Int?, _ oracle: Oracle) throws(SimulationFailure) {
    guard let feed = result["feed"]?.string, let revision = result["revision"]?.int,
      let isResumed = result["resumed"]?.bool, let sections = result["sections"]
    else { throw SimulationFailure("the answer to watch lacks a member: \(result)") }
    self.feed = feed
    guard Self.summaries(sections) == Self.summaries(oracle.content(of: feed, at: revision)) else {
      throw SimulationFailure("\(feed) has other sections at \(revision)")
    }
    self.revision = isResumed ? known ?? -1 : revision
    if isResumed && known == nil { throw SimulationFailure("resumed without being asked to") }
  }

  mutating func take(delta: Value, _ oracle: Oracle) throws(SimulationFailure) {
    guard delta["from"]?.int == revision, let new = delta["revision"]?.int, new > revision else {
      throw SimulationFailure("the counts are of \(revision), the delta is \(delta)")
    }
    for name in ["deleted", "added", "updated", "moves", "elements", "types"] where delta[name] != nil {
      throw SimulationFailure("a delta of counts has \(name)")
    }
    isEnded = delta["ended"]?.bool == true
    var names = Self.summaries(oracle.content(of: feed, at: revision)).map(\.name)
    revision = new
    if isEnded { return }
    let change = Change(delta)
    guard change.sectionsDeleted.allSatisfy({ $0 < UInt32(names.count) }) else {
      throw SimulationFailure("sections are deleted that are not there: \(delta)")
    }
    change.applySections(to: &names) { $0.name }
    let counts = (delta["counts"]?.items ?? []).map { $0.int ?? -1 }
    let expected = Self.summaries(oracle.content(of: feed, at: revision))
    guard names == expected.map(\.name), counts == expected.map(\.count) else {
      throw SimulationFailure("the counts of \(feed) at \(revision) are \(expected), not \(names) \(counts)")
    }
  }

  mutating func take(reset: Value, _ oracle: Oracle) throws(SimulationFailure) {
    guard reset["reset"]?.bool == true, reset["last"]?.bool == true, reset["elements"]?.items.isEmpty != false,
      let new = reset["revision"]?.int, new >= revision, let sections = reset["sections"]
    else { throw SimulationFailure("a snapshot for counts of \(revision): \(reset)") }
    revision = new
    isEnded = reset["ended"]?.bool == true
    if isEnded { return }
    guard Self.summaries(sections) == Self.summaries(oracle.content(of: feed, at: revision)) else {
      throw SimulationFailure("the reset of \(feed) has other sections at \(revision)")
    }
  }

  func take(bookmark: Value, epoch: String) throws(SimulationFailure) {
    guard bookmark["revision"]?.int == revision, bookmark["epoch"]?.string == epoch else {
      throw SimulationFailure("the counts are of \(revision), the bookmark is \(bookmark)")
    }
  }

  private struct Summary: Equatable {
    let name: String
    let count: Int
  }

  private static func summaries(_ sections: Value) -> [Summary] {
    sections.items.map { Summary(name: $0["name"]?.string ?? "", count: $0["count"]?.int ?? -1) }
  }

  private static func summaries(_ sections: [Mirror.Section]?) -> [Summary] {
    (sections ?? []).map { Summary(name: $0.name, count: $0.rows.count) }
  }
}
