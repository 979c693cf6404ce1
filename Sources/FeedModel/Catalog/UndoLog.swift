/// The steps of the open commit, in order, so that they can be undone in reverse.
///
/// Undoing restores the exact state: rows return to their places, elements to their versions and to their place in the
/// order of change. The log owns the versions that the steps replaced, until the commit ends. A commit that cannot fail any more
/// (``stopRecording()``) keeps no steps, and releases each replaced version at once.
///
/// Invariant: the positions of structural steps ascend, and are within the entries, of which there are none while the log does
/// not record.
final class UndoLog {
  struct Entry {
    enum Step: UInt8 {
      /// A row was inserted at `row`.
      case insertedRow
      /// The row at `row`, with `handle` and `key`, was removed.
      case removedRow
      /// The row at `row` got another key; `key` is the previous one.
      case rekeyedRow
      case addedElement
      /// The element was retired; in the order of change it stood before `other`.
      case removedElement
      /// The version of the element was exchanged; `text` is the previous one.
      case exchangedText
      /// The element moved in the order of change; it stood before `other`, with the time `at`.
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

    /// Releases what the step replaced or removed, after it has taken effect.
    @inline(__always)
    func finish() { state._withUnsafeGuaranteedRef { $0.finish(self) } }
  }

  struct Position {
    static let start = Position(entries: 0, structures: 0)

    let entries: Int
    let structures: Int
  }

  /// Lets long operations of the commit stop between two steps.
  let pace: Pace
  private(set) var entries = BlockList<Entry>()
  /// Whether steps can be undone. If not, they have taken effect at once.
  private(set) var isRecording = true
  /// The keyed sections whose rows the commit changed, each once.
  private(set) var keyed: [KeyedSections] = []
  /// The rules by which requests are executed (``ExecutionRules``). Replay sets those of the log, so that requests that were
  /// accepted before a charge existed are not refused because of it.
  var rules = ExecutionRules.current
  /// The number of filter steps that the current request may still take.
  private(set) var stepsLeft = Int.max
  private var stepsAllowed = Int.max
  /// The number of filter steps that the requests before the current one took.
  private var stepsOfOthers: UInt64 = 0
  /// Structural steps, each with the number of entries before it.
  private var structures: [(position: Int, undo: () -> Void)] = []

  init(pace: Pace = Pace()) { self.pace = pace }

  /// The number of entries whose versions were counted, and the bytes of these versions.
  private var counted = (entries: 0, bytes: 0)

  /// The bytes of the log, with the replaced versions that were made after `start`. Older ones took their memory before. While
  /// steps are undone, their versions still count.
  ///
  /// Amortized O(1) for each entry since the last call.
  func memory(since start: Instant) -> Int {
    counted.entries = min(counted.entries, entries.count)
    while counted.entries < entries.count {
      let entry = entries[counted.entries]
      if entry.step == .exchangedText, let text = ElementText(bitPattern: entry.text), text.changedAt > start {
        counted.bytes += text.footprint
      }
      counted.entries += 1
    }
    return entries.count * MemoryLayout<Entry>.stride + counted.bytes
  }

  var position: Position { Position(entries: entries.count, structures: structures.count) }
  var isEmpty: Bool { entries.isEmpty && structures.isEmpty }
  var hasStructures: Bool { !structures.isEmpty }

  /// Sets the number of filter steps that the new request may take.
  func allow(steps: Int) {
    stepsOfOthers = stepsTaken
    (stepsAllowed, stepsLeft) = (steps, steps)
  }

  /// The number of filter steps that all requests took.
  var stepsTaken: UInt64 { stepsOfOthers &+ UInt64(max(0, stepsAllowed &- stepsLeft)) }
  func didUse(steps: Int) { stepsLeft &-= steps }

  @inline(__always)
  func append(_ entry: @autoclosure () -> Entry) {
    if isRecording { entries.append(entry()) } else { entry().finish() }
  }

  /// Lets the steps of the open commit take effect at once. It has made none.
  @inline(__always)
  func stopRecording() {
    assert(isEmpty, "steps were recorded already")
    isRecording = false
  }

  func append(_ sections: KeyedSections) { keyed.append(sections) }

  /// Appends a structural step that comes before the entries since `position`.
  func append(before position: Position, undo: @escaping () -> Void) {
    assert(position.structures == structures.count, "a later structural step is logged already")
    structures.append((position.entries, undo))
  }

  /// The entries of one store since `position`. O(entries).
  func entries(of store: Unmanaged<RowStore>, since position: Position) -> Slice<BlockList<Entry>> {
    let all = entries[position.entries...]
    // Most operations change one feed. The check avoids a copy of many entries.
    if areAll(all, of: store) { return all }
    var own = BlockList<Entry>()
    for (place, entry) in all.enumerated() {
      if entry.state.toOpaque() == store.toOpaque() { own.append(entry) }
      if place & 31 == 31 { pace.spend() }
    }
    return own[...]
  }

