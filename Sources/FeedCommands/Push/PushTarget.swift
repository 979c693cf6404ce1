import FeedClient
import FeedJSON

/// What pushing means for the feed at hand: the method, and what an element needs.
struct PushTarget: Equatable {
  var feed: String
  var method: String
  /// Whether a request takes many elements.
  var takesMany: Bool
  /// Where the identity is; nil when elements need none.
  var id: MemberPath?
  /// Whether the identity is at a path that only the daemon can follow.
  var hasObscureID = false

  /// The target of a feed that is described so.
  init(_ description: JSONView) {
    feed = description.member("feed")?.string ?? ""
    switch description.member("kind")?.string {
    case "array": (method, takesMany) = ("insert", true)
    case "single": (method, takesMany) = ("put", false)
    default:
      (method, takesMany) = ("update", true)
      let path = description.member("id")?.string ?? "$.id"
      id = MemberPath(jsonPath: path)
      hasObscureID = id == nil
    }
  }

  /// Whether the element must have a request of its own: it will be refused, or nobody here can tell.
  func mustTravelAlone(_ element: JSONView) -> Bool {
    if !takesMany || hasObscureID { return true }
    guard let id else { return false }
    let kind = id.resolve(element)?.kind
    return kind != .string && kind != .number
  }

  /// Writes the parameters of the request that pushes a batch.
  func append(_ batch: PushBatch, to params: inout ByteBuffer) {
    params.append("{\"feed\":")
    params.appendJSONString(feed)
    params.append(takesMany ? ",\"elements\":[" : ",\"element\":")
    params.append(batch.bytes.bytes)
    params.append(takesMany ? "]}" : "}")
  }
}
