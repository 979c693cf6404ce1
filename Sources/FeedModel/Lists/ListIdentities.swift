import FeedChange
import FeedJSON
import FeedQuery

/// The identities of an array's elements.
///
/// Invariant: the index holds exactly the living elements of the table, each by the identity stored with its text.
final class ListIdentities {
  let path: SingularPath
  private let feed: String
  private let elements: ElementTable
  private let seed: UInt64
  private var index = IdentityIndex()
  private var buffer = ByteBuffer()

  init(path: SingularPath, feed: String, elements: ElementTable, seed: UInt64) {
    (self.path, self.feed, self.elements, self.seed) = (path, feed, elements, seed)
  }

  /// Returns the identities of the same elements in another table, under the same handles. O(n).
  func copy(_ elements: ElementTable, _ pace: Pace) -> ListIdentities {
    let other = ListIdentities(path: path, feed: feed, elements: elements, seed: seed)
    other.index = index.copy(pace)
    return other
  }

  /// The canonical bytes of the identity of the last `find`.
  var bytes: UnsafeRawBufferPointer { buffer.bytes }

  /// The hash of ``bytes``.
  var hashOfBytes: UInt32 { hash(buffer.bytes) }

  /// Returns the element with an identity that a request gives; nil if there is none.
  ///
  /// - Throws: `noIdentity` if the value is neither a string nor a number.
  func find(_ id: JSONView, index place: Int) throws(FeedError) -> UInt32? {
    try find(id, index: place, path: "")
  }

  /// Returns the element with the identity of `element`, a whole element of a request; nil if there is none.
  ///
  /// - Throws: `noIdentity`.
  func find(identityOf element: JSONView, index place: Int) throws(FeedError) -> UInt32? {
    guard let id = path.resolve(element) else {
      throw .noIdentity(feed: feed, index: place, path: path.text, found: "missing")
    }
    return try find(id, index: place, path: path.text)
  }

  /// Checks the identity of a new element.
  ///
  /// - Throws: `noIdentity`, or `duplicateIdentity` if an element has this identity.
  func checkIsNew(_ element: JSONView, index place: Int) throws(FeedError) {
    if try find(identityOf: element, index: place) != nil { throw duplicate(element, index: place) }
  }

  /// Returns the error for an element with the identity of another row.
  func duplicate(_ element: JSONView, index place: Int) -> FeedError {
    let id = path.resolve(element).map { String(decoding: $0.text, as: UTF8.self) } ?? ""
    return .duplicateIdentity(feed: feed, index: place, id: id)
  }

  private func find(_ id: JSONView, index place: Int, path: String) throws(FeedError) -> UInt32? {
    buffer.removeAll(keepingCapacity: true)
    guard Identity.append(id, to: &buffer) else {
      throw .noIdentity(feed: feed, index: place, path: path, found: id.kind.name)
    }
    return index.find(buffer.bytes, hash: hash(buffer.bytes), in: elements)
  }

  /// The living element with the identity of a handle, which may have been removed.
  func successor(of handle: UInt32) -> UInt32? {
    elements.text(of: handle).withIdentity { index.find($0, hash: hash($0), in: elements) }
  }

  /// Makes room for one more element. Lets `pace` stop meanwhile.
  func makeRoom(_ pace: Pace) { index.makeRoom(pace) }

  func insert(_ handle: UInt32) { index.insert(handle, hash: elements.text(of: handle).withIdentity(hash)) }

  func remove(_ handle: UInt32) { index.remove(handle, hash: elements.text(of: handle).withIdentity(hash)) }

  private func hash(_ identity: UnsafeRawBufferPointer) -> UInt32 { Identity.hash(identity, seed: seed) }
}
