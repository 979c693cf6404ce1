import CProcessor
import FeedChange
import FeedJSON
import FeedQuery

/// The elements of a collection and its bins, under one definition.
///
/// Only the engine's thread may use it. Redefining a collection creates a new state; the old one is kept until the
/// commit ends. The rules (`upsertElement`, `remove`) are built from logged primitives.
final class CollectionState: RowStore {
  /// One bin: its section, what it accepts, and which of the elements' sort keys orders it.
  struct Bin {
    let section: RowSection
    let filter: Filter?
    /// The index of its order in `orders`; -1 if the bin keeps the order of arrival.
    let order: Int
    /// The filter in an object of its own: to call it there copies nothing.
    private let judge: Judge?
    private let unretainedJudge: Unmanaged<Judge>?

    private final class Judge {
      let filter: Filter

      init(_ filter: Filter) { self.filter = filter }
    }

    init(section: RowSection, filter: Filter?, order: Int) {
      (self.section, self.filter, self.order) = (section, filter, order)
      judge = filter.map { Judge($0) }
      unretainedJudge = judge.map { .passUnretained($0) }
    }

    /// Whether the bin accepts an element; see `Filter.accepts(_:steps:pace:)`.
    @inline(__always)
    func accepts(_ element: JSONView, steps: inout Int, pace: EvaluationPace?) -> Bool {
      guard let unretainedJudge else { return true }
      return unretainedJudge._withUnsafeGuaranteedRef { $0.filter.accepts(element, steps: &steps, pace: pace) }
    }
  }

  let definition: CollectionDefinition
  var index = IdentityIndex()
  let bins: [Bin]
  /// The distinct orders of the sorted bins. Every element has one key for each. With sections by value, the first
  /// order is that of the sections, and the order of the bin begins with it.
  let orders: [SortOrder]
  let seed: UInt64
  /// The steps that each element takes besides those of its filters, which do not count short comparisons.
  let stepsPerElement: Int

  /// Whether retention needs the order of change of the elements. Without it, the times of change are enough.
  let keepsOrderOfChange: Bool

  /// Scratch buffers, reused for every element.
  var identity = ByteBuffer()
  var keys = ByteBuffer()
  private var lookahead = ElementLookahead()
  /// Receives the result of `PositionTree.touch`, so that the prefetch is not optimized away.
  var touched: UInt32 = 0
  /// In deferred mode, the bins that hold each element; otherwise nil.
  var deferred: DeferredRows?
  /// Whether each bin accepts the current element.
  let verdicts: UnsafeMutablePointer<Bool>

  init(feed: String, definition: CollectionDefinition, limits: Limits, seed: UInt64) {
    let elements = ElementTable()
    self.definition = definition
    keepsOrderOfChange = definition.retain != nil
    self.seed = seed
    var terms: [[CollectionDefinition.SortTerm]] = []
    var bins: [Bin] = []
    var first: [SortOrder] = []
    if let section = definition.section {
      first = [SortOrder(terms: [.init(path: section.by, descending: section.descending, isSection: true)])]
    }
    for bin in definition.bins {
      var order = -1
      if !bin.sort.isEmpty {
        order = terms.firstIndex(of: bin.sort) ?? terms.count
        if order == terms.count { terms.append(bin.sort) }
      }
      if !first.isEmpty { order = bin.sort.isEmpty ? 0 : 1 }
      let section = RowSection(name: "\(feed)/\(bin.name)", elements: elements, keyed: order >= 0)
      bins.append(Bin(section: section, filter: bin.filter, order: order))
    }
    self.bins = bins
    verdicts = .allocate(capacity: bins.count)
    verdicts.initialize(repeating: false, count: bins.count)
    let section = first.flatMap(\.terms)
    orders = first + terms.map { SortOrder(terms: section + $0.map { .init(path: $0.by, descending: $0.descending) }) }
    stepsPerElement =
      bins.reduce(bins.count) { $0 + ($1.filter?.testCount ?? 0) / 4 } + orders.reduce(0) { $0 + $1.terms.count }
    super.init(
      feed: feed, elements: elements, sections: bins.map(\.section), type: definition.type, limits: limits,
      keyed: definition.section.map { section in
        KeyedSections(
          feed: feed, flat: bins[0].section,
          names: SectionNames(feed: feed, path: section.by, descending: section.descending))
      }, slowSize: definition.slowSize)
    retain(definition.retain, keyIndex: orders.count)
  }

