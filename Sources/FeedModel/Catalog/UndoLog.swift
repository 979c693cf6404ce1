/// What the commit under way has done, step by step, so that it can be undone from the back.
///
/// Every step restores exactly: rows return to their places, elements to their versions and to their place in the order
/// of change. It also owns what the steps replaced, until the commit is final.
struct UndoLog {
  struct Entry {
    enum Step: UInt8 {
      /// A row came in at `row`.
      case insertedRow
      /// The row at `row`, with `handle` and `key`, left.
      case removedRow
      /// The row at `row` has another key; `key` was the one before.
      case rekeyedRow
      /// The element was added.
      case addedElement
      /// The element was retired; it stood before `other` in the order of change.
      case removedElement
      /// The element's version was exchanged; `text` is the one before.
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

  private(set) var entries: [Entry] = []
  /// Steps of other kinds, each with the number of entries that stood before it.
  private(set) var structures: [(position: Int, undo: () -> Void)] = []

  /// How many steps of other kinds were ever noted or undone.
  private(set) var structureChanges: UInt64 = 0

  /// A place to return to.
  struct Mark {
    /// The beginning of the commit.
    static let start = Mark(entries: 0, structures: 0)

    let entries: Int
    let structures: Int
  }

  var mark: Mark { Mark(entries: entries.count, structures: structures.count) }
  var isEmpty: Bool { entries.isEmpty && structures.isEmpty }

  /// Makes room for many more steps at once.
  mutating func reserve(_ more: Int) {
    entries.reserveCapacity(entries.count + more)
  }

  mutating func append(_ entry: Entry) {
    entries.append(entry)
  }

  mutating func append(undo: @escaping () -> Void) {
    structures.append((entries.count, undo))
    structureChanges &+= 1
  }

  /// Undoes everything since `mark`, from the back.
  mutating func undo(to mark: Mark) {
    while structures.count > mark.structures || entries.count > mark.entries {
      if let last = structures.last, structures.count > mark.structures, last.position >= entries.count {
        structures.removeLast().undo()
        structureChanges &+= 1
      } else if let entry = entries.popLast() {
        entry.state.takeUnretainedValue().undo(entry)
      }
    }
  }

  /// Lets go of everything that the steps replaced: they can no longer be undone.
  mutating func finish() {
    for entry in entries { entry.state._withUnsafeGuaranteedRef { $0.finish(entry) } }
    if !entries.isEmpty { entries.removeAll(keepingCapacity: entries.capacity <= 65_536) }
    if !structures.isEmpty { structures.removeAll() }
  }
}
