import FeedChange
import FeedJSON

/// A message from the daemon, read in place: valid until the connection returns the next one.
public enum Message {
  /// The response to a request that this connection sent.
  case response(id: Int, Result<JSONView, RemoteError>)
  case notification(Notification)
}

/// A notification: a message that answers no request. Valid until the connection returns the next message.
public struct Notification {
  /// The notifications of protocol 1.
  public enum Kind: Sendable {
    case delta, snapshot, bookmark, selection, bye
    /// A notification that this version does not know.
    case other
  }

  public let kind: Kind
  /// The parameters, an object.
  public let params: JSONView
  /// The whole JSON-RPC message.
  public let whole: JSONView

  /// Whether this is the last notification of a feed that was undefined.
  public var endsFeed: Bool { (kind == .delta || kind == .snapshot) && params.member("ended")?.bool == true }

  /// Whether this notification of `$feeds` contains the row of a feed, or of the collection of a bin.
  func lists(_ feed: String) -> Bool {
    var name = String(feed.prefix { $0 != "/" })
    return name.withUTF8 { name in
      params.member("elements")?.elements.contains {
        $0.member("feed")?.stringEquals(utf8: UnsafeRawBufferPointer(name)) == true
      } == true
    }
  }

  public func concerns(_ feed: String) -> Bool {
    var feed = feed
    return feed.withUTF8 { name in params.member("feed")?.stringEquals(utf8: UnsafeRawBufferPointer(name)) ?? false }
  }
}

extension Message {
  init(_ view: JSONView) throws(MalformedMessage) {
    if let method = view.member("method") {
      guard let params = view.member("params") else { throw MalformedMessage("a notification without \"params\"") }
      self = .notification(Notification(kind: .init(method), params: params, whole: view))
    } else if let error = view.member("error") {
      // An error without an id answers a request that the daemon could not parse.
      self = .response(id: view.member("id")?.int ?? 0, .failure(RemoteError(error)))
    } else if let result = view.member("result"), let id = view.member("id")?.int {
      self = .response(id: id, .success(result))
    } else {
      throw MalformedMessage("a message that is neither a response nor a notification")
    }
  }
}

extension Notification.Kind {
  fileprivate init(_ method: JSONView) {
    self =
      if method.stringEquals("delta") {
        .delta
      } else if method.stringEquals("snapshot") {
        .snapshot
      } else if method.stringEquals("bookmark") {
        .bookmark
      } else if method.stringEquals("selection") {
        .selection
      } else if method.stringEquals("bye") {
        .bye
      } else {
        .other
      }
  }
}

extension RemoteError {
  init(_ error: JSONView) {
    self.init(
      code: error.member("code")?.int ?? -32603, message: error.member("message")?.string ?? "request refused",
      data: error.member("data")?.compactText)
  }
}

/// A `delta` notification: the changes of one or more commits in a feed; see "The change" in `Protocol/README.md`.
public struct Delta: Equatable, Sendable {
  public var feed: String
  /// The revision of the watcher's copy before the delta.
  public var from: UInt64
  /// The revision of the watcher's copy after the delta.
  public var revision: UInt64
  public var change: Change
  /// The compact JSON texts of the rows of `change.added`, then of `change.updated`.
  public var elements: [[UInt8]]
  /// The type of each of the elements; nil if rows have no types.
  public var types: [String?]?
  /// The animation hint of the change; nil if there is none.
  public var animation: String?
  /// The identity of each row of `change.deleted`, a JSON text; nil for a row that has none. Nil if the watch did not ask for
  /// identities, or if the daemon does not know them; see "Identities of deleted rows" in `Protocol/README.md`.
  ///
  /// The identity of a moved row is that of its entry in `change.deleted`.
  public var deletedIDs: [[UInt8]?]?
  /// The identities of the rows of each section of `change.sectionsDeleted`; nil like ``deletedIDs``.
  public var deletedSectionIDs: [[[UInt8]?]]?

