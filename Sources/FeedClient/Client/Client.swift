import FeedJSON
import FeedSystem

/// A client of a daemon for asynchronous code: pushes values, and reads and watches feeds.
///
///     struct Item: Codable {
///       var id: Int
///       var text: String
///     }
///
///     let client = Client()
///     try await client.push(Item(id: 1, text: "disk full"), to: "inbox")
///     try await client.transaction { changes in
///       try changes.push([Item(id: 2, text: "fan"), Item(id: 3, text: "door")], to: "inbox")
///       try changes.patch(2, in: "inbox", with: ["text": "fan stopped"])
///       changes.delete(1, from: "inbox")
///     }
///     for try await update in client.watch("inbox", as: Item.self) {
///       print(try update.items())
///     }
///
/// Requests of all tasks share one connection. It is opened for the first request, and reopened after it was lost. A
/// thread of the client waits for answers, so a waiting task blocks no thread of Swift's pool. Requests are sent in the
/// order of the calls. A call returns when its answer arrives, which provides back-pressure: a loop that awaits each
/// push is as fast as the daemon. If a task is cancelled, its call throws `CancellationError`; the daemon may still
/// execute the request. A call whose connection is lost throws ``ClientError``, and the next call reconnects. Watches
/// reconnect and resume automatically.
public final class Client: Sendable {
  private let worker: ClientWorker
  private let socket: String

  /// - Parameters:
  ///   - socket: the path of the daemon's socket; see "Connecting and framing" in `Protocol/README.md` for the default.
  ///   - name: the client's name in the daemon's log and in `clients`.
  public init(socket: String? = nil, name: String = "swift") {
    self.socket = socket ?? SocketPath.clientDefault(.current)
    worker = ClientWorker(path: self.socket, name: name)
  }

  deinit { worker.stop() }

  /// Sends a request. Methods without a function of their own, such as `define` and `select`, are called in this way.
  ///
  ///     try await client.call("define", ["feed": "inbox", "kind": "collection"])
  ///
  /// - Parameter params: an object; see the method's page under `Protocol/methods`.
  /// - Returns: the JSON text of the result.
  /// - Throws: ``ClientError``, `EncodingError` or `CancellationError`.
  @discardableResult
  public func call(_ method: String, _ params: some Encodable) async throws -> [UInt8] {
    var text = ByteBuffer()
    try JSONTextEncoder.encode(params, to: &text)
    return try await worker.call(method, Array(text.bytes))
  }

  /// Sends a request and decodes its result.
  public func call<Result: Decodable>(
    _ method: String, _ params: some Encodable, as type: Result.Type
  ) async throws -> Result { try JSONViewDecoder.decode(type, from: await call(method, params)) }

  /// Inserts an element into a collection, or updates the element with its identity.
  /// - Parameters:
  ///   - animation: a hint for those who draw the change; see ``ItemUpdate/animation``.
  ///   - condition: what must hold for the present element with this identity; see ``ElementCondition``.
  /// - Returns: the revision of the daemon.
  @discardableResult
  public func push(
    _ element: some Encodable, to feed: String, animation: String? = nil, if condition: ElementCondition? = nil
  ) async throws -> UInt64 { try await push([element], to: feed, animation: animation, if: condition) }

  /// Inserts or updates elements of a collection in one commit.
  /// - Parameter condition: what must hold for the present elements with these identities; see ``ElementCondition``.
  @discardableResult
  public func push(
    _ elements: [some Encodable], to feed: String, animation: String? = nil, if condition: ElementCondition? = nil
  ) async throws -> UInt64 {
    try await change(animation) { changes in try changes.push(elements, to: feed, if: condition) }
  }

  /// Deletes the element with an identity. Does nothing if there is none.
  /// - Parameter filter: a condition that the element must match; then it must be there.
  @discardableResult
  public func delete(
    _ id: some Encodable & Sendable, from feed: String, animation: String? = nil, where filter: String? = nil
  ) async throws -> UInt64 {
    try await change(animation) { changes in
      try changes.add("delete", feed, [("id", id)] + ElementCondition.matches(filter))
    }
  }

  /// Deletes the elements for which a filter holds, such as `@.priority < 3`.
  @discardableResult
  public func delete(where filter: String, from feed: String, animation: String? = nil) async throws -> UInt64 {
    try await change(animation) { changes in changes.delete(where: filter, from: feed) }
  }

