import Synchronization

/// Takes results that nobody needs, so that the compiler cannot leave out what made them.
enum Sink {
  private static let value = Atomic<Int>(0)

  @inline(never)
  static func take(_ number: Int) { value.store(number, ordering: .relaxed) }
}
