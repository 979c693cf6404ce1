import FeedChange

/// How many rows more a feed shows after an operation than before it, and the same for each of its bins.
struct RowGrowth {
  var feed: Int
  var bins: [Int] = []
}

/// The last operation of a commit: its feed and its change, composed from its steps.
///
/// Invariant: `stepCount` is 0 exactly if the operation has no steps. Only steps after the first go through the
/// accumulator. `result` is empty while `row` is the change.
struct Operation {
  /// The change of an operation of one step on one row; nil for others, and once ``expand()`` has made it lists.
  private(set) var row: ChangeOfOne?
  /// The element that the row of ``row`` shows; nil if it was deleted.
  private(set) var element: ElementText?
  /// The change so far; complete after `finish` and ``expand()``. Its memory is reused.
  var result = Change()
  /// The feed whose change is in `result` and not yet published; -1 for none.
  var pending: FeedNumber = -1
  /// The feed that the operation redefined or gave other children, which may change its rows; -1 for none.
  var redefined: FeedNumber = -1
  /// How the numbers of rows changed, if the change does not tell it because it deletes sections with unknown numbers of rows.
  private(set) var growth: RowGrowth?
  /// The keyed sections of the feed `pending`; nil for other feeds.
  private(set) var dividedBy: KeyedSections?
  /// The change of the rows of `dividedBy`, as one section. Its memory is reused.
  private(set) var flat = Change()
  private var steps = ChangeAccumulator()
  private(set) var stepCount = 0
  /// Whether nothing was added since `begin`.
  private(set) var isNew = false

  var isEmpty: Bool { row == nil && result.isEmpty }
  var size: Int { row?.size ?? result.size }
  var onlyUpdates: Bool { row?.isUpdate ?? result.onlyUpdates }

  @inline(__always)
  mutating func begin() {
    assert(steps.isEmpty, "the operation before was not finished")
    if row == nil { result.removeAll(keepingCapacity: true) } else { row = nil }
    stepCount = 0
    pending = -1
    redefined = -1
    if growth != nil { growth = nil }
    forgetDivision()
    isNew = true
  }

  /// Lets `change` be the change of an operation that redefined a feed or gave it other children.
  mutating func set(_ change: Change, redefining feed: FeedNumber, _ growth: RowGrowth?) {
    isNew = false
    redefined = feed
    self.growth = growth
    result = change
  }

  /// Takes the sections that the operation added out of its change, if freeing them takes long. It is then not valid.
  @inline(__always)
  mutating func takeManySections() -> [SectionAddition]? {
    if result.sectionsAdded.count < DiscardedElements.many { return nil }
    var sections: [SectionAddition] = []
    swap(&sections, &result.sectionsAdded)
    return sections
  }

  /// Adds the first step, which changes one row.
  @inline(__always)
  mutating func add(_ row: ChangeOfOne, _ element: ElementText?) {
    assert(stepCount == 0 && result.isEmpty, "another step came before")
    isNew = false
    stepCount = 1
    self.row = row
    self.element = element
  }

  /// Lets `result` be the change, also of one row.
  @inline(__always)
  mutating func expand() {
    guard let row else { return }
    self.row = nil
    result.append(row)
  }

  /// Adds a step, in the coordinates after the previous step. Leaves a change in `step` whose memory can be reused.
  @inline(__always)
  mutating func add(_ step: inout Change, _ pace: Pace) {
    if step.isEmpty { return }
    isNew = false
    stepCount &+= 1
    if stepCount == 1 { return swap(&step, &result) }
    expand()
    if stepCount == 2 { steps.add(result) }
    steps.add(step) { pace.didCompose() }
  }

  /// Replaces the result, a change of rows in one section, by the change of the keyed sections that the rows are in.
  /// - Parameter division: converts a change of rows, its first argument, to one of sections, its second, which is empty.
  @inline(__always)
  mutating func divide(by sections: KeyedSections, _ division: (borrowing Change, inout Change) -> Void) {
    isNew = false
    dividedBy = sections
    expand()
    swap(&flat, &result)
    assert(result.isEmpty, "a division is left")
    division(flat, &result)
  }

  @inline(__always)
  private mutating func forgetDivision() {
    if dividedBy == nil { return }
    dividedBy = nil
    flat.recycle()
  }

  /// The composed steps if there are several; nil if `result` is already complete.
  mutating func composedSteps(_ pace: Pace) -> Change? { stepCount > 1 ? steps.finish { pace.didCompose() } : nil }

  /// Records that the change was published. `result` stays.
  @inline(__always)
  mutating func didPublish() {
    pending = -1
    forgetDivision()
  }

  /// Discards an operation that was rolled back.
  mutating func abandon() {
    _ = steps.finish()
    begin()
  }
}

/// The facts about a published change that are not in the change itself.
public struct Publication {
  /// The revision before the change; the feed has the revision after it.
  public let from: UInt64
  /// The new element if the commit only replaced the element of one row. It applies to the row that the change lists.
  public let updatedElement: ElementText?
  /// The animation hint of the operation that made the change, as JSON text.
  public let hint: [UInt8]?
}

/// Receives the changes of commits: one for each changed feed with a `channel` and a history, after it was applied.
public protocol CommitObserver: AnyObject {
  func didChange(_ feed: Feed, by change: borrowing Change, _ publication: Publication)
  /// Like the other function, for a change of one row without a hint.
  /// - Parameter element: the element that the row shows; nil if it was deleted.
  func didChange(_ feed: Feed, by row: ChangeOfOne, from: UInt64, _ element: ElementText?)
  /// The rows of `feed` that are selected got other paths, or some of them were deleted.
  func didCarrySelection(of feed: Feed)
  /// `feed` was undefined. Its last change, which deletes all sections, was published before this call.
  func didEnd(_ feed: Feed)
  /// All feeds have the new state of a commit that may stop between two steps. Nothing changes them until this call ends,
  /// even if it stops, and everybody can read them.
  func didPublish()
}

extension Publication {
  /// The facts about the change of one row, see ``CommitObserver/didChange(_:by:from:_:)``.
  public init(of row: ChangeOfOne, from: UInt64, _ element: ElementText?) {
    self.init(from: from, updatedElement: row.isUpdate ? element : nil, hint: nil)
  }
}

extension CommitObserver {
  public func didChange(_ feed: Feed, by row: ChangeOfOne, from: UInt64, _ element: ElementText?) {
    didChange(feed, by: Change(row), Publication(of: row, from: from, element))
  }
}
