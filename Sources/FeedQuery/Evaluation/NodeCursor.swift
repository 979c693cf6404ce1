import FeedJSON

/// An iterator over the nodes of a query, in the order of RFC 9535.
///
/// A segment that can select several nodes keeps its position in a frame. The frames are a stack in memory, so neither the depth
/// of the value nor the length of the query uses the stack of the thread.
///
/// Invariant: there are at most as many frames as levels of the value.
struct NodeCursor: ~Copyable {
  private var frames: UnsafeMutablePointer<NodeFrame>
  private var capacity: Int
  private var depth = 0
  /// Whether `frames` was allocated here rather than lent by the caller.
  private var ownsFrames = false
  private var start: JSONView?
  private let query: Query

  /// The number of frames that need no allocation.
  private static let lent = 6

  private init(_ query: Query, from start: JSONView, frames: UnsafeMutablePointer<NodeFrame>) {
    self.query = query
    self.start = start
    self.frames = frames
    capacity = Self.lent
  }

  deinit {
    for index in 0..<depth { frames[index].notes?.release() }
    if ownsFrames { frames.deallocate() }
  }

  /// Calls `body` with a cursor over the nodes of `query`, evaluated at `start`.
  static func over<Result>(
    _ query: Query, from start: JSONView, _ body: (inout NodeCursor) throws -> Result
  ) rethrows -> Result {
    try withUnsafeTemporaryAllocation(of: NodeFrame.self, capacity: lent) { frames in
      // The capacity is not zero, so there is an address.
      var cursor = NodeCursor(query, from: start, frames: frames.baseAddress.unsafelyUnwrapped)
      return try body(&cursor)
    }
  }

  /// Returns the next node; nil after the last one and when the steps run out.
  mutating func next(_ evaluation: inout Evaluation) -> JSONView? {
    if let node = start {
      start = nil
      if let result = enter(node, segment: 0, &evaluation) { return result }
    }
    while depth > 0 {
      let frame = frames + (depth - 1)
      let move = frame.pointee.advance(&evaluation)
      if evaluation.isExhausted { return nil }
      switch move {
      case .select(let child):
        if let result = enter(child, segment: frame.pointee.segment + 1, &evaluation) { return result }
      case .descend(let child): push(child, segment: frame.pointee.segment, &evaluation)
      case .finish:
        frame.pointee.notes?.release()
        depth -= 1
      }
    }
    return nil
  }

  /// Follows the query from `node`, which its first `segment` segments selected. Returns a node of the result, or nil if a
  /// frame was pushed or nothing is selected.
  private mutating func enter(_ node: JSONView, segment: Int32, _ evaluation: inout Evaluation) -> JSONView? {
    var (node, segment) = (node, segment)
    while segment < query.segmentCount {
      let entry = evaluation.tables.segments + Int(query.firstSegment + segment)
      guard entry.pointee.isSingular else {
        push(node, segment: segment, &evaluation)
        return nil
      }
      let selector = evaluation.tables.selectors + Int(entry.pointee.firstSelector)
      guard let child = evaluation.step(selector, from: node) else { return nil }
      node = child
      segment += 1
    }
    return node
  }

  /// Pushes a frame for a value that has children.
  private mutating func push(_ node: JSONView, segment: Int32, _ evaluation: inout Evaluation) {
    guard node.kind == .array || node.kind == .object, node.count > 0 else { return }
    if depth == capacity { grow() }
    if node.kind == .object, node.count > ShadowedMembers.few { evaluation.steps &-= node.count }
    let entry = evaluation.tables.segments + Int(query.firstSegment + segment)
    (frames + depth).initialize(to: NodeFrame(node, segment: segment, entry.pointee, &evaluation))
    depth += 1
  }

  private mutating func grow() {
    let larger = UnsafeMutablePointer<NodeFrame>.allocate(capacity: capacity * 2)
    larger.moveInitialize(from: frames, count: depth)
    if ownsFrames { frames.deallocate() }
    frames = larger
    capacity *= 2
    ownsFrames = true
  }
}

/// The position of a segment in one node: its current selector and the children that are left.
private struct NodeFrame {
  /// The result of a step of a frame.
  enum Move {
    case select(JSONView)
    /// A descendant segment continues with this child.
    case descend(JSONView)
    case finish
  }

  private enum Source {
    /// None: the next selector has not begun.
    case idle
    case children
    /// The children that a filter accepts.
    case filtered(Int32)
    /// Every `step`th of the next elements, `left` of them.
    case stride(step: Int, left: Int)
    /// The rest of `notes.rows`, from the back.
    case rows
    /// All selectors are done. The children, for a descendant segment.
    case descent
  }

  let node: JSONView
  /// The index of the segment in its query.
  let segment: Int32
  private let isDescendant: Bool
  private var selector: Int32
  private let selectorEnd: Int32
  private var source = Source.idle
  private var children: NodeChildren
  /// State that does not fit in a frame. The cursor releases it.
  private(set) var notes: Unmanaged<FrameNotes>?

