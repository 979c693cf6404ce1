import FeedChange
import FeedJSON
import FeedModel

/// The nodes that a query has found, written as they come.
///
/// Nodes come in groups, one for each element looked at, so that the groups can be put in the opposite order.
struct QueryNodes: ~Copyable {
  private let limits: Limits
  private var bytes = ByteBuffer()
  /// Where each group begins.
  private var groups: [Int] = []

  init(limits: Limits) {
    self.limits = limits
  }

  mutating func beginGroup() {
    if groups.last != bytes.count { groups.append(bytes.count) }
  }

  mutating func append(_ node: JSONView) {
    if bytes.count > limits.maxFrame { return }
    if bytes.count > (groups.last ?? 0) { bytes.append(UInt8(ascii: ",")) }
    bytes.append(compact: node)
  }

  /// Refuses what is too much for an answer, or was too much work: `steps` is what is left of it.
  func check(steps: Int) throws(FeedError) {
    if steps < 0 { throw Self.tooLarge("maxQuerySteps", limits.maxQuerySteps) }
    if bytes.count > limits.maxFrame { throw Self.tooLarge("maxFrame", limits.maxFrame) }
  }

  static func tooLarge(_ limit: String, _ value: Int) -> FeedError {
    .limitExceeded(limit: limit, value: value, reason: "narrow the path, or watch the feed and query your copy")
  }

  func appendResult(to out: inout ByteBuffer, revision: UInt64, backwards: Bool) {
    out.append("\"nodes\":[")
    var isFirst = true
    let order = backwards ? Array(groups.indices.reversed()) : Array(groups.indices)
    for group in order {
      let end = group + 1 < groups.count ? groups[group + 1] : bytes.count
      if groups[group] == end { continue }
      if !isFirst { out.append(UInt8(ascii: ",")) }
      isFirst = false
      out.append(UnsafeRawBufferPointer(rebasing: bytes.bytes[groups[group]..<end]))
    }
    out.append("],\"revision\":")
    out.append(integer: revision)
  }
}
