import FeedChange
import FeedJSON

/// The result of `hello`.
public struct ServerHello: Equatable, Sendable {
  public var protocolVersion: Int
  /// The daemon's name and version; empty when it did not send them.
  public var server: String
  public var epoch: String
  public var revision: UInt64
  /// The largest frame that the daemon accepts, in bytes of JSON.
  public var maxFrame: Int

  /// The default limit of a daemon.
  public static let defaultMaxFrame = 16 << 20

  public init(
    protocolVersion: Int = 1, server: String = "", epoch: String, revision: UInt64,
    maxFrame: Int = ServerHello.defaultMaxFrame
  ) {
    self.protocolVersion = protocolVersion
    self.server = server
    self.epoch = epoch
    self.revision = revision
    self.maxFrame = maxFrame
  }

  /// Reads the `result` of a response.
  public init(_ result: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: result, place: "hello")
    guard let version = result.member("protocol")?.int else {
      throw MalformedMessage("hello: \"protocol\" is not a number")
    }
    protocolVersion = version
    epoch = try reader.string("epoch")
    revision = try reader.revision("revision")
    let name = result.member("server")
    server = name?.string ?? Self.join(name?.member("name")?.string, name?.member("version")?.string)
    let limit = result.member("limits")?.member("maxFrame")?.int
    maxFrame = limit.flatMap { $0 > 0 ? $0 : nil } ?? Self.defaultMaxFrame
  }

  private static func join(_ name: String?, _ version: String?) -> String {
    [name, version].compactMap { $0 }.joined(separator: " ")
  }
}

/// The result of `watch`; see "Watching" in `Protocol/README.md`.
public struct WatchStart: Equatable, Sendable {
  public var feed: String
  public var epoch: String
  public var revision: UInt64
  /// Whether the watch resumes from the requested `since`; otherwise a snapshot follows, unless it was not wanted.
  public var resumed: Bool
  public var sections: [SectionSummary]

  public init(feed: String, epoch: String, revision: UInt64, resumed: Bool, sections: [SectionSummary]) {
    self.feed = feed
    self.epoch = epoch
    self.revision = revision
    self.resumed = resumed
    self.sections = sections
  }

  /// Reads the `result` of a response.
  public init(_ result: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: result, place: "watch")
    feed = try reader.string("feed")
    epoch = try reader.string("epoch")
    revision = try reader.revision("revision")
    resumed = reader.flag("resumed")
    sections = try reader.sections("sections")
  }
}

/// A section's name and number of rows at the start of a watch.
public struct SectionSummary: Equatable, Sendable {
  public var name: String
  public var count: Int

  public init(name: String, count: Int) {
    self.name = name
    self.count = count
  }
}

/// A point in a daemon's history from which a watch can resume.
public struct FeedPosition: Equatable, Sendable {
  /// Identifies one unbroken history; revisions of different epochs cannot be compared.
  public var epoch: String
  /// The last commit seen.
  public var revision: UInt64

  public init(epoch: String, revision: UInt64) {
    self.epoch = epoch
    self.revision = revision
  }
}

/// A `bookmark` notification: the feed has not changed since `revision`, and the daemon is at `current`.
public struct Bookmark: Equatable, Sendable {
  public var feed: String
  public var epoch: String
  public var revision: UInt64
  /// A watch can also resume from here.
  public var current: UInt64

  public init(feed: String, epoch: String, revision: UInt64, current: UInt64) {
    self.feed = feed
    self.epoch = epoch
    self.revision = revision
    self.current = current
  }

  /// Reads the `params` of the notification.
  public init(_ params: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: params, place: "bookmark")
    feed = try reader.string("feed")
    epoch = try reader.string("epoch")
    revision = try reader.revision("revision")
    current = try reader.revision("current")
  }
}

/// A `selection` notification: the selected rows of a feed.
public struct Selection: Equatable, Sendable {
  public var feed: String
  /// The revision of the paths' coordinates.
  public var revision: UInt64
  /// Ascending.
  public var selected: [IndexPath]

  public init(feed: String, revision: UInt64, selected: [IndexPath]) {
    self.feed = feed
    self.revision = revision
    self.selected = selected
  }

  /// Reads the `params` of the notification.
  public init(_ params: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: params, place: "selection")
    feed = try reader.string("feed")
    revision = try reader.revision("revision")
    selected = try reader.paths("selected")
  }
}

/// A `bye` notification: why the daemon closes the connection.
public struct Bye: Equatable, Sendable {
  /// A code for programs.
  public var reason: String
  /// A message for people.
  public var message: String

  public init(reason: String, message: String) {
    self.reason = reason
    self.message = message
  }

  /// Reads the `params` of the notification; missing members are empty.
  public init(_ params: JSONView) {
    reason = params.member("reason")?.string ?? ""
    message = params.member("message")?.string ?? ""
  }
}

/// The daemon's refusal of a request; see "Errors" in `Protocol/README.md`.
public struct RemoteError: Error, Equatable, Sendable {
  /// JSON-RPC's own code or one of the protocol's, for example -32000 for an unknown feed.
  public var code: Int
  /// A message that says what to change.
  public var message: String
  /// The compact JSON text of `data`, which names the feed and the offending value; nil when there is none.
  public var data: [UInt8]?

  public init(code: Int, message: String, data: [UInt8]? = nil) {
    self.code = code
    self.message = message
    self.data = data
  }

  /// An undefined feed.
  public static let unknownFeed = -32000
  /// A condition of the request that does not hold; `data.revision` is the present revision of `data.feed`.
  public static let conditionFailed = -32009
  /// An identity that the feed does not have; `data.id` is the identity.
  public static let unknownIdentity = -32010
  /// An unknown method.
  public static let unknownMethod = -32601
  /// An element without identity.
  public static let noIdentity = -32003
  /// A filter or path that does not parse; `data.offset` is the offending place.
  public static let badQuery = -32004
  /// An exceeded limit; `data.limit` names it.
  public static let limitExceeded = -32007
}