  /// Creates a state with the same elements, under the same handles, and the same rows. O(n).
  init(copying other: CollectionState, _ pace: Pace) {
    assert(other.deferred == nil, "rows are not placed yet")
    let elements = other.elements.copy(pace)
    let bins = other.bins.map {
      Bin(section: $0.section.copy(elements, pace), filter: $0.filter, order: $0.order)
    }
    (definition, self.bins, orders, seed) = (other.definition, bins, other.orders, other.seed)
    stepsPerElement = other.stepsPerElement
    keepsOrderOfChange = other.keepsOrderOfChange
    index = other.index.copy(pace)
    verdicts = .allocate(capacity: bins.count)
    verdicts.initialize(repeating: false, count: bins.count)
    super.init(
      feed: other.feed, elements: elements, sections: bins.map(\.section), type: other.type, limits: other.limits,
      keyed: other.keyed.map { KeyedSections(copying: $0, bins[0].section, pace) }, slowSize: other.slowSize)
    retention = other.retention
    deadlines = other.deadlines?.copy(elements, pace)
  }

  deinit { verdicts.deallocate() }

  /// Looks at the text of a request that may update an element soon; see ``ElementLookahead``.
  @inline(__always)
  override func lookAhead(at request: UnsafeRawBufferPointer) { lookahead.look(at: request, self) }

  /// Records where a request had the identity of its element.
  @inline(__always)
  func noteIdentity(at offset: Int) { lookahead.offset = offset }
  override func didAdd(_ handle: UInt32) { index.insert(handle, hash: hash(of: handle)) }

  override func willRemove(_ handle: UInt32) {
    index.remove(handle, hash: hash(of: handle))
    if deferred != nil { deferred?.leave(handle) }
  }

  override func reserve(_ count: Int, _ pace: Pace = Pace()) {
    super.reserve(count, pace)
    index.reserve(count, pace)
  }

  override func restore(_ element: JSONView, at changed: Instant, _ log: UndoLog) throws(FeedError) -> UInt32 {
    // Most elements have it at about the same place.
    if elements.count & 255 == 0, let value = definition.id.resolve(element) { noteIdentity(at: value.byteOffset) }
    if try find(identityOf: element, index: 0) != nil { throw .internalError(reason: "two elements have one identity") }
    appendKeys(of: element)
    let place = definition.id.resolve(element)
    let text = try makeText(element, identity: identity.bytes, at: place, keys: keys.bytes)
    return addElement(text, at: changed, log)
  }

  private func hash(of handle: UInt32) -> UInt32 {
    elements.text(of: handle).withIdentity { Identity.hash($0, seed: seed) }
  }

  /// Sets `keys` to the sort keys and the expiry time of an element.
  @inline(__always)
  func appendKeys(of element: JSONView) {
    keys.removeAll(keepingCapacity: true)
    for order in orders { order.appendKey(of: element, to: &keys) }
    deadlines?.appendKey(of: element, to: &keys)
  }

  /// Like `appendKeys(of:)`, within some room.
  /// - Returns: false if there is too little room for the sort keys; others are then missing.
  func appendKeys(of element: JSONView, within room: inout SortOrder.Room) -> Bool {
    keys.removeAll(keepingCapacity: true)
    for order in orders where !order.appendKey(of: element, to: &keys, within: &room) { return false }
    deadlines?.appendKey(of: element, to: &keys)
    return true
  }

  override func successor(of handle: UInt32) -> UInt32? {
    elements.text(of: handle).withIdentity { index.find($0, hash: Identity.hash($0, seed: seed), in: elements) }
  }

  override func key(of handle: UInt32, section: Int) -> UInt64 {
    let order = bins[section].order
    return order >= 0 ? SortOrder.prefix(of: SortOrder.key(order, in: elements.text(of: handle).keys)) : 0
  }

  /// Returns the element with the identity `value`; nil if there is none.
  /// - Parameter isID: whether the request gave the identity itself, not an element that contains it.
  /// - Throws: `noIdentity` if `value` is neither a string nor a number.
  func find(_ value: JSONView, index place: Int, isID: Bool = false) throws(FeedError) -> UInt32? {
    if isID && Identity.isTooLong(value, forElementsOf: elements.longest) { return nil }
    identity.removeAll(keepingCapacity: true)
    guard Identity.append(value, to: &identity) else {
      throw .noIdentity(feed: feed, index: place, path: isID ? "" : definition.id.text, found: value.kind.name)
    }
    return index.find(identity.bytes, hash: Identity.hash(identity.bytes, seed: seed), in: elements)
  }

  /// Returns the element that has the same identity as `element`, a whole element of a request.
  func find(identityOf element: JSONView, index place: Int) throws(FeedError) -> UInt32? {
    guard let value = definition.id.resolve(element) else {
      throw .noIdentity(feed: feed, index: place, path: definition.id.text, found: "missing")
    }
    return try find(value, index: place)
  }
}

