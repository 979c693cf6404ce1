import FeedJSON
import FeedQuery
import Glibc

/// The order of a sorted bin: singular paths, each ascending or descending.
///
/// The key of an element is a byte string. Comparing keys with `memcmp` gives the order of Protocol/README.md, "Collections":
/// null, false, true, numbers by exact value, strings by code point, arrays and objects, which are equal to each other. An
/// absent value is last in either direction. Invariant: no key is a prefix of another.
struct SortOrder: Sendable {
  struct Term: Sendable {
    let path: SingularPath
    let descending: Bool
    /// Whether the term determines the section of an element. Values that name no section then count as absent.
    var isSection = false

    /// The value that counts of what the path finds; nil for none.
    @inline(__always)
    func value(in found: JSONView?) -> JSONView? {
      if isSection, let found, !SectionName.isNamed(by: found) { return nil }
      return found
    }
  }

  let terms: [Term]

  private enum Rank {
    static let null: UInt8 = 1
    static let `false`: UInt8 = 2
    static let `true`: UInt8 = 3
    static let number: UInt8 = 4
    static let string: UInt8 = 5
    static let structure: UInt8 = 6
    static let absent: UInt8 = 0xFF
  }

  /// What keys may take: each term looks at the members of the element, and repeats the value that it finds, which may be long.
  struct Room {
    /// The bytes that the buffer of the keys may have.
    let bytes: Int
    /// The steps that are left for finding values; see `SingularPath.resolve(_:steps:)`.
    var steps: Int
  }

  /// Appends the length of the key of `element` in 4 bytes, then the key.
  func appendKey(of element: JSONView, to buffer: inout ByteBuffer) {
    let start = buffer.count
    buffer.appendUInt32BigEndian(0)
    for term in terms {
      Self.append(term.value(in: term.path.resolve(element)), descending: term.descending, to: &buffer)
    }
    buffer.overwriteUInt32BigEndian(at: start, UInt32(buffer.count &- start &- 4))
  }

  /// Like `appendKey(of:to:)`, within some room.
  /// - Returns: false if there is too little room; the key then ends there.
  @discardableResult
  func appendKey(of element: JSONView, to buffer: inout ByteBuffer, within room: inout Room) -> Bool {
    let start = buffer.count
    buffer.appendUInt32BigEndian(0)
    for term in terms {
      let value = term.value(in: term.path.resolve(element, steps: &room.steps))
      Self.append(value, descending: term.descending, to: &buffer)
      if buffer.count > room.bytes || room.steps < 0 { break }
    }
    let isWhole = buffer.count <= room.bytes && room.steps >= 0
    if !isWhole { buffer.truncate(to: max(room.bytes, start &+ 4)) }
    buffer.overwriteUInt32BigEndian(at: start, UInt32(buffer.count &- start &- 4))
    return isWhole
  }

  private static func append(_ value: JSONView?, descending: Bool, to buffer: inout ByteBuffer) {
    guard let value else { return buffer.append(Rank.absent) }
    let start = buffer.count
    switch value.kind {
    case .null: buffer.append(Rank.null)
    case .false: buffer.append(Rank.false)
    case .true: buffer.append(Rank.true)
    case .number:
      buffer.append(Rank.number)
      JSONNumber.appendOrderedKey(of: value.text, to: &buffer)
    case .string:
      buffer.append(Rank.string)
      value.withDecodedUTF8 { appendDelimited($0, to: &buffer) }
    case .array, .object: buffer.append(Rank.structure)
    }
    if descending {
      for place in start..<buffer.count { buffer.pointer[place] = ~buffer.pointer[place] }
    }
  }

  /// Appends bytes with 0xFF after each zero, and two zeros at the end: in the same order, none a prefix of another.
  private static func appendDelimited(_ bytes: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) {
    var rest = bytes
    while let start = rest.baseAddress, let zero = memchr(start, 0, rest.count) {
      let end = UnsafeRawPointer(zero) - start + 1
      buffer.append(UnsafeRawBufferPointer(rebasing: rest[..<end]))
      buffer.append(0xFF)
      rest = UnsafeRawBufferPointer(rebasing: rest[end...])
    }
    buffer.append(rest)
    buffer.append(0)
    buffer.append(0)
  }

  /// The value of the key of a single term.
  enum KeyedValue {
    case `false`, `true`
    /// The key of a number, see `JSONNumber.appendOrderedKey(of:to:)`, inverted if the term is descending.
    case number(UnsafeRawBufferPointer)
    /// The bytes of a string, inverted if the term is descending, and with a byte after each zero.
    case string(UnsafeRawBufferPointer)
    case other
  }

  @inline(__always)
  static func value(of key: UnsafeRawBufferPointer, descending: Bool) -> KeyedValue {
    let mask: UInt8 = descending ? 0xFF : 0
    return switch key.first.map({ $0 ^ mask }) {
    case Rank.false: .false
    case Rank.true: .true
    case Rank.number: .number(UnsafeRawBufferPointer(rebasing: key[1...]))
    case Rank.string: .string(UnsafeRawBufferPointer(rebasing: key[1..<(key.count - 2)]))
    default: .other
    }
  }

  /// The key with this index in the `keys` of an element. O(index).
  static func key(_ index: Int, in keys: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var offset = 0
    for _ in 0..<index { offset &+= 4 &+ length(at: offset, in: keys) }
    let length = length(at: offset, in: keys)
    return UnsafeRawBufferPointer(rebasing: keys[(offset &+ 4)..<(offset &+ 4 &+ length)])
  }

