import FeedChange
import FeedJSON
import FeedSystem

/// The result of `hello`.
public struct ServerHello: Equatable, Sendable {
  public var protocolVersion: Int
  /// The daemon's name and version; empty if it did not send them.
  public var server: String
  public var epoch: String
  public var revision: UInt64
  /// The maximum bytes of JSON in a frame that the daemon accepts.
  public var maxFrame: Int

  /// The maximum levels of nested arrays and objects in a frame that the daemon accepts.
  public var maxDepth: Int

  public static let defaultMaxFrame = 16 << 20
  public static let defaultMaxDepth = 512

  public init(
    protocolVersion: Int = 1, server: String = "", epoch: String, revision: UInt64,
    maxFrame: Int = ServerHello.defaultMaxFrame, maxDepth: Int = ServerHello.defaultMaxDepth
  ) {
    (self.protocolVersion, self.server, self.epoch) = (protocolVersion, server, epoch)
    (self.revision, self.maxFrame, self.maxDepth) = (revision, maxFrame, maxDepth)
  }

  /// Throws also for another version of the protocol than 1.
  public init(_ result: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: result, place: "hello")
    guard let version = result.member("protocol")?.int else {
      throw MalformedMessage("hello: \"protocol\" is not a number")
    }
    guard version == 1 else { throw MalformedMessage("version \(version); this client speaks version 1") }
    protocolVersion = version
    epoch = try reader.string("epoch")
    revision = try reader.revision("revision")
    let name = result.member("server")
    server = name?.string ?? Self.join(name?.member("name")?.string, name?.member("version")?.string)
    func limit(_ name: StaticString) -> Int? {
      let limit = result.member("limits")?.member(name)?.int
      return limit.flatMap { $0 > 0 ? $0 : nil }
    }
    maxFrame = limit("maxFrame") ?? Self.defaultMaxFrame
    maxDepth = limit("maxDepth") ?? Self.defaultMaxDepth
  }

  private static func join(_ name: String?, _ version: String?) -> String {
    [name, version].compactMap { $0 }.joined(separator: " ")
  }
}

/// The result of `watch` (`Protocol/README.md`, "Watching").
public struct WatchStart: Equatable, Sendable {
  public var feed: String
  public var epoch: String
  public var revision: UInt64
  /// Whether the watch resumes from the requested `since`. Otherwise a snapshot follows, unless none was requested.
  public var resumed: Bool
  public var sections: [SectionSummary]

  public init(feed: String, epoch: String, revision: UInt64, resumed: Bool, sections: [SectionSummary]) {
    (self.feed, self.epoch, self.revision, self.resumed, self.sections) = (feed, epoch, revision, resumed, sections)
  }

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
  /// The value of a section by value, as JSON text; nil for other sections.
  public var key: [UInt8]?
  public var count: Int

  public init(name: String, key: [UInt8]? = nil, count: Int) { (self.name, self.key, self.count) = (name, key, count) }
}

/// A position in a daemon's history from which a watch can resume.
public struct FeedPosition: Equatable, Sendable {
  /// The name of one unbroken history. Revisions of different epochs cannot be compared.
  public var epoch: String
  /// The revision of the last commit that was received.
  public var revision: UInt64

  public init(epoch: String, revision: UInt64) { (self.epoch, self.revision) = (epoch, revision) }
}

/// A `bookmark` notification: the feed has not changed since `revision`, and the daemon is at `current`.
public struct Bookmark: Equatable, Sendable {
  public var feed: String
  public var epoch: String
  public var revision: UInt64
  /// The daemon's revision. A watch can resume from here, too.
  public var current: UInt64

  public init(feed: String, epoch: String, revision: UInt64, current: UInt64) {
    (self.feed, self.epoch, self.revision, self.current) = (feed, epoch, revision, current)
  }

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
  /// The revision at which the paths are valid.
  public var revision: UInt64
  /// The selected rows, ascending.
  public var selected: [IndexPath]

  public init(feed: String, revision: UInt64, selected: [IndexPath]) {
    (self.feed, self.revision, self.selected) = (feed, revision, selected)
  }

  public init(_ params: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: params, place: "selection")
    feed = try reader.string("feed")
    revision = try reader.revision("revision")
    selected = try reader.paths("selected")
  }
}

/// A `bye` notification: the reason why the daemon closes the connection.
public struct Bye: Equatable, Sendable {
  /// A word for programs.
  public var reason: String
  /// A sentence for people.
  public var message: String

  public init(reason: String, message: String) { (self.reason, self.message) = (reason, message) }

  /// Reads the `params` of the notification; missing members are empty.
  public init(_ params: JSONView) {
    reason = params.member("reason")?.string ?? ""
    message = params.member("message")?.string ?? ""
  }
}

/// An error response (`Protocol/README.md`, "Errors").
public struct RemoteError: Error, Equatable, Sendable {
  /// The code of JSON-RPC or of the protocol, for example -32000 for an unknown feed.
  public var code: Int
  /// The message, with the next step.
  public var message: String
  /// The compact JSON text of `data`, which names the feed and the offending value; nil if there is none.
  public var data: [UInt8]?