  public init(
    feed: String, from: UInt64, revision: UInt64, change: Change, elements: [[UInt8]], types: [String?]? = nil,
    animation: String? = nil, deletedIDs: [[UInt8]?]? = nil, deletedSectionIDs: [[[UInt8]?]]? = nil
  ) {
    (self.feed, self.from, self.revision) = (feed, from, revision)
    (self.change, self.elements, self.types) = (change, elements, types)
    (self.animation, self.deletedIDs, self.deletedSectionIDs) = (animation, deletedIDs, deletedSectionIDs)
  }

  /// Reads the `params` of the notification. Does not validate the change. O(bytes).
  public init(_ params: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: params, place: "delta")
    try self.init(reader, elements: try reader.texts("elements"))
  }

  /// Reads the `params` of the notification, with other texts in place of the elements.
  package init(_ reader: MemberReader, elements: [[UInt8]]) throws(MalformedMessage) {
    let params = reader.object
    feed = try reader.string("feed")
    from = try reader.revision("from")
    revision = try reader.revision("revision")
    change = try Change(params)
    self.elements = elements
    types = try reader.types(count: elements.count)
    animation = params.member("animation")?.string
    try readIdentities(params)
  }

  private mutating func readIdentities(_ params: JSONView) throws(MalformedMessage) {
    guard let rows = params.member("deletedIDs"), rows.kind == .array else { return }
    let sections = params.member("deletedSectionIDs")
    let deletedIDs = Self.identities(rows)
    let ofSections = sections.map { $0.elements.map(Self.identities) } ?? []
    guard deletedIDs.count == change.deleted.count, ofSections.count == change.sectionsDeleted.count else {
      throw MalformedMessage("delta: \"deletedIDs\" has not one entry for each row of \"deleted\"")
    }
    (self.deletedIDs, deletedSectionIDs) = (deletedIDs, ofSections)
  }

  private static func identities(_ list: JSONView) -> [[UInt8]?] {
    list.elements.map { $0.isNull ? nil : $0.compactText }
  }
}

extension Change {
  /// Reads the lists of a change from a delta or from the result of a mutation.
  init(_ object: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: object, place: "change")
    self.init(
      deleted: try reader.paths("deleted"), added: try reader.paths("added"), updated: try reader.paths("updated"))
    if let pairs = object.member("moves") {
      for pair in pairs.elements {
        // A move is encoded like a path: two 32-bit numbers.
        guard let places = IndexPath(pair) else { throw MalformedMessage("change: \"moves\" is not a list of pairs") }
        moves.append(Move(deleted: places.section, added: places.row))
      }
    }
    if let sections = object.member("sections") { try readSections(sections) }
  }

  /// Reads only the sections that were deleted and added.
  init(sectionsOf object: JSONView) throws(MalformedMessage) {
    self.init()
    if let sections = object.member("sections") { try readSections(sections) }
  }

  private mutating func readSections(_ object: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: object, place: "change: sections")
    if object.member("deleted") != nil {
      for index in try reader.array("deleted") {
        guard let section = index.int.flatMap({ UInt32(exactly: $0) }) else {
          throw MalformedMessage("change: \"sections.deleted\" is not a list of indexes")
        }
        sectionsDeleted.append(section)
      }
    }
    if object.member("added") != nil {
      for addition in try reader.array("added") {
        guard let at = addition.member("at")?.int.flatMap({ UInt32(exactly: $0) }),
          let name = addition.member("name")?.string
        else { throw MalformedMessage("change: \"sections.added\" is not a list of places and names") }
        sectionsAdded.append(SectionAddition(at: at, name: name, isByValue: addition.member("key") != nil))
      }
    }
  }
}

