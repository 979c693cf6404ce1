import FeedChange
import FeedJSON

/// How far a request was checked when it arrived. The check of a long one takes several turns.
///
/// A check that throws does so again where it goes on.
struct RequestCheck {
  /// The units that one turn checks of a long request. One takes about half a microsecond.
  static let unitsPerTurn = 4096
  /// The units of a short part, such as an operation.
  static let unitsOfPart = 2
  /// The bytes of a definition that take a unit.
  private static let bytesOfAUnit = 64

  /// The units left in this turn.
  private(set) var left = Int.max
  /// The operations whose definitions were checked, and whether there are any.
  var definitions = ListProgress()
  var hasDefinitions = false
  /// What the access rules allow: the conditions and the operations of the request, and of the operation that is next the
  /// conditions and the feeds that it would make another feed show.
  var conditions = ListProgress()
  var operations = ListProgress()
  var conditionsOfOperation = ListProgress()
  var shown = 0
  /// Whether the access rules allow the request.
  var isAllowed = false

  /// Begins a part of the check.
  mutating func beginTurn() { left = Self.unitsPerTurn }

  /// Lets the rest be checked at once.
  mutating func beginRest() { left = .max }

  /// Counts a short part of the work, or a definition. Returns false if no more is to be done in this turn.
  mutating func spend(definition: JSONView? = nil) -> Bool {
    if left <= 0 { return false }
    left -= Self.unitsOfPart &+ (definition?.text.count ?? 0) / Self.bytesOfAUnit
    return true
  }
}

/// The elements of an array that were visited, so that the rest can be visited later.
struct ListProgress {
  private(set) var count = 0
  private var place = JSONView.Elements.start

  /// Visits the elements that were not visited.
  ///
  /// - Parameter visit: returns whether it is done with an element. If not, the element is visited again.
  /// - Returns: whether all elements were visited.
  mutating func advance(
    over list: JSONView, _ visit: (_ index: Int, _ element: JSONView) throws(FeedError) -> Bool
  ) throws(FeedError) -> Bool {
    var elements = list.elements(from: place)
    while let element = elements.next() {
      guard try visit(count, element) else { return false }
      count += 1
      place = elements.place(in: list)
    }
    return true
  }
}
