import CProcessor
import FeedJSON

/// Brings the memory near that coming updates of a collection need, some requests before each is executed. Such an update
/// otherwise spends most of its time waiting for memory.
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
