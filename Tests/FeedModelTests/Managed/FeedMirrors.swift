import FeedJSON
import Testing

@testable import FeedChange
@testable import FeedModel

/// Copies of feeds that are updated only by the changes that the catalog publishes.
final class FeedMirrors: CommitObserver {
  struct Copy: Equatable {
    var names: [String] = []
    var rows: [[String]] = []
  }

  private(set) var copies: [String: Copy] = [:]
  /// The last change of each feed.
  private(set) var changes: [String: Change] = [:]
  private(set) var faults: [String] = []

  /// Copies a feed and follows its changes.
  func follow(_ feed: Feed) {
    feed.beginHistory()
    feed.channel = self
    copies[feed.name] = Self.state(of: feed)
  }

  func forgetChanges() { changes = [:] }

  static func state(of feed: Feed) -> Copy {
    var copy = Copy()
    for index in 0..<feed.sectionCount {
      let section = feed.section(at: index)
      copy.names.append(section.name)
      copy.rows.append((0..<section.count).map { String(decoding: section.row(at: $0).text, as: UTF8.self) })
    }
    return copy
  }

  func didChange(_ feed: Feed, by borrowed: borrowing Change, _ publication: Publication) {
    let change = copy borrowed
    changes[feed.name] = change
    guard var copy = copies[feed.name] else { return }
    do {
      try change.validate(rowCounts: copy.rows.map(\.count))
    } catch {
      faults.append("\(feed.name): \(error) in \(change)")
      return
    }
    let now = Self.state(of: feed)
    for path in change.deleted.reversed() { copy.rows[Int(path.section)].remove(at: Int(path.row)) }
    for section in change.sectionsDeleted.reversed() {
      copy.rows.remove(at: Int(section))
      copy.names.remove(at: Int(section))
    }
    for section in change.sectionsAdded {
      copy.rows.insert([], at: Int(section.at))
      copy.names.insert(section.name, at: Int(section.at))
    }
    for path in change.added {
      copy.rows[Int(path.section)].insert(now.rows[Int(path.section)][Int(path.row)], at: Int(path.row))
    }
    for path in change.updated {
      copy.rows[Int(path.section)][Int(path.row)] = now.rows[Int(path.section)][Int(path.row)]
    }
    if copy != now { faults.append("\(feed.name): \(copy) is not \(now) after \(change)") }
    copies[feed.name] = copy
  }

  func didCarrySelection(of feed: Feed) {}
  func didEnd(_ feed: Feed) {}
  func didPublish() {}
}