  private func areAll(_ entries: Slice<BlockList<Entry>>, of store: Unmanaged<RowStore>) -> Bool {
    for (place, entry) in entries.enumerated() {
      if entry.state.toOpaque() != store.toOpaque() { return false }
      if place & 63 == 63 { pace.spend() }
    }
    return true
  }

  typealias EntriesByStore = [UnsafeMutableRawPointer: BlockList<Entry>]

  /// The entries of each store. O(entries).
  func entriesByStore() -> EntriesByStore {
    var groups: EntriesByStore = [:]
    for (place, entry) in entries.enumerated() {
      groups[entry.state.toOpaque(), default: BlockList()].append(entry)
      if place & 7 == 7 { pace.spend() }
    }
    return groups
  }

  /// Undoes all steps since `position`, in reverse. It may stop before a step and within a structural one, but not after the last step:
  /// others may read as soon as the log is empty, and the caller must first tell that counts changed.
  func undo(to position: Position) {
    assert(
      position.entries <= entries.count && position.structures <= structures.count,
      "the position is beyond the log's end")
    while structures.count > position.structures || entries.count > position.entries {
      if structures.count > position.structures, let last = structures.last, last.position >= entries.count {
        last.undo()
        // Until now it hides all feeds from others.
        structures.removeLast()
      } else {
        pace.spend()
        if let entry = entries.popLast() { entry.state.takeUnretainedValue().undo(entry) }
      }
    }
    #if CHECK_INVARIANTS
      if structures.count <= 1000 { checkInvariants() }
    #endif
  }

  /// Ends the commit: releases the versions that the steps replaced, and clears the log.
  func finish() {
    if !isRecording {
      isRecording = true
      return
    }
    // From now on the versions must not be read.
    counted.entries = entries.count
    // Iterates by index: an iterator would retain the entries.
    for index in entries.indices {
      entries[index].finish()
      // Each may free a text that was not read for long.
      if index & 7 == 7 { pace.spend(8) }
    }
    while entries.removeLastBlock() { pace.spend(Self.unitsOfABlock) }
    counted = (0, 0)
    if !structures.isEmpty || !keyed.isEmpty { finishStructures() }
  }

  @inline(never)
  private func finishStructures() {
    // Each may be the last that holds a feed.
    while structures.popLast() != nil { pace.spend() }
    while let sections = keyed.popLast() { sections.endCommit() }
  }

  /// The units of work to free a block of entries.
  private static let unitsOfABlock = 512

  /// O(structural steps).
  func checkInvariants() {
    let positions = structures.map(\.position)
    entries.checkInvariants()
    precondition(zip(positions, positions.dropFirst()).allSatisfy(<=), "structural steps are out of order")
    precondition((positions.last ?? 0) <= entries.count, "a structural step stands beyond the end")
  }
}

/// A list that grows and shrinks at its end in blocks, so that no step moves or frees many elements.
///
/// An array that grows to a million elements copies all of them at once now and then, and is freed at once. Here an append
/// copies at most a block, and ``removeLastBlock()`` frees one block at a time.
///
///     var list = BlockList<Int>()
///     for number in 0..<1_000_000 { list.append(number) }
///     while list.removeLastBlock() { pace.spend() }
///
/// Invariant: each block of `full` has `blockSize` elements, and `open` has at most as many.
struct BlockList<Element> {
  private static var shift: Int { 13 }
  /// The elements of a block.
  static var blockSize: Int { 1 << shift }

  private var full: [[Element]] = []
  private var open: [Element] = []

  init() {}

  @inline(__always)
  var isEmpty: Bool { open.isEmpty && full.isEmpty }

  /// Adds an element at the end. Amortized O(1); at most O(block).
  @inline(__always)
  mutating func append(_ element: Element) {
    if open.count == Self.blockSize { beginBlock() }
    open.append(element)
  }

  @inline(never)
  private mutating func beginBlock() {
    full.append(open)
    open = []
    open.reserveCapacity(Self.blockSize)
  }

  /// Removes and returns the last element; nil if there is none.
  mutating func popLast() -> Element? {
    if open.isEmpty, let last = full.popLast() { open = last }
    return open.popLast()
  }

  /// Removes the elements of the last block. Returns whether others are left. The memory of the first block is kept.
  mutating func removeLastBlock() -> Bool {
    if full.isEmpty {
      // Most commits have one step. The test is cheaper than the call.
      if open.count == 1 { open.removeLast() } else { open.removeAll(keepingCapacity: true) }
      return false
    }
    open = full.removeLast()
    return true
  }

  /// O(blocks).
  func checkInvariants() {
    precondition(full.allSatisfy { $0.count == Self.blockSize }, "a block has a gap")
    precondition(open.count <= Self.blockSize, "the last block is too long")
  }
}

extension BlockList: RandomAccessCollection {
  var startIndex: Int { 0 }
  var endIndex: Int { full.count << Self.shift &+ open.count }

  @inline(__always)
  subscript(index: Int) -> Element {
    let block = index >> Self.shift
    return block < full.count ? inFull(index) : open[index & (Self.blockSize - 1)]
  }

  @inline(never)
  private func inFull(_ index: Int) -> Element { full[index >> Self.shift][index & (Self.blockSize - 1)] }
}