  private static func length(at offset: Int, in keys: UnsafeRawBufferPointer) -> Int {
    Int(UInt32(bigEndian: keys.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
  }

  /// The first eight bytes of a key as a number, padded with zeros. Unequal prefixes have the order of their keys.
  static func prefix(of key: UnsafeRawBufferPointer) -> UInt64 {
    if key.count >= 8 { return UInt64(bigEndian: key.loadUnaligned(as: UInt64.self)) }
    var prefix: UInt64 = 0
    for byte in key { prefix = prefix << 8 | UInt64(byte) }
    return prefix << UInt64(8 &* (8 &- key.count))
  }

  static func isAfter(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool { compare(a, b) > 0 }

  /// Compares two keys as `memcmp` does; a proper prefix sorts first.
  static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int32 {
    guard let x = a.baseAddress, let y = b.baseAddress else {
      return a.count == b.count ? 0 : (a.count < b.count ? -1 : 1)
    }
    let order = memcmp(x, y, min(a.count, b.count))
    return order != 0 ? order : (a.count == b.count ? 0 : (a.count < b.count ? -1 : 1))
  }
}

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

  init(path: SingularPath, elements: ElementTable, keyIndex: Int, order: PositionTree = PositionTree(keyed: true)) {
    (self.path, self.elements, self.keyIndex, self.order) = (path, elements, keyIndex, order)
  }

  /// Returns the deadlines of a copy of the elements. O(n).
  func copy(_ elements: ElementTable, _ pace: Pace) -> Deadlines {
    Deadlines(path: path, elements: elements, keyIndex: keyIndex, order: order.copy(pace))
  }

  /// Appends the key of an element: its length in 4 bytes, then the expiry time; length 0 if there is none.
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
  func remove(_ handle: UInt32) { if order.contains(handle) { _ = order.remove(handle) } }

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

/// The order in which the elements of a table changed last: a doubly linked list of handles in one raw array.
///
/// Invariant: the links of two neighbours agree, and `oldest` and `newest` are the ends. Memory is freed with the object.
final class ChangeOrder {
  private static let none = ElementTable.none

  /// The neighbours of an element; `none` at the ends.
  private struct Link {
    var older: UInt32
    var newer: UInt32
  }

  private var links: UnsafeMutablePointer<Link>
  private var capacity: Int
  private(set) var oldest = none
  private(set) var newest = none

  /// - Parameter capacity: the number after the greatest handle that can be linked.
  init(capacity: Int) {
    self.capacity = capacity
    links = Self.room(nil, capacity)
  }

  deinit { free(links) }

  /// Returns the same order. O(handles).
  /// - Parameter end: the number after the greatest handle that was ever linked.
  func copy(_ end: Int, _ pace: Pace) -> ChangeOrder {
    let copy = ChangeOrder(capacity: capacity)
    for handle in 0..<end {
      (copy.links + handle).initialize(to: links[handle])
      if handle & 255 == 0 { pace.spend(8) }
    }
    (copy.oldest, copy.newest) = (oldest, newest)
    return copy
  }

  var byteCount: Int { capacity * MemoryLayout<Link>.stride }

  func reserve(_ count: Int) {
    if count <= capacity { return }
    links = Self.room(links, count)
    capacity = count
  }

  private static func room(_ links: UnsafeMutablePointer<Link>?, _ count: Int) -> UnsafeMutablePointer<Link> {
    resized(links, byteCount: count * MemoryLayout<Link>.stride).assumingMemoryBound(to: Link.self)
  }

  func newer(than handle: UInt32) -> UInt32 { links[Int(handle)].newer }

  /// Calls `body` with each element, the oldest first. `body` may unlink it.
  func forEach(_ body: (UInt32) -> Void) {
    var next = oldest
    while next != Self.none {
      let handle = next
      next = links[Int(handle)].newer
      body(handle)
    }
  }

  /// Links an element just before `newer`, or at the newest end.
  func link(_ handle: UInt32, before newer: UInt32) {
    let older = newer == Self.none ? newest : links[Int(newer)].older
    (links + Int(handle)).initialize(to: Link(older: older, newer: newer))
    if older == Self.none { oldest = handle } else { links[Int(older)].newer = handle }
    if newer == Self.none { newest = handle } else { links[Int(newer)].older = handle }
  }

  func unlink(_ handle: UInt32) {
    let (older, newer) = (links[Int(handle)].older, links[Int(handle)].newer)
    if older == Self.none { oldest = newer } else { links[Int(older)].newer = newer }
    if newer == Self.none { newest = older } else { links[Int(newer)].older = older }
  }

  /// Moves an element just before `newer`, or to the newest end.
  func move(_ handle: UInt32, before newer: UInt32) {
    guard newer != handle, links[Int(handle)].newer != newer else { return }
    unlink(handle)
    link(handle, before: newer)
  }

  #if CHECK_INVARIANTS
    /// Checks the links in both directions. Calls `body` with each element. O(n) if `body` stops a list without end.
    func checkInvariants(_ body: (UInt32) -> Void) {
      var (older, next) = (Self.none, oldest)
      while next != Self.none {
        precondition(links[Int(next)].older == older, "a link to an older element is wrong")
        body(next)
        (older, next) = (next, links[Int(next)].newer)
      }
      precondition(older == newest, "the newest element is not the last")
    }
  #endif
}
