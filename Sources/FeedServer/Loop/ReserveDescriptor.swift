import FeedSystem

/// A descriptor that is held only to be given up when there is no other left.
struct ReserveDescriptor: ~Copyable {
  private var handle: Descriptor?

  init() { take() }

  /// Gives it up: for a moment there is room for one.
  mutating func release() { handle = nil }

  /// Takes one again, if there is any.
  mutating func take() {
    if handle == nil { handle = try? Descriptor(duplicating: StandardStreams.error) }
  }
}
