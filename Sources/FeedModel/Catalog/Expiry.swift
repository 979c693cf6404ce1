/// The collections that evict elements by age.
///
/// Invariant: holds every collection of the table whose definition retains by age, in order of name. The order makes
/// evictions the same in every process.
struct Expiry {
  private var collections: [CollectionKind] = []

  /// Rebuilds the list after definitions changed. O(feeds).
  mutating func refresh(from table: FeedTable) {
    collections = table.inNameOrder.compactMap { $0.collection }.filter(\.retainsByAge)
  }

  /// The moment when the next element of any collection expires; nil if none will. O(collections that retain by age).
  var next: Instant? {
    if collections.isEmpty { return nil }
    return collections.compactMap(\.nextExpiry).min()
  }

  /// The collections that have an expired element at `now`.
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
