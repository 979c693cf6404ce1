import FeedQuery

/// A feed of one stored section: an array, or a single element that may be absent (seeds 002 and 003).
public final class ListFeed: Feed {
  /// Whether it holds any number of elements or at most one.
  public enum Shape: String, Sendable {
    case array
    case single
  }

  public let shape: Shape
  let state: ListState

  public override var kind: String { shape.rawValue }

  init(name: String, shape: Shape, type: SingularPath?, limits: Limits, revision: UInt64) {
    self.shape = shape
    state = ListState(feed: name, type: type, limits: limits)
    super.init(name: name, revision: revision)
  }

  public override var sectionCount: Int { isGone ? 0 : 1 }

  public override func section(at index: Int) -> Section { state.sections[0] }

  override var rowStore: RowStore? { state }

  public override var hasTypes: Bool { state.type != nil }
}
