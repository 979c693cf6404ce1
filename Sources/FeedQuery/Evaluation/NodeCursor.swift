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
      case .descend(let child):
        push(child, segment: frame.pointee.segment, &evaluation)
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
    (frames + depth).initialize(to: NodeFrame(node, segment: segment, entry.pointee, evaluation.pace))
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