  /// Merges members into the element with an identity (RFC 7396); a null member is removed.
  ///
  ///     try await client.patch("b", in: "todo", with: ["owner": "me"], where: "!@.owner")
  ///
  /// - Parameter filter: a condition that the element must match. Of several programs that claim an element so, one gets it,
  ///   and the others throw ``RemoteError/conditionFailed``.
  @discardableResult
  public func patch(
    _ id: some Encodable & Sendable, in feed: String, with patch: some Encodable, animation: String? = nil,
    where filter: String? = nil
  ) async throws -> UInt64 {
    try await change(animation) { changes in try changes.patch(id, in: feed, with: patch, where: filter) }
  }

  /// Executes several changes in one commit, in the order in which `body` adds them. If one is refused, none takes
  /// effect.
  ///
  ///     struct Description: Decodable { var revision: UInt64 }
  ///
  ///     let inbox = try await client.call("describe", ["feed": "inbox"], as: Description.self)
  ///     try await client.transaction { changes in
  ///       changes.require("inbox", at: inbox.revision)  // no other program has changed it since
  ///       try changes.insert([Item(id: 4, text: "rain")], into: "queue", at: 0)
  ///     }
  ///
  /// - Returns: the revision of the daemon.
  @discardableResult
  public func transaction(_ body: (inout Transaction) throws -> Void) async throws -> UInt64 {
    var transaction = Transaction()
    try body(&transaction)
    return try await send("transaction", try transaction.parameters())
  }

  /// Watches a feed: its rows and every change of them, decoded when they are read; see ``Feed``. Waits for the daemon,
  /// and for the feed to be defined.
  public func watch<Item: Decodable>(_ feed: String, as type: Item.Type) -> ItemSequence<Item> {
    ItemSequence(feed: Feed(feed, socket: socket))
  }

  /// Watches the number of rows of each section of a feed, without its rows. A status bar that shows a number needs a
  /// few bytes for each change.
  ///
  ///     for try await counts in client.counts(of: "inbox/urgent") { show(counts.total) }
  public func counts(of feed: String) -> CountSequence { CountSequence(feed: feed, path: socket) }

  /// Sends the only change of a transaction as a single request.
  private func change(_ animation: String?, _ body: (inout Transaction) throws -> Void) async throws -> UInt64 {
    var transaction = Transaction()
    transaction.animation = animation
    try body(&transaction)
    let (method, params) = transaction.first
    return try await send(method, params)
  }

  private func send(_ method: String, _ params: [UInt8]) async throws -> UInt64 {
    struct Answer: Decodable { var revision: UInt64 }
    return try JSONViewDecoder.decode(Answer.self, from: await worker.call(method, params)).revision
  }
}

/// What must hold for the present elements that a change names. Otherwise the change is refused with
/// ``RemoteError/conditionFailed``, and nothing is changed.
public enum ElementCondition: Sendable {
  /// Each element is there and matches a filter, such as `!@.owner`.
  case matching(String)
  /// There is no element of these identities.
  case absent

  fileprivate static func parameters(_ condition: ElementCondition?) -> [(String, any Encodable)] {
    switch condition {
    case nil: []
    case .matching(let filter): [("where", filter)]
    case .absent: [("absent", true)]
    }
  }

  /// The parameters of a request whose elements must match a filter, if it is not nil.
  fileprivate static func matches(_ filter: String?) -> [(String, any Encodable)] {
    parameters(filter.map { .matching($0) })
  }
}

/// The changes of one commit; see ``Client/transaction(_:)``.
public struct Transaction {
  private struct Condition: Encodable {
    var feed: String
    var revision: UInt64?

    private enum CodingKeys: CodingKey { case feed, revision }

    func encode(to encoder: any Encoder) throws {
      var members = encoder.container(keyedBy: CodingKeys.self)
      try members.encode(feed, forKey: .feed)
      // A missing revision is written as null.
      try members.encode(revision, forKey: .revision)
    }
  }

  /// The animation hint of the changes that are added next; nil for none. If several apply to a feed, the last one counts.
  public var animation: String?
  private var operations: [(method: String, params: [UInt8])] = []
  private var conditions: [Condition] = []

  /// Executes the transaction only if a feed has this revision; nil if it is not defined. Otherwise it is refused, and the
  /// error names the revision that the feed has.
  public mutating func require(_ feed: String, at revision: UInt64?) {
    conditions.append(Condition(feed: feed, revision: revision))
  }

  /// Inserts an element into a collection or an array with identity, or updates the element with its identity.
  public mutating func push(
    _ element: some Encodable, to feed: String, if condition: ElementCondition? = nil
  ) throws { try push([element], to: feed, if: condition) }

  /// Inserts or updates elements of a collection or an array with identity.
  public mutating func push(
    _ elements: [some Encodable], to feed: String, if condition: ElementCondition? = nil
  ) throws { try add("update", feed, [("elements", elements)] + ElementCondition.parameters(condition)) }

