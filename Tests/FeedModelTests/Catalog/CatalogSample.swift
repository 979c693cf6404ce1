@testable import FeedChange
@testable import FeedModel

/// A catalog that is changed by JSON texts, and a record of its publications.
final class CatalogSample {
  /// The observer of the feeds, which keep it. It does not keep the catalog.
  private final class Record: CommitObserver {
    var published: [(feed: String, change: Change, publication: Publication)] = []
    var ended: [String] = []

    func didChange(_ feed: Feed, by change: borrowing Change, _ publication: Publication) {
      published.append((feed.name, copy change, publication))
    }
    func didCarrySelection(of feed: Feed) {}
    func didEnd(_ feed: Feed) { ended.append(feed.name) }
    func didPublish() {}
  }

  let catalog = Catalog(limits: Limits(), seed: 5)
  private let record = Record()
  private var moment: UInt64 = 1_000_000_000

  /// Defines feeds in one commit and watches them.
  init(_ definitions: String...) throws {
    try commit { for definition in definitions { try define(definition) } }
    for feed in catalog.feeds.values { watch(feed) }
    forget()
  }

  /// The publications of the last commit, in order.
  var published: [(feed: String, change: Change, publication: Publication)] { record.published }
  var ended: [String] { record.ended }

  private func forget() { (record.published, record.ended) = ([], []) }

  func watch(_ feed: Feed) {
    feed.beginHistory()
    feed.channel = record
  }

  func feed(_ name: String) throws -> Feed { try catalog.feed(named: name) }

  /// Runs operations as one commit. Returns whether anything changed.
  @discardableResult
  func commit(after nanoseconds: UInt64 = 1_000_000_000, _ operations: () throws -> Void) throws -> Bool {
    forget()
    moment += nanoseconds
    catalog.begin(at: Instant(nanoseconds: moment))
    do {
      try operations()
    } catch {
      catalog.rollBack()
      catalog.checkInvariants()
      throw error
    }
    let changed = catalog.finish(to: record)
    catalog.checkInvariants()
    return changed
  }

  func rollBack(_ operations: () throws -> Void) throws {
    catalog.begin(at: Instant(nanoseconds: moment))
    defer {
      catalog.rollBack()
      catalog.checkInvariants()
    }
    try operations()
  }

  func define(_ json: String, replace: Bool = false) throws {
    try withView(json) {
      try catalog.define(FeedDefinition(parsing: $0, limits: catalog.limits), replace: replace)
    }
  }

  func update(_ name: String, _ element: String) throws {
    let collection = try catalog.collection(named: name)
    try withView(element) { try collection.update($0, in: catalog.commit) }
  }

  func delete(_ name: String, _ id: String) throws {
    let collection = try catalog.collection(named: name)
    try withView(id) { try collection.delete($0, in: catalog.commit) }
  }

  func provider(_ name: String) throws -> ProviderKind {
    guard let provider = try feed(name).kind as? ProviderKind else { throw FeedError.unknownFeed(name) }
    return provider
  }

  func rows(_ name: String) throws -> [[String]] {
    let feed = try feed(name)
    return (0..<feed.sectionCount).map { index in
      let section = feed.section(at: index)
      return (0..<section.count).map { String(decoding: section.row(at: $0).text, as: UTF8.self) }
    }
  }

  /// The changes published in the last commit, by feed.
  var changes: [String: Change] {
    Dictionary(published.map { ($0.feed, $0.change) }, uniquingKeysWith: { _, last in last })
  }
}

extension IndexPath {
  init(_ section: UInt32, _ row: UInt32) { self.init(section: section, row: row) }
}
