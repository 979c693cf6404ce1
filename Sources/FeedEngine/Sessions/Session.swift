import FeedJSON
import FeedModel
import Glibc

/// Names a connection between the link and the engine, from the moment it is accepted until it is closed. Then it may name
/// another.
public struct ConnectionID: Hashable, Sendable {
  public let rawValue: Int

  public init(rawValue: Int) {
    self.rawValue = rawValue
  }
}

/// Who is at the other end of a connection, as the kernel says.
public struct Peer: Sendable, Hashable {
  public let uid: UInt32
  public let gid: UInt32
  public let pid: Int32
  /// Its supplementary groups.
  public let groups: [UInt32]

  public init(uid: UInt32, gid: UInt32, pid: Int32, groups: [UInt32] = []) {
    self.uid = uid
    self.gid = gid
    self.pid = pid
    self.groups = groups
  }
}

/// Names a session for as long as anything may refer to it: the number of a closed connection is used again, a handle never
/// finds another session than its own.
struct SessionHandle: Equatable {
  let index: UInt32
  let generation: UInt32

  /// Finds no session.
  static let none = SessionHandle(index: .max, generation: 0)
}

/// What `clients` and the log tell of a connection.
struct ClientFacts {
  let connectedAt: Instant
  /// What the client calls itself in `hello`.
  var name = ""
  var requests: UInt64 = 0
  var resets: UInt64 = 0
}

/// How far the end of a connection has come.
struct SessionPhase {
  /// Nothing more is read. The connection closes when its output is written.
  var isClosing = false
  /// The connection came over a limit: it counts for none.
  var isRefused = false
  /// When a closing connection is cut off even if its output was not read.
  var closeDeadline: Instant?
}

/// The feed that the last request of a session named. Most requests name the same feed, which costs one comparison.
struct NamedFeed: ~Copyable {
  private var feed: Feed?
  /// The feed's name as the request wrote it, a JSON string.
  private var name = ByteBuffer()

  /// The feed, if `text` names the same one and it is not gone.
  func feed(named text: UnsafeRawBufferPointer) -> Feed? {
    guard let feed, !feed.isGone, name.count == text.count, let start = text.baseAddress,
      memcmp(name.pointer, start, text.count) == 0
    else { return nil }
    return feed
  }

  mutating func set(_ feed: Feed, named text: UnsafeRawBufferPointer) {
    self.feed = feed
    name.removeAll(keepingCapacity: true)
    name.append(text)
  }

  mutating func forget() { feed = nil }

  /// Forgets a feed that is gone, so that its memory can be released.
  mutating func forgetIfGone() { if feed?.isGone == true { feed = nil } }
}

/// One connection as the engine sees it: who it is, what it watches, what it still has to be sent.
///
/// Its parts keep their own state private. They are not private here because the steps of a turn each work on one of them.
final class Session {
  let handle: SessionHandle
  let peer: Peer
  var client: ClientFacts
  var watches: [Watch] = []
  /// What was received and not decoded.
  var input = SessionInput()
  /// What was decoded and not answered.
  var line = RequestLine()
  var output = OutputQueue()
  /// The engine's count of deltas when the watches in step were last given theirs.
  var givenDeltas: UInt64 = 0
  var phase = SessionPhase()
  /// Bytes that its user is charged for it. Written by `Quotas` alone.
  var charged = 0
  /// Whether the session is listed in the outbox. Written by `Outbox` alone.
  var isInOutbox = false
  var named = NamedFeed()

  init(handle: SessionHandle, peer: Peer, connectedAt: Instant) {
    self.handle = handle
    self.peer = peer
    client = ClientFacts(connectedAt: connectedAt)
  }

  deinit { input.held.removeAll() }

  var id: ConnectionID { ConnectionID(rawValue: Int(handle.index)) }
  var isClosing: Bool { phase.isClosing }

  /// The connection in a line of the log.
  var description: String {
    let name = client.name.isEmpty ? "" : " client \(client.name)"
    return "connection \(id.rawValue) (uid \(peer.uid) pid \(peer.pid)\(name))"
  }

  /// The client, for the fields of the log.
  var subject: EngineEvent.Subject { EngineEvent.Subject(uid: peer.uid, pid: peer.pid) }
}