/// Operations, of which each call of ``CollectionKind`` makes one: each reading of its state counts a reference.
extension CollectionState {
  func upsertAsOperation(_ element: JSONView, on feed: FeedNumber, in commit: Commit) throws(FeedError) {
    commit.startOperation()
    if maxRetained == .max && keyed == nil { commit.omitUndoIfPossible(rows: 2 &* bins.count) }
    let position = commit.log.position
    try upsertElement(element, index: 0, at: commit.tick(), commit.log)
    commit.addStep(of: self)
    if hasExcess { evictExcess(in: commit) }
    try commit.checkGrowth(of: self, since: position)
    commit.finishOperation(on: feed, self, since: position)
  }

  func deleteAsOperation(_ id: JSONView, on feed: FeedNumber, in commit: Commit) throws(FeedError) {
    commit.startOperation()
    if keyed == nil { commit.omitUndoIfPossible(rows: bins.count) }
    let position = commit.log.position
    if let handle = try find(id, index: 0, isID: true) { remove(handle, in: commit) }
    commit.finishOperation(on: feed, self, since: position)
  }

  func upsert(_ elements: JSONView, in commit: Commit) throws(FeedError) {
    for (index, element) in elements.elements.enumerated() {
      self.index.makeRoom(commit.pace)
      try upsertElement(element, index: index, at: commit.tick(), commit.log)
      commit.addStep(of: self)
      commit.pace.spend(2 &+ bins.count, onText: element.text)
    }
  }

  func remove(_ handles: [UInt32], in commit: Commit) {
    if handles.count == 1 { return remove(handles[0], in: commit) }
    remove(handles, commit.log)
    commit.addStep(of: self)
  }

  private func remove(_ handle: UInt32, in commit: Commit) {
    beginStep()
    remove(handle, commit.log)
    commit.addStep(of: self)
  }

  func evictExcess(in commit: Commit) {
    let excess = excess
    if !excess.isEmpty { remove(excess, in: commit) }
  }
}

/// Brings memory near that coming updates of a collection need, which otherwise spend most of their time waiting.
///
/// Each step reads what the step before has brought near, so it is taken two requests later: the word of the index, then the
/// record of the element and the place of its row, then its text and the leaf of the row.
///
/// Invariant: `hashes` and `handles` are those of the last requests that were looked at, the newest first.
struct ElementLookahead: ~Copyable {
  /// Smaller collections are in the caches near the processor: with 1,000 elements, looking ahead made an update 15 % slower.
  private static let manyElements = 4096
  /// The bytes of the longest identity that is looked at.
  private static let longest = 64

  /// Where the last request had the identity of its element. Coming requests probably have it there too.
  var offset = 0
  private var hashes = SIMD4<UInt32>()
  private var handles = SIMD4<UInt32>(repeating: ElementTable.none)
  private var identity = ByteBuffer()

  /// Whether looking at coming requests is worth its time.
  static func isWorthwhile(_ state: CollectionState) -> Bool { state.elements.count >= manyElements }

  /// Looks at a coming request. A wrong guess of its identity costs a little time and has no other effect.
  mutating func look(at request: UnsafeRawBufferPointer, _ state: CollectionState) {
    let hash = guess(in: request, state)
    if let hash { state.index.prefetch(hash: hash) }
    let handle = state.index.probableElement(hash: hashes[1])
    if handle < state.elements.endHandle {
      processor_prefetch(state.elements.place(of: handle))
      for bin in state.bins.indices { state.bins[bin].section.rows.prefetchPlace(of: handle) }
    }
    let known = handles[1]
    if known < state.elements.endHandle {
      let text = state.elements.address(of: known)
      processor_prefetch(text)
      processor_prefetch(text + 64)
      for bin in state.bins.indices { state.bins[bin].section.rows.prefetchLeaf(of: known) }
    }
    hashes = SIMD4(hash ?? 0, hashes[0], 0, 0)
    handles = SIMD4(handle, handles[0], 0, 0)
  }

  /// The hash of the identity of a request, if it is a short integer or string where the last request had its own.
  private mutating func guess(in request: UnsafeRawBufferPointer, _ state: CollectionState) -> UInt32? {
    guard offset < request.count else { return nil }
    let rest = UnsafeRawBufferPointer(rebasing: request[offset...].prefix(Self.longest))
    identity.removeAll(keepingCapacity: true)
    guard Identity.append(probable: rest, to: &identity) else { return nil }
    return Identity.hash(identity.bytes, seed: state.seed)
  }
}
