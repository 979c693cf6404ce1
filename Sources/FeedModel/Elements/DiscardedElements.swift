import FeedChange

/// Memory of elements that are gone, freed a bounded number at a time.
///
/// Freeing a million elements takes a tenth of a second. A table with many elements that is not needed any more leaves
/// them here, and the engine frees some in each turn. So does a commit with the names of many sections.
final class DiscardedElements {
  /// Fewer elements than this are freed at once.
  static let many = 4096

  /// Each frees up to a number of elements, and returns whether none is left.
  private var waiting: [(Int) -> Bool] = []

  var isEmpty: Bool { waiting.isEmpty }

  deinit {
    while !isEmpty { free(.max) }
  }

  /// Takes over elements. `free` frees up to a number of them and returns whether none is left.
  func add(_ free: @escaping (Int) -> Bool) { waiting.append(free) }

  /// Takes over the sections that a change added. Nothing else may hold the list.
  func add(_ sections: [SectionAddition]) {
    var left = sections
    add { count in
      left.removeLast(min(count, left.count))
      return left.isEmpty
    }
  }

  /// Frees all elements. Lets `pace` stop meanwhile.
  func freeAll(_ pace: Pace) {
    while !isEmpty {
      free(64)
      pace.spend(4)
    }
  }

  /// Frees up to `count` elements.
  func free(_ count: Int) {
    if let first = waiting.first, first(count) { waiting.removeFirst() }
  }
}
