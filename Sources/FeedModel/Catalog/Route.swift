import FeedChange

/// The path of row changes of one feed through all feeds that show its rows, in the order of publication.
///
/// Cached until the structure of the feeds changes, so that most commits only walk a list. Composed and segmented feeds
/// shift sections and share the change of their source. A feed that derives a change of its own, such as a slots feed,
/// has its own slot in the ``ChangeTable``.
final class Route {
  struct Step {
    let feed: Unmanaged<Feed>
    let slots: Unmanaged<SlotsKind>?
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
  /// Whether each feed on the way shifts the sections of a change, and whether all others are slots feeds.
  private let onlyShifts: Bool
  private let onlySlotsDerive: Bool
  /// For each slot, the path of the updated row that is on its way; `hidden` if the feed does not show the row.
  private let paths: UnsafeMutablePointer<UInt64>
  private static let hidden = UInt64.max

  init(version: UInt64, steps: [Step], isWhole: Bool) {
    (self.version, self.steps, self.isWhole) = (version, steps, isWhole)
    onlyShifts = !steps.contains(where: \.derives)
    onlySlotsDerive = steps.allSatisfy { !$0.derives || $0.slots != nil }
    let count = 1 + (steps.map(\.slot).max() ?? 0)
    paths = .allocate(capacity: count)
    paths.initialize(repeating: Self.hidden, count: count)
  }

  deinit { paths.deallocate() }

  /// Whether ``follow(_:_:)`` knows the way of the change of one row: all feeds list that row or none, and no selection moves.
  @inline(__always)
  func carries(_ row: ChangeOfOne) -> Bool { isWhole && (row.isUpdate ? onlySlotsDerive : onlyShifts && !isSelected) }
  private var isSelected: Bool { steps.contains { $0.feed._withUnsafeGuaranteedRef { !$0.selection.isEmpty } } }

  /// Calls `body` with each feed that shows a row that changes, and its own change, each after its source.
  @inline(__always)
  func follow(_ row: ChangeOfOne, _ body: (Feed, ChangeOfOne) -> Void) {
    assert(carries(row))
    if case .updated(let path) = row { return follow(update: path, body) }
    steps.withUnsafeBufferPointer { steps in
      for step in steps { step.feed._withUnsafeGuaranteedRef { body($0, row.shifted(by: step.shift)) } }
    }
  }

  @inline(__always)
  private func follow(update path: IndexPath, _ body: (Feed, ChangeOfOne) -> Void) {
    paths[0] = path.packed
    steps.withUnsafeBufferPointer { steps in
      for step in steps {
        var shown = paths[step.sourceSlot]
        if step.derives, let slots = step.slots {
          if shown != Self.hidden {
            let source = IndexPath(packed: shown).shifted(by: step.sourceShift)
            shown = slots._withUnsafeGuaranteedRef { $0.row(of: source, type: step.place)?.packed ?? Self.hidden }
          }
          paths[step.slot] = shown
        }
        if shown == Self.hidden { continue }
        step.feed._withUnsafeGuaranteedRef { body($0, .updated(IndexPath(packed: shown).shifted(by: step.shift))) }
      }
    }
  }
}
