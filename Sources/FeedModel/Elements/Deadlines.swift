import FeedJSON
import FeedQuery

/// The elements of a table with an expiry time, in the order of expiry.
///
/// The expiry time of an element is stored with its text, as the last of its keys, so that undo needs no evaluation.
/// Invariant: contains exactly the living elements with an expiry time, ordered by this time, then by arrival.
final class Deadlines {
  private let path: SingularPath
  private let elements: ElementTable
  /// The index of the expiry time among the keys of an element.
  private let keyIndex: Int
  private let order: PositionTree

  init(
    path: SingularPath, elements: ElementTable, keyIndex: Int, order: PositionTree = PositionTree(keyed: true)
  ) {
    self.path = path
    self.elements = elements
    self.keyIndex = keyIndex
    self.order = order
  }

  /// Returns the deadlines of a copy of the elements. O(n).
  func copy(_ elements: ElementTable, _ pace: Pace) -> Deadlines {
    Deadlines(path: path, elements: elements, keyIndex: keyIndex, order: order.copy(pace))
  }

  /// Appends the key of an element: its length in 4 bytes, then the expiry time; length 0 if the element does not
  /// expire.
  func appendKey(of element: JSONView, to keys: inout ByteBuffer) {
    guard let moment = path.resolve(element).flatMap(Timestamp.instant) else { return keys.appendUInt32BigEndian(0) }
    keys.appendUInt32BigEndian(8)
    keys.appendUInt32BigEndian(UInt32(truncatingIfNeeded: moment.nanoseconds >> 32))
    keys.appendUInt32BigEndian(UInt32(truncatingIfNeeded: moment.nanoseconds))
  }

  /// Inserts an element that was added. O(log n).
  func insert(_ handle: UInt32) {
    guard let moment = moment(of: handle) else { return }
    let arrival = elements.text(of: handle).arrival
    let row = order.upperBound(key: moment) { elements.text(of: $0).arrival > arrival }
    order.insert(handle, at: row, key: moment)
  }

  /// Removes an element that is being removed. O(log n).
  func remove(_ handle: UInt32) {
    if order.contains(handle) { _ = order.remove(handle) }
  }

  /// Updates the position of an element whose text was exchanged. O(log n).
  func didExchange(_ handle: UInt32) {
    if let former = order.key(of: handle) {
      if former == moment(of: handle) { return }
      _ = order.remove(handle)
    }
    insert(handle)
  }

  /// Rebuilds the order, after the arrival numbers were set. O(n log n).
  func rebuild() {
    order.removeAll()
    elements.forEach(insert)
  }

  /// The time when the next element expires; nil if none does.
  var next: Instant? { order.count == 0 ? nil : Instant(nanoseconds: order.key(at: 0)) }

  /// At most `limit` expired elements, in order. O(limit · log n).
  func due(at moment: Instant, limit: Int) -> [UInt32] {
    var due: [UInt32] = []
    while due.count < min(limit, order.count), order.key(at: due.count) <= moment.nanoseconds {
      due.append(order[due.count])
    }
    return due
  }

  private func moment(of handle: UInt32) -> UInt64? {
    let keys = elements.text(of: handle).keys
    // A text under the previous definition, while a redefinition is undone.
    if keys.isEmpty { return nil }
    let key = SortOrder.key(keyIndex, in: keys)
    return key.isEmpty ? nil : SortOrder.prefix(of: key)
  }

  /// Traps unless the order matches the elements. O(n log n).
  func checkInvariants() {
    var count = 0
    elements.forEach { handle in
      guard let moment = moment(of: handle) else { return }
      count += 1
      precondition(order.key(of: handle) == moment, "an element has another moment")
    }
    precondition(count == order.count, "an element that does not expire has a moment")
  }
}
