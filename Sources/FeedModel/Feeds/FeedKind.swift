import FeedChange

/// What distinguishes one kind of feed from another: where its rows come from.
///
/// There are no default implementations, so a new kind that forgets a part does not compile. Sections and rows are those of
/// the present state, including the changes of the commit under way. A kind does not know whether its feed is gone; ``Feed``
/// hides the rows then.
public protocol FeedKind: AnyObject {
  /// The name of the kind in requests and answers.
  var wireName: String { get }
  /// What `define` would have to be given to make this feed as it is now; nil for a bin, which its collection defines.
  var definedAs: FeedDefinition.Content? { get }
  var sectionCount: Int { get }
  /// The section at an index in `0..<sectionCount`.
  func section(at index: Int) -> any FeedSection
  /// The element of an existing row. O(log n).
  func element(at path: IndexPath) -> ElementText
  /// The type of an existing row as a JSON string; empty if it has none. O(log n).
  func type(at path: IndexPath) -> UnsafeRawBufferPointer
  /// Whether rows may have a type.
  var hasTypes: Bool { get }
  /// The rows that operations change step by step; nil for a feed that has none of its own.
  var rows: RowStore? { get }
  /// The feeds that each show one section of this one, by section; empty for all kinds but collections.
  var bins: [Feed] { get }
  /// Gives `feed`, which is of this kind, another definition. Leaves the change of its rows in the operation under way and
  /// logs how to undo it.
  ///
  /// - Throws: `definitionConflict` for a definition of another kind; other errors as `define` does.
  func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError)
}

/// A kind of feed that shows rows of other feeds, its sources, and derives its changes from theirs.
///
/// Invariant: after each commit, what the kind last published equals what its sources hold.
protocol DerivedKind: FeedKind {
  /// The feeds whose rows are shown, each with its place among them. A bin has none: its collection's commits reach it
  /// directly, and only if rows of the bin changed.
  var sources: [(place: Int, feed: Feed)] { get }
  /// Whether rows of the source at a place are visible now.
  func shows(_ place: Int) -> Bool
  /// The index of the first section of the source at a place, if its sections are sections of this feed; nil if the kind
  /// derives a change of its own.
  func offset(ofSectionsAt place: Int) -> Int?
  /// The number of sections that watchers know of.
  var publishedSectionCount: Int { get }
  /// Derives this feed's change from the changes of its sources and notes the present state as published. Called once for a
  /// final commit; cannot fail.
  ///
  /// - Parameter change: empty at the call.
  func derive(_ changes: borrowing SourceChanges, into change: inout Change)
  /// Sections of a source may have been added or removed. Returns whether sections of this feed may have been as well.
  func sourceSectionsDidChange() -> Bool
  /// Takes the present rows of the sources as published, after they were restored from an image.
  func sourcesWereRestored()
}

extension FeedKind {
  /// The error for a definition of another kind.
  func conflict(of feed: Feed, with definition: FeedDefinition) -> FeedError {
    .definitionConflict(
      feed: definition.name,
      reason: "its kind is \(wireName); undefine it before you define it as \(definition.kind)")
  }
}