  /// Replaces the content of a collection or an array by these elements.
  public mutating func set(_ feed: String, to elements: [some Encodable]) throws {
    try add("set", feed, [("elements", elements)])
  }

  /// Deletes the element with this identity.
  /// - Parameter filter: a condition that the element must match; then it must be there.
  public mutating func delete(_ id: Int, from feed: String, where filter: String? = nil) {
    try? add("delete", feed, [("id", id)] + ElementCondition.matches(filter))
  }

  /// Deletes the element with this identity.
  /// - Parameter filter: a condition that the element must match; then it must be there.
  public mutating func delete(_ id: String, from feed: String, where filter: String? = nil) {
    try? add("delete", feed, [("id", id)] + ElementCondition.matches(filter))
  }

  /// Deletes the elements for which a filter holds, such as `@.priority < 3`.
  public mutating func delete(where filter: String, from feed: String) { try? add("delete", feed, [("where", filter)]) }

  /// Merges members into the element with an identity (RFC 7396); a null member is removed.
  public mutating func patch(
    _ id: some Encodable, in feed: String, with patch: some Encodable, where filter: String? = nil
  ) throws { try add("patch", feed, [("id", id), ("patch", patch)] + ElementCondition.matches(filter)) }

  /// Merges members into the element at a row of an array.
  public mutating func patch(
    row: Int, of feed: String, with patch: some Encodable, where filter: String? = nil
  ) throws { try add("patch", feed, [("at", row), ("patch", patch)] + ElementCondition.matches(filter)) }

  /// Merges members into the element of a single.
  public mutating func patch(single feed: String, with patch: some Encodable, where filter: String? = nil) throws {
    try add("patch", feed, [("patch", patch)] + ElementCondition.matches(filter))
  }

  /// Inserts elements into an array; without a row, at its end.
  public mutating func insert(_ elements: [some Encodable], into feed: String, at row: Int? = nil) throws {
    try add("insert", feed, [("elements", elements)] + (row.map { [("at", $0)] } ?? []))
  }

  /// Replaces the elements of an array from a row on.
  public mutating func replace(_ elements: [some Encodable], in feed: String, at row: Int) throws {
    try add("replace", feed, [("elements", elements), ("at", row)])
  }

  /// Moves a row of an array. The new row is counted after the move.
  public mutating func move(row: Int, to destination: Int, in feed: String, where filter: String? = nil) {
    try? add("move", feed, [("from", row), ("to", destination)] + ElementCondition.matches(filter))
  }

  /// Moves the element with an identity in an array. The new row is counted after the move.
  public mutating func move(
    id: some Encodable, to destination: Int, in feed: String, where filter: String? = nil
  ) throws { try add("move", feed, [("id", id), ("to", destination)] + ElementCondition.matches(filter)) }

  /// Removes rows of an array. All rows are counted before the removal.
  public mutating func remove(rows: [Int], from feed: String) { try? add("remove", feed, [("at", rows)]) }

  /// Sets the element of a single.
  public mutating func put(_ element: some Encodable, in feed: String) throws {
    try add("put", feed, [("element", element)])
  }

  /// Adds an operation that `transaction` allows.
  mutating func add(_ method: String, _ feed: String, _ members: [(String, any Encodable)]) throws {
    var text = ByteBuffer()
    text.append("{\"feed\":", quoted: feed)
    for (name, value) in members {
      text.append(UInt8(ascii: ","))
      text.appendJSONString(name)
      text.append(UInt8(ascii: ":"))
      try JSONTextEncoder.encode(value, to: &text)
    }
    if let animation { text.append(",\"animation\":", quoted: animation) }
    text.append(UInt8(ascii: "}"))
    operations.append((method, Array(text.bytes)))
  }

  fileprivate var first: (method: String, params: [UInt8]) { operations.first ?? ("ping", Array("{}".utf8)) }

  fileprivate func parameters() throws -> [UInt8] {
    var text = ByteBuffer()
    text.append("{")
    if !conditions.isEmpty {
      text.append("\"if\":")
      try JSONTextEncoder.encode(conditions, to: &text)
      text.append(",")
    }
    text.append("\"ops\":[")
    for (place, operation) in operations.enumerated() {
      text.append(place > 0 ? ",{\"method\":" : "{\"method\":")
      text.appendJSONString(operation.method)
      text.append(",\"params\":")
      operation.params.withUnsafeBytes { text.append($0) }
      text.append("}")
    }
    text.append("]}")
    return Array(text.bytes)
  }
}