/// Reads members of a message from the daemon. A missing member or one of the wrong kind throws ``MalformedMessage``.
package struct MemberReader {
  package let object: JSONView
  /// The message's name, for errors.
  let place: StaticString

  package init(object: JSONView, place: StaticString) { (self.object, self.place) = (object, place) }

  private func malformed(_ name: StaticString, _ expected: StaticString) -> MalformedMessage {
    MalformedMessage("\(place): \"\(name)\" is not \(expected)")
  }

  package func revision(_ name: StaticString) throws(MalformedMessage) -> UInt64 {
    guard let value = object.member(name)?.int.flatMap({ UInt64(exactly: $0) }) else {
      throw malformed(name, "a revision")
    }
    return value
  }

  package func string(_ name: StaticString) throws(MalformedMessage) -> String {
    guard let value = object.member(name)?.string else { throw malformed(name, "a string") }
    return value
  }

  /// A boolean member, false if it is absent.
  package func flag(_ name: StaticString) -> Bool { object.member(name)?.bool ?? false }

  package func array(_ name: StaticString) throws(MalformedMessage) -> JSONView.Elements {
    guard let value = object.member(name), value.kind == .array else { throw malformed(name, "an array") }
    return value.elements
  }

  package func path(_ name: StaticString) throws(MalformedMessage) -> IndexPath {
    guard let path = object.member(name).flatMap(IndexPath.init) else { throw malformed(name, "[section, row]") }
    return path
  }

  package func paths(_ name: StaticString) throws(MalformedMessage) -> [IndexPath] {
    var paths: [IndexPath] = []
    for element in try array(name) {
      guard let path = IndexPath(element) else { throw malformed(name, "a list of [section, row]") }
      paths.append(path)
    }
    return paths
  }

  /// A number of rows of each section. Rows have numbers of 32 bits, so that sums of counts do not overflow.
  package func counts(_ name: StaticString) throws(MalformedMessage) -> [Int] {
    var counts: [Int] = []
    for element in try array(name) {
      guard let count = element.rowCount else { throw malformed(name, "a list of numbers of rows") }
      counts.append(count)
    }
    return counts
  }

  /// The sections of a watch's result or of a reset.
  package func sections(_ name: StaticString) throws(MalformedMessage) -> [SectionSummary] {
    var sections: [SectionSummary] = []
    for element in try array(name) {
      guard let name = element.member("name")?.string, let count = element.member("count")?.rowCount else {
        throw malformed("sections", "a list of names and counts")
      }
      sections.append(SectionSummary(name: name, key: element.member("key")?.compactText, count: count))
    }
    return sections
  }

  /// Copies of the compact texts of an array's elements.
  package func texts(_ name: StaticString) throws(MalformedMessage) -> [[UInt8]] {
    var texts: [[UInt8]] = []
    for element in try array(name) { texts.append(element.compactText) }
    return texts
  }

  /// The types of `count` elements; nil if the message has none.
  package func types(count: Int) throws(MalformedMessage) -> [String?]? {
    guard object.member("types") != nil else { return nil }
    var types: [String?] = []
    types.reserveCapacity(count)
    for element in try array("types") { types.append(element.string) }
    guard types.count == count else { throw malformed("types", "as long as \"elements\"") }
    return types
  }
}

extension IndexPath {
  /// Parses an array of two row numbers; nil for anything else.
  package init?(_ view: JSONView) {
    guard view.kind == .array, view.count == 2 else { return nil }
    var elements = view.elements
    guard let section = elements.next()?.int.flatMap({ UInt32(exactly: $0) }),
      let row = elements.next()?.int.flatMap({ UInt32(exactly: $0) })
    else { return nil }
    self.init(section: section, row: row)
  }
}

extension JSONView {
  /// The value as the number of rows of a section; nil for anything else.
  fileprivate var rowCount: Int? { int.flatMap { UInt32(exactly: $0) }.map(Int.init) }

  /// A copy of the value's text without white space outside strings.
  package var compactText: [UInt8] {
    if isCompact { return Array(text) }
    var buffer = ByteBuffer(capacity: text.count)
    buffer.append(compact: self)
    return Array(buffer.bytes)
  }
}

/// A message that violates the protocol: the peer is not feedd, or one side has a bug.
public struct MalformedMessage: Error, Equatable, Sendable {
  /// The expectation and the place, for example "delta: `from` is not a revision".
  public var description: String

  public init(_ description: String) { self.description = description }
}

extension MalformedMessage: CustomStringConvertible {}