  init(_ node: JSONView, segment: Int32, _ entry: Segment, _ evaluation: inout Evaluation) {
    self.node = node
    self.segment = segment
    isDescendant = entry.isDescendant
    selector = entry.firstSelector
    selectorEnd = entry.firstSelector + entry.selectorCount
    children = NodeChildren(node)
    if node.kind == .object, node.count > ShadowedMembers.few {
      let shadowed = ShadowedMembers.find(in: node, &evaluation)
      if !shadowed.isEmpty { notes = Unmanaged.passRetained(FrameNotes(shadowed: shadowed)) }
    }
  }

  mutating func advance(_ evaluation: inout Evaluation) -> Move {
    while !evaluation.isExhausted {
      switch source {
      case .idle: if let move = begin(&evaluation) { return move }
      case .children:
        if let child = nextChild(&evaluation) { return .select(child) }
        source = .idle
      case .filtered(let entry):
        while let child = nextChild(&evaluation) {
          if evaluation.accepts(entry, current: child) { return .select(child) }
        }
        source = .idle
      case .stride(let step, let left):
        guard left > 0, let child = nextChild(&evaluation) else {
          source = .idle
          continue
        }
        if left > 1 { skip(step - 1, &evaluation) }
        source = .stride(step: step, left: left - 1)
        return .select(child)
      case .rows:
        if let child = notes?.takeUnretainedValue().rows.popLast() { return .select(child) }
        source = .idle
      case .descent:
        guard let child = nextChild(&evaluation) else { return .finish }
        return .descend(child)
      }
    }
    return .finish
  }
}

extension NodeFrame {
  /// Begins the next selector, or the descent if there is none left.
  private mutating func begin(_ evaluation: inout Evaluation) -> Move? {
    guard selector < selectorEnd else {
      guard isDescendant else { return .finish }
      children = NodeChildren(node)
      source = .descent
      return nil
    }
    let next = evaluation.tables.selectors + Int(selector)
    selector += 1
    switch next.pointee {
    case .name, .index: return evaluation.step(next, from: node).map(Move.select)
    case .wildcard:
      children = NodeChildren(node)
      source = .children
    case .filter(let entry):
      children = NodeChildren(node)
      source = .filtered(entry)
    case .slice(let bounds): if node.kind == .array { begin(bounds, &evaluation) }
    }
    return nil
  }

  private mutating func begin(_ bounds: SliceBounds, _ evaluation: inout Evaluation) {
    let rows = bounds.rows(count: node.count)
    guard rows.count > 0 else { return }
    children = NodeChildren(node)
    if rows.step > 0 {
      skip(rows.first, &evaluation)
      source = .stride(step: rows.step, left: rows.count)
      return
    }
    // An array cannot be walked backwards, so the selected elements are collected first.
    skip(rows.first + (rows.count - 1) * rows.step, &evaluation)
    var collected: [JSONView] = []
    collected.reserveCapacity(rows.count)
    while collected.count < rows.count, let child = nextChild(&evaluation) {
      collected.append(child)
      if collected.count < rows.count { skip(-rows.step - 1, &evaluation) }
    }
    let notes = self.notes ?? Unmanaged.passRetained(FrameNotes())
    notes.takeUnretainedValue().rows = collected
    self.notes = notes
    source = .rows
  }

  private mutating func nextChild(_ evaluation: inout Evaluation) -> JSONView? {
    evaluation.steps &-= 1
    return children.next(notes, &evaluation)
  }

  private mutating func skip(_ count: Int, _ evaluation: inout Evaluation) {
    for _ in 0..<count { guard nextChild(&evaluation) != nil else { return } }
  }
}

/// An iterator over the children of a node: the elements of an array, or the values of an object's members, the last of each
/// name.
private struct NodeChildren {
  private enum Place {
    case elements(JSONView.Elements)
    case members(JSONView.Members)
  }

  private var place: Place
  /// Whether there are few enough members to look for a later one of the same name each time.
  private let isSmall: Bool

  init(_ node: JSONView) {
    place = node.kind == .array ? .elements(node.elements) : .members(node.members)
    isSmall = node.count <= ShadowedMembers.few
  }

  /// Returns the next child. `notes` has the shadowed members of a large object.
  mutating func next(_ notes: Unmanaged<FrameNotes>?, _ evaluation: inout Evaluation) -> JSONView? {
    switch place {
    case .elements(var elements):
      let child = elements.next()
      place = .elements(elements)
      return child
    case .members(var members):
      defer { place = .members(members) }
      while let member = members.next() {
        if isSmall {
          if !ShadowedMembers.isShadowed(member.key, by: members, &evaluation) { return member.value }
        } else if let notes, notes.takeUnretainedValue().shadowed.contains(member.value.byteOffset) {
          continue
        } else {
          return member.value
        }
      }
      return nil
    }
  }
}

/// State of a frame that few frames need.
private final class FrameNotes {
  /// The selected elements that are left, the last one first.
  var rows: [JSONView] = []
  /// The offsets of the values of shadowed members.
  let shadowed: Set<Int>

  init(shadowed: Set<Int> = []) { self.shadowed = shadowed }
}
