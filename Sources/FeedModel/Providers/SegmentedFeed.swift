/// A provider of which one child shows, or none (seed 002, `SegmentedSectionProvider`).
public final class SegmentedFeed: ProviderFeed {
  /// The index of the child that shows; -1 for none.
  public internal(set) var current = -1

  public override var kind: String { "segmented" }

  override var shownPlaces: Range<Int> {
    children.indices.contains(current) ? current..<current + 1 : 0..<0
  }

  /// What shows of children of which one is active.
  static func shown(_ children: [Feed], _ current: Int) -> [Feed] {
    children.indices.contains(current) ? [children[current]] : []
  }
}
