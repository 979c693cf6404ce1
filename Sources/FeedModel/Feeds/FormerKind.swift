import FeedChange

/// The kind of what is left of a feed that was undefined: it has no sections, no rows and no definition.
final class FormerKind: FeedKind {
  let wireName: String

  fileprivate init(_ kind: any FeedKind) { wireName = kind.wireName }

  var definedAs: FeedDefinition.Content? { nil }
  var sectionCount: Int { 0 }
  func section(at index: Int) -> any FeedSection { preconditionFailure("a feed that is gone has no sections") }
  var rowCount: Int { 0 }
  func locate(_ index: Int) -> (section: any FeedSection, row: Int) {
    preconditionFailure("a feed that is gone has no rows")
  }
  func path(ofFlat index: Int) -> IndexPath { preconditionFailure("a feed that is gone has no rows") }
  func makeSnapshots() -> [SectionsSnapshot] { [] }
  func element(at path: IndexPath) -> ElementText { preconditionFailure("a feed that is gone has no rows") }
  func type(at path: IndexPath) -> UnsafeRawBufferPointer { preconditionFailure("a feed that is gone has no rows") }
  var hasTypes: Bool { false }
  var rows: RowStore? { nil }
  var bins: [Feed] { [] }

  func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError) {
    throw conflict(of: feed, with: definition)
  }
}

extension Feed {
  /// Returns what those need of a feed that is gone who were not told of its end yet: its name, revision and history. It does not
  /// keep the rows, which count for nobody any more, nor the feeds that it showed.
  ///
  /// - Precondition: the commit that undefines the feed has taken effect.
  public func makeRemains() -> Feed {
    precondition(isGone, "a feed that is defined has rows")
    let remains = Feed(name: name, number: number, kind: FormerKind(kind), revision: revision)
    if let history { remains.restore(history) }
    remains.setGone(true)
    return remains
  }
}
