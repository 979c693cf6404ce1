import FeedJSON
import FeedQuery

/// The elements of a table that expire, in the order in which they do.
///
/// The moment of an element is stored with its text, as the last of its keys, so that undoing a step needs no evaluation.
/// Invariant: holds exactly the living elements that have such a moment, ordered by it, then by arrival.
final class Deadlines {
  private let path: SingularPath
  private let elements: ElementTable
  /// The index of the moment among the keys of an element.
  private let keyIndex: Int
  private let order = PositionTree(keyed: true)

  init(path: SingularPath, elements: ElementTable, keyIndex: Int) {
    self.path = path
    self.elements = elements
    self.keyIndex = keyIndex
  }

  /// Appends the key of an element: the length in 4 bytes, then the moment; nothing after the length if it does not expire.
  func appendKey(of element: JSONView, to keys: inout ByteBuffer) {
    guard let moment = path.resolve(element).flatMap(Timestamp.instant) else { return keys.appendUInt32BigEndian(0) }
    keys.appendUInt32BigEndian(8)
    keys.appendUInt32BigEndian(UInt32(truncatingIfNeeded: moment.nanoseconds >> 32))
    keys.appendUInt32BigEndian(UInt32(truncatingIfNeeded: moment.nanoseconds))
  }

  /// Takes up an element that was added. O(log n).
  func insert(_ handle: UInt32) {
    guard let moment = moment(of: handle) else { return }
    let arrival = elements.text(of: handle).arrival
    let row = order.upperBound(key: moment) { elements.text(of: $0).arrival > arrival }
    order.insert(handle, at: row, key: moment)
  }

  /// Drops an element that leaves. O(log n).
  func remove(_ handle: UInt32) {
    if order.contains(handle) { _ = order.remove(handle) }
  }

  /// Follows the exchange of an element's text. O(log n).
  func didExchange(_ handle: UInt32) {
    if let row = order.row(of: handle) {
      if order.key(at: row) == moment(of: handle) { return }
      _ = order.remove(at: row)
    }
    insert(handle)
  }

  /// Orders all elements anew, after their arrivals were set. O(n log n).
  func rebuild() {
    order.removeAll()
    elements.forEach(insert)
  }

  /// When the next element expires; nil if none does.
  var next: Instant? { order.count == 0 ? nil : Instant(nanoseconds: order.key(at: 0)) }

  /// The elements whose moment has come, in order, at most `limit`. O(limit · log n).
  func due(at moment: Instant, limit: Int) -> [UInt32] {
    var due: [UInt32] = []
    while due.count < min(limit, order.count), order.key(at: due.count) <= moment.nanoseconds {
      due.append(order[due.count])
    }
    return due
  }

  private func moment(of handle: UInt32) -> UInt64? {
    let keys = elements.text(of: handle).keys
    // A text of former rules, while a redefinition is undone.
    if keys.isEmpty { return nil }
    let key = SortOrder.key(keyIndex, in: keys)
    return key.isEmpty ? nil : SortOrder.prefix(of: key)
  }

  /// Stops if the order and the elements disagree. O(n log n).
  func checkInvariants() {
    var count = 0
    elements.forEach { handle in
      guard let moment = moment(of: handle) else { return }
      count += 1
      precondition(order.row(of: handle).map { order.key(at: $0) } == moment, "an element has another moment")
    }
    precondition(count == order.count, "an element that does not expire has a moment")
  }
}
