/// What is done to a collection, a commit for each element.
enum CollectionOperation: String {
  /// An element that is there, chosen at random, becomes different.
  case update
  /// A new element comes.
  case insert
  /// One of the elements that came last goes.
  case delete
}
