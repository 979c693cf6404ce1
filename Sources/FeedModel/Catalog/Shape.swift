/// Tells whether the numbers of rows and sections of feeds may be others than they were.
///
/// `@exclusivity(unchecked)`: see `Catalog`.
final class Shape {
  /// Another one after every operation that made rows or sections come or go, and after every one that was undone.
  @exclusivity(unchecked) var version: UInt64 = 0
}
