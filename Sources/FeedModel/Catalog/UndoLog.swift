/// The steps of the commit under way, so that they can be undone from the back.
///
/// Undoing restores exactly: rows return to their places, elements to their versions and to their place in the order of
/// change. The log also owns what the steps replaced until the commit is final.
///
/// Invariant: the positions of structural steps ascend and do not exceed the number of entries.
final class UndoLog {
  struct Entry {
    enum Step: UInt8 {
      /// A row was inserted at `row`.
      case insertedRow
      /// The row at `row`, with `handle` and `key`, was removed.
      case removedRow
      /// The row at `row` got another key; `key` is the former one.
      case rekeyedRow
      /// The element was added.
      case addedElement
      /// The element was retired; it stood before `other` in the order of change.
      case removedElement
      /// The element's version was exchanged; `text` is the former one.
      case exchangedText
      /// The element moved in the order of change; it stood before `other`, changed at `at`.
      case reordered
    }

    var step: Step
    var section: UInt32 = 0
    var row: UInt32 = 0
    var handle: UInt32
    var other: UInt32 = 0
    var key: UInt64 = 0
    var text: UInt = 0
    var at = Instant(nanoseconds: 0)
    let state: Unmanaged<RowStore>
  }

  /// A place in the log to return to.
  struct Mark {
    /// The beginning of the commit.
    static let start = Mark(entries: 0, structures: 0)

    let entries: Int
    let structures: Int
  }

  private(set) var entries: [Entry] = []
  /// Steps of filters that the request under way may still take.
  private(set) var stepsLeft = Int.max
  /// Steps that changed definitions or the structure, each with the number of entries before it.
  private var structures: [(position: Int, undo: () -> Void)] = []

  var mark: Mark { Mark(entries: entries.count, structures: structures.count) }
  var isEmpty: Bool { entries.isEmpty && structures.isEmpty }
  var hasStructures: Bool { !structures.isEmpty }

  /// Allows steps of filters to the request that begins.
  func allow(steps: Int) { stepsLeft = steps }

  func didTake(steps: Int) { stepsLeft &-= steps }

  /// Makes room for many more steps.
  func reserve(_ more: Int) {
    entries.reserveCapacity(entries.count + more)
  }

  @inline(__always)
  func append(_ entry: Entry) {
    entries.append(entry)
  }

  func append(undo: @escaping () -> Void) {
    structures.append((entries.count, undo))
  }

  /// Undoes everything since `mark`, from the back. Returns whether any structural step was undone.
  @discardableResult
  func undo(to mark: Mark) -> Bool {
    assert(mark.entries <= entries.count && mark.structures <= structures.count, "the mark is beyond the log's end")
    let hadStructures = structures.count > mark.structures
    while structures.count > mark.structures || entries.count > mark.entries {
      if structures.count > mark.structures, let last = structures.last, last.position >= entries.count {
        structures.removeLast().undo()
      } else if let entry = entries.popLast() {
        entry.state.takeUnretainedValue().undo(entry)
      }
    }
    sampleInvariants()
    return hadStructures
  }

  /// Makes the steps final and releases what they replaced.
  func finish() {
    // By index, because an iterator would count a reference to the entries.
    for index in entries.indices { entries[index].state._withUnsafeGuaranteedRef { $0.finish(entries[index]) } }
    if !entries.isEmpty { entries.removeAll(keepingCapacity: entries.capacity <= 65_536) }
    if !structures.isEmpty { structures.removeAll() }
  }

  private func sampleInvariants() {
    #if CHECK_INVARIANTS
      if structures.count <= 1000 { checkInvariants() }
    #endif
  }

  /// O(structural steps).
  func checkInvariants() {
    let positions = structures.map(\.position)
    precondition(zip(positions, positions.dropFirst()).allSatisfy(<=), "structural steps are out of order")
    precondition((positions.last ?? 0) <= entries.count, "a structural step stands beyond the end")
  }
}
