/// The path of row changes of one feed through all feeds that show its rows, in the order of publication.
///
/// Cached until the structure of the feeds changes, so that most commits only walk a list. Composed and segmented feeds
/// shift sections and share the change of their source. A feed that derives a change of its own, such as a slots feed,
/// has its own slot in the ``ChangeTable``.
final class Route {
  struct Step {
    let feed: Unmanaged<Feed>
    /// The slot with the change of the source, and the number of sections of the source before those of that change.
    let sourceSlot: Int
    let sourceShift: UInt32
    /// The place of the source among the sources of `feed`.
    let place: Int
    /// The slot with this feed's change: the source's, or a slot of its own if the feed derives one.
    let slot: Int
    /// The number of sections of this feed before those of the change.
    let shift: UInt32

    var derives: Bool { slot != sourceSlot }
  }

  /// The version of the graph for which the route was computed.
  let version: UInt64
  /// Every feed that shows the rows, each after its source.
  let steps: [Step]
  /// False if a feed shows the rows through more than one path. Changes are then composed without the route.
  let isWhole: Bool

  init(version: UInt64, steps: [Step], isWhole: Bool) {
    self.version = version
    self.steps = steps
    self.isWhole = isWhole
  }
}
