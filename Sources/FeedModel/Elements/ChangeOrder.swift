import Glibc

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