  public init(code: Int, message: String, data: [UInt8]? = nil) {
    (self.code, self.message, self.data) = (code, message, data)
  }

  public static let unknownFeed = -32000
  /// A condition of the request does not hold. `data.revision` is the current revision of `data.feed`; for a condition on
  /// an element, `data.id` is its identity.
  public static let conditionFailed = -32009
  /// The feed has no element with the identity in `data.id`.
  public static let unknownIdentity = -32010
  /// The change could not be stored; for `watch`, this member of a group has not reached `since`, and its log is unreachable.
  public static let storageFailed = -32008
  /// The method does not exist.
  public static let unknownMethod = -32601
  public static let noIdentity = -32003
  /// A filter or path cannot be parsed. `data.offset` is the position of the error.
  public static let badQuery = -32004
  /// A limit was exceeded. `data.limit` is its name.
  public static let limitExceeded = -32007
}

public enum ClientError: Error, Equatable, Sendable {
  /// No daemon listens at the socket's path.
  case noDaemon(SystemError)
  /// The daemon closed the connection, with its reason if it sent one.
  case closed(Bye?)
  /// The daemon refused a request.
  case refused(RemoteError)
  /// The daemon sent a message that violates the protocol.
  case malformed(MalformedMessage)
  /// A message contradicts the earlier ones: the copy of the feed is wrong.
  case fault(FeedFault)
  case timedOut
  case system(SystemError)
}

extension ClientError {
  /// The description without its full stop, to be used inside a sentence.
  package var clause: String {
    let text = description
    return text.hasSuffix(".") ? String(text.dropLast()) : text
  }
}

extension ClientError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .noDaemon(let error): "\(error)"
    case .closed(let bye?) where !bye.message.isEmpty: "the daemon closed the connection: \(bye.message)"
    case .closed: "the daemon closed the connection"
    case .refused(let error): "\(error.message) (\(error.code))"
    case .malformed(let error): "the daemon does not speak this protocol: \(error)"
    case .fault(let fault): "\(fault)"
    case .timedOut: "timed out"
    case .system(let error): "\(error)"
    }
  }
}

package func reading<Value>(_ read: @autoclosure () throws(MalformedMessage) -> Value) throws(ClientError) -> Value {
  do throws(MalformedMessage) { return try read() } catch { throw .malformed(error) }
}

/// Applies a message to a copy, or checks that it continues the earlier ones.
@discardableResult
package func checking<Value>(_ check: @autoclosure () throws(FeedFault) -> Value) throws(ClientError) -> Value {
  do throws(FeedFault) { return try check() } catch { throw .fault(error) }
}

/// A contradiction in the messages to a watcher: a bug in the daemon or in the client.
///
/// The copy is invalid. Start over with a new watch.
public enum FeedFault: Error, Equatable, Sendable {
  /// A delta starts at another revision than that of this copy: a message was lost or duplicated.
  case gap(expected: UInt64, found: UInt64)
  /// A delta does not end at a later revision than it starts at.
  case backwards(from: UInt64, revision: UInt64)
  /// A delta arrived before the snapshot was complete.
  case deltaInsideSnapshot(revision: UInt64)
  /// A part of a snapshot arrived although none was expected.
  case unexpectedSnapshot(revision: UInt64)
  /// Two parts of one snapshot have different revisions.
  case mixedSnapshot(expected: UInt64, found: UInt64)
  /// A part of a snapshot does not continue the previous one, or the number of rows is wrong.
  case misplacedSnapshot(at: IndexPath)
  /// The change is invalid for the rows of this copy.
  case misfit(ChangeError, revision: UInt64)
  /// The message is about another feed or another epoch.
  case foreign(String)
  /// The digest of this copy differs from the daemon's at the same revision.
  case digest(revision: UInt64, mine: String, daemons: String)
}

extension FeedFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .gap(let expected, let found):
      "a delta starts from revision \(grouped(found)), but this copy is at revision \(grouped(expected))"
    case .backwards(let from, let revision): "a delta goes from revision \(grouped(from)) back to \(grouped(revision))"
    case .deltaInsideSnapshot(let revision):
      "the delta of revision \(grouped(revision)) came before the snapshot was complete"
    case .unexpectedSnapshot(let revision): "a snapshot of revision \(grouped(revision)) was not requested"
    case .mixedSnapshot(let expected, let found):
      "a part of revision \(grouped(found)) came inside a snapshot of revision \(grouped(expected))"
    case .misplacedSnapshot(let at):
      "the part of the snapshot at \(at) is not where the one before it ended, or has another number of rows"
    case .misfit(let error, let revision): "the delta of revision \(grouped(revision)) does not fit this copy: \(error)"
    case .foreign(let name): "a message is about \"\(name)\", which is not what is watched"
    case .digest(let revision, let mine, let daemons):
      "at revision \(grouped(revision)) the digest of this copy is \(mine) and the daemon's is \(daemons)"
    }
  }
}
