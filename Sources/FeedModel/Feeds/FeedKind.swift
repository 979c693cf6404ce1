import FeedChange

/// The behaviour of one kind of feed: where its rows come from.
///
/// The only defaults are in ``SingleSectionKind``, so the compiler reports a missing part. Sections and rows are those of the
/// current state, with changes of the open commit; ``Feed`` hides the rows if it was undefined.
public protocol FeedKind: AnyObject {
  /// The name of the kind in requests and answers.
  var wireName: String { get }
  /// The definition that would create the feed as it is now; nil for a bin, which its collection defines.
  var definedAs: FeedDefinition.Content? { get }
  var sectionCount: Int { get }
  /// The section at an index in `0..<sectionCount`.
  func section(at index: Int) -> any FeedSection
  var rowCount: Int { get }
  /// A section that has the row at an index in `0..<rowCount` of the flattened order, and the index of the row in it.
  func locate(_ index: Int) -> (section: any FeedSection, row: Int)
  /// The path of the row at an index in `0..<rowCount` of the flattened order.
  func path(ofFlat index: Int) -> IndexPath
  /// Returns a snapshot of all sections, in parts that are read one after another while the feed may change.
  func makeSnapshots() -> [SectionsSnapshot]
  /// The element at the path of an existing row. O(log n).
  func element(at path: IndexPath) -> ElementText
  /// The type at the path of an existing row, as a JSON string; empty if it has none. O(log n).
  func type(at path: IndexPath) -> UnsafeRawBufferPointer
  /// Whether rows may have a type.
  var hasTypes: Bool { get }
  /// The store of the rows; nil for a feed without stored rows of its own, and for a managed feed.
  var rows: RowStore? { get }
  /// The feeds of the bins, by section; empty unless this is a collection.
  var bins: [Feed] { get }
  /// Redefines `feed`, of this kind. Leaves the change of its rows in the operation, and logs how to undo it.
  /// - Throws: `definitionConflict` for a definition of another kind; otherwise the errors of `define`.
  func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError)
}

/// A kind of feed that shows rows of other feeds, its sources, and derives its changes from theirs.
///
/// Invariant: after each commit, the published state of the kind equals the state of its sources.
protocol DerivedKind: FeedKind {
  /// The feeds whose rows are shown, by place. None of a bin, to which its collection propagates changes directly.
  var sources: [(place: Int, feed: Feed)] { get }
  /// Whether rows of the source at a place are currently visible.
  func shows(_ place: Int) -> Bool
  /// The rows of the sources that existing rows show, by source; no source is without rows. Empty for a bin, whose rules are those of
  /// its collection. O(rows · log n), and O(sections of the sources) for many rows.
  func origins(of rows: [TracedRow], _ pace: Pace) -> [(source: Feed, rows: [TracedRow])]
  /// The index here of the first section of the source at a place; nil if the kind derives its own change.
  func offset(ofSectionsAt place: Int) -> Int?
  /// The steps that deriving the change of one row may take. They count towards `maxDerivedSteps` of each source.
  var stepsPerRow: Int { get }
  /// The number of sections as of the last published commit.
  var publishedSectionCount: Int { get }
  /// Derives the change of this feed from those of its sources, once in each commit, and sets the published state.
  /// - Parameter change: receives the change; empty when called.
  func derive(_ changes: borrowing SourceChanges, into change: inout Change)
  /// Called instead of `derive` when one source changed. If the change is that of the source with its sections shifted,
  /// sets the published state and returns the number of sections before. Otherwise returns nil, without any effect. May stop.
  func shareChange(ofSourceAt place: Int, _ pace: Pace) -> Int?
  /// Called when sections of a source may have come or gone. Returns whether those of this feed may have changed.
  func sourceSectionsDidChange() -> Bool
  /// Sets the published state from the sources, after these were restored from an image.
  func sourcesWereRestored()
}

/// A kind of feed with exactly one section. What follows from that is written here once.
public protocol SingleSectionKind: FeedKind {
  associatedtype Shown: FeedSection
  var shown: Shown { get }
}

extension SingleSectionKind {
  public var sectionCount: Int { 1 }
  public func section(at index: Int) -> any FeedSection { shown }
  public var rowCount: Int { shown.count }
  public func locate(_ index: Int) -> (section: any FeedSection, row: Int) { (shown, index) }
  public func path(ofFlat index: Int) -> IndexPath { IndexPath(section: 0, row: UInt32(index)) }
  public func element(at path: IndexPath) -> ElementText { shown.element(at: Int(path.row)) }
  public func type(at path: IndexPath) -> UnsafeRawBufferPointer { shown.type(at: Int(path.row)) }
  public var bins: [Feed] { [] }
  public func makeSnapshots() -> [SectionsSnapshot] { [SectionsSnapshot(shown.makeSnapshot())] }
}

extension DerivedKind where Self: SingleSectionKind {
  /// Rows that are hidden count too, because any change may show them.
  func shows(_ place: Int) -> Bool { true }
  func offset(ofSectionsAt place: Int) -> Int? { nil }
  func shareChange(ofSourceAt place: Int, _ pace: Pace) -> Int? { nil }
  func sourceSectionsDidChange() -> Bool { false }
}

extension FeedKind {
  func conflict(of feed: Feed, with definition: FeedDefinition) -> FeedError {
    let advice = self is ManagedKind ? "let feedd read its file again without it" : "undefine it"
    return .definitionConflict(
      feed: definition.name,
      reason: "its kind is \(wireName); \(advice) before you define it as \(definition.kind)")
  }
}
