import FeedChange
import FeedJSON
import FeedModel

/// The nodes that a query found, as JSON text.
///
/// Nodes are grouped by element, so that the groups can be written in reverse order.
struct QueryNodes: ~Copyable {
  private let limits: Limits
  private var bytes = ByteBuffer()
  /// The place of the element of each node, nil for a node outside the elements; nil if places are not requested.
  private var places: [IndexPath?]?
  /// The start of each group: the offset in the bytes, and the index of the first node.
  private var groups: [(bytes: Int, nodes: Int)] = []

  init(limits: Limits, places: Bool) {
    self.limits = limits
    self.places = places ? [] : nil
  }

  /// The memory in bytes.
  var memory: Int { bytes.capacity + groups.count * 16 + (places?.capacity ?? 0) * 16 }

  /// The bytes of the nodes.
  var size: Int { bytes.count }

  /// A position between two nodes.
  struct Position {
    fileprivate let bytes: Int
    fileprivate let nodes: Int
    fileprivate let groups: Int
  }

  /// The position after the last node.
  var end: Position { Position(bytes: bytes.count, nodes: places?.count ?? 0, groups: groups.count) }

  /// Discards the nodes after a position.
  mutating func truncate(to end: Position) {
    bytes.truncate(to: end.bytes)
    if let count = places?.count { places?.removeLast(count - end.nodes) }
    groups.removeLast(groups.count - end.groups)
  }

  mutating func beginGroup() {
    if groups.last?.bytes != bytes.count { groups.append((bytes.count, places?.count ?? 0)) }
  }

  mutating func append(_ node: JSONView, at place: IndexPath?) {
    if bytes.count > limits.maxFrame { return }
    if bytes.count > (groups.last?.bytes ?? 0) { bytes.append(UInt8(ascii: ",")) }
    bytes.append(compact: node)
    places?.append(place)
  }

  /// Throws if the nodes do not fit in an answer, or if the query took too many steps.
  ///
  /// - Parameter steps: the number of steps left; negative if there were too many.
  func check(steps: Int) throws(FeedError) {
    if steps < 0 { throw Self.tooLarge("maxQuerySteps", limits.maxQuerySteps, flag: "--max-query-steps") }
    if bytes.count > limits.maxFrame { throw Self.tooLarge("maxFrame", limits.maxFrame, flag: "--max-frame") }
  }

  static func tooLarge(_ limit: String, _ value: Int, flag: String) -> FeedError {
    .limitExceeded(
      limit: limit, value: value,
      reason: "narrow the path, watch the feed and query your copy, or start feedd with a larger \(flag)")
  }

  func appendResult(to out: inout ByteBuffer, revision: UInt64, backwards: Bool) {
    out.append("\"nodes\":[")
    var isFirst = true
    let order = backwards ? Array(groups.indices.reversed()) : Array(groups.indices)
    for group in order {
      let end = group + 1 < groups.count ? groups[group + 1].bytes : bytes.count
      let start = groups[group].bytes
      if start == end { continue }
      if !isFirst { out.append(UInt8(ascii: ",")) }
      isFirst = false
      out.append(UnsafeRawBufferPointer(rebasing: bytes.bytes[start..<end]))
    }
    appendPlaces(order, to: &out)
    out.append("],\"revision\":")
    out.append(integer: revision)
  }

  private func appendPlaces(_ order: [Int], to out: inout ByteBuffer) {
    guard let places else { return }
    out.append("],\"places\":[")
    var isFirst = true
    for group in order {
      let end = group + 1 < groups.count ? groups[group + 1].nodes : places.count
      for place in places[groups[group].nodes..<end] {
        if isFirst { isFirst = false } else { out.append(UInt8(ascii: ",")) }
        if let place { out.append(place) } else { out.append("null") }
      }
    }
  }
}
