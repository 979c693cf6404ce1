@testable import FeedChange
@testable import FeedModel

/// One row of a query result.
struct SampleRow: Hashable {
  var key: Int
  var section = ""
  var version = 0

  var text: String { #"{"id":\#(key),"s":"\#(section)","v":\#(version)}"# }
}

/// A catalog with one managed feed, `people`, and mirrors of its feeds.
final class ManagedSample {
  let catalog = Catalog(limits: Limits(), seed: 3)
  let mirrors = FeedMirrors()
  let feed: Feed
  let managed: ManagedKind

  init(bySection: Bool) throws {
    catalog.begin(at: Instant(nanoseconds: 0))
    let definition = ManagedDefinition(database: "d", query: "q", id: "id", section: bySection ? "s" : nil)
    try catalog.define(FeedDefinition(name: "people", content: .managed(definition)), replace: false)
    catalog.finish(to: mirrors)
    feed = try catalog.feed(named: "people")
    guard let managed = feed.kind as? ManagedKind else { throw FeedError.unknownFeed("people") }
    self.managed = managed
    mirrors.follow(feed)
  }

  /// Defines another feed and follows it.
  func define(_ json: String) throws {
    let definition = try withView(json) { try FeedDefinition(parsing: $0, limits: Limits()) }
    catalog.begin(at: Instant(nanoseconds: 0))
    try catalog.define(definition, replace: false)
    catalog.finish(to: mirrors)
    mirrors.follow(try catalog.feed(named: definition.name))
  }

  static func rows(_ rows: [SampleRow]) -> ManagedRows {
    var all = ManagedRows()
    for row in rows { Array(row.text.utf8).withUnsafeBytes { all.append($0, section: row.section) } }
    return all
  }

  /// Sets the rows and returns the published change; empty if there was no commit.
  @discardableResult
  func set(_ rows: [SampleRow]) throws -> Change {
    mirrors.forgetChanges()
    catalog.begin(at: Instant(nanoseconds: 1))
    do {
      try managed.set(Self.rows(rows), in: catalog.commit)
    } catch {
      catalog.rollBack()
      throw error
    }
    catalog.finish(to: mirrors)
    return mirrors.changes["people"] ?? .empty
  }

  /// Sets rows and rolls back.
  func setAndRollBack(_ rows: [SampleRow]) throws {
    catalog.begin(at: Instant(nanoseconds: 1))
    try managed.set(Self.rows(rows), in: catalog.commit)
    catalog.rollBack()
  }

  /// Computes the expected state of the feed directly from the rows.
  static func expected(_ rows: [SampleRow], bySection: Bool) -> FeedMirrors.Copy {
    var copy = FeedMirrors.Copy(names: bySection ? [] : ["people"], rows: bySection ? [] : [[]])
    for row in rows {
      let name = bySection && !row.section.isEmpty ? "people/\(row.section)" : "people"
      let place = copy.names.firstIndex(of: name) ?? copy.names.count
      if place == copy.names.count {
        copy.names.append(name)
        copy.rows.append([])
      }
      copy.rows[place].append(row.text)
    }
    return copy
  }
}
