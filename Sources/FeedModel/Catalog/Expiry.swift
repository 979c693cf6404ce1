/// The collections that evict elements by age.
///
/// Invariant: holds every collection of the table whose definition retains by age, in the order of names, so that evictions
/// come in the same order in every process.
struct Expiry {
  private var collections: [CollectionKind] = []

  /// Looks for the collections anew after definitions changed. O(feeds).
  mutating func refresh(from table: FeedTable) {
    collections = table.inNameOrder.compactMap { $0.collection }.filter(\.retainsByAge)
  }

  /// When the next element of any collection is too old; nil if none will be. O(collections that retain by age).
  var next: Instant? {
    if collections.isEmpty { return nil }
    return collections.compactMap(\.nextExpiry).min()
  }

  /// The collections that have an element too old at `now`.
  func due(at now: Instant) -> [CollectionKind] {
    collections.filter { collection in collection.nextExpiry.map { $0 <= now } ?? false }
  }

  /// O(feeds).
  func checkInvariants(_ table: FeedTable) {
    var fresh = Expiry()
    fresh.refresh(from: table)
    precondition(
      collections.elementsEqual(fresh.collections, by: ===), "the list of collections that retain by age is out of date"
    )
  }
}
