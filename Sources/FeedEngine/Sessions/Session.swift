import FeedJSON
import FeedModel
import FeedWire
import Glibc

/// Identifies a connection between the link and the engine, from accept to close. The number is then reused.
public struct ConnectionID: Hashable, Sendable {
  public let rawValue: Int

  public init(rawValue: Int) {
    self.rawValue = rawValue
  }
}

/// The peer of a connection, as reported by the kernel.
public struct Peer: Sendable, Hashable {
  public let uid: UInt32
  public let gid: UInt32
  public let pid: Int32
  /// The supplementary groups.
  public let groups: [UInt32]

  public init(uid: UInt32, gid: UInt32, pid: Int32, groups: [UInt32] = []) {
    self.uid = uid
    self.gid = gid
    self.pid = pid
    self.groups = groups
  }
}

/// Identifies a session. Connection numbers are reused, but a handle never refers to another session than its own.
struct SessionHandle: Equatable {
  let index: UInt32
  let generation: UInt32

  /// A handle that refers to no session.
  static let none = SessionHandle(index: .max, generation: 0)
}

/// The facts about a connection in `clients` and in the log.
struct ClientFacts {
  let connectedAt: Instant
  /// The client's name, from `hello`.
  var name = ""
  var requests: UInt64 = 0
  var resets: UInt64 = 0
}

/// The progress of closing a connection.
struct SessionPhase {
  /// Input is ignored. The connection closes when its output is written.
  var isClosing = false
  /// The connection was refused because of a limit. It does not count towards any limit.
  var isRefused = false
  /// The time when a closing connection is closed even if its output was not read.
  var closeDeadline: Instant?
}

/// A cache of the feed that the last request of a session named. Most requests name the same feed, which costs one
/// comparison.
struct NamedFeed: ~Copyable {
  private var feed: Feed? {
    didSet { unretained = feed.map { .passUnretained($0) } }
  }
  private var unretained: Unmanaged<Feed>?
  /// The name as the request wrote it, a JSON string.
  private var name = ByteBuffer()

  /// Returns the feed if `text` is the same name and the feed was not undefined. It is not retained: it is kept until the commit
  /// ends that undefines it.
  @inline(__always)
  func feed(named text: UnsafeRawBufferPointer) -> Unmanaged<Feed>? {
    guard let unretained, name.count == text.count, let start = text.baseAddress,
      memcmp(name.pointer, start, text.count) == 0, !unretained._withUnsafeGuaranteedRef({ $0.isGone })
    else { return nil }
    return unretained
  }

  /// Calls `body` with the feed if it is a collection with so many elements that looking at coming requests is worthwhile.
  @inline(__always)
  func withLargeCollection(_ body: (CollectionKind) -> Void) {
    unretained?._withUnsafeGuaranteedRef { feed in
      _ = feed.withCollection { if $0.isLarge { body($0) } }
    }
  }

  mutating func set(_ feed: Feed, named text: UnsafeRawBufferPointer) {
    self.feed = feed
    name.removeAll(keepingCapacity: true)
    name.append(text)
  }

  mutating func forget() { feed = nil }

  /// Clears a feed that was undefined, so that its memory can be released.
  mutating func forgetIfGone() { if feed?.isGone == true { feed = nil } }
}

/// One connection: its peer, its watches, its input and its output.
///
/// Its parts have private state. The parts themselves are not private, because each step of a turn works on one of
/// them.
final class Session {
  let handle: SessionHandle
  let peer: Peer
  var client: ClientFacts
  var watches = SessionWatches()
  /// The input that was not decoded.
  var input = SessionInput()
  /// The text of the first request of the input, if that is long and scanned in part. Written by `LongTexts` only.
  var longText: LongText?
  /// The requests that were decoded but not answered.
  var line = RequestLine()
  var output: OutputQueue
  /// The engine's count of deltas when the watches in step were last given theirs.
  var givenDeltas: UInt64 = 0
  var phase = SessionPhase()
  /// The memory of snapshots that its watches and answers read.
  let snapshots: SnapshotMemory
  /// The bytes charged to the user of this session, besides its output. Written by `Quotas` only.
  var charged = 0
  /// Whether the session is listed in the outbox. Written by `Outbox` only.
  var isInOutbox = false
  var named = NamedFeed()
  /// The form of its updates.
  var form = UpdateForm()

  /// The memory in bytes of the input, its tokens, the requests, the unfinished answers, the watches, and the snapshots.
  var memory: Int {
    input.held.count &+ line.memory &+ (longText?.memory ?? 0) &+ watches.count &* Watch.memory &+ snapshots.bytes
  }

  /// That memory, and the part of the output that was written but is not free yet. O(parts of the output).
  var held: Int { memory &+ output.spent }

  /// What closing the connection frees: all but the requests, which are executed nevertheless, and output that others hold too.
  /// O(parts of the output).
  var freeable: Int { charged &- line.bytes &+ output.count &+ output.spent }

  init(handle: SessionHandle, peer: Peer, connectedAt: Instant, snapshots: SnapshotMemory = SnapshotMemory()) {
    self.snapshots = snapshots
    self.handle = handle
    output = OutputQueue(uid: peer.uid)
    self.peer = peer
    client = ClientFacts(connectedAt: connectedAt)
  }

  deinit { input.held.removeAll() }

  var id: ConnectionID { ConnectionID(rawValue: Int(handle.index)) }
  var isClosing: Bool { phase.isClosing }

  /// The number of the connection in `clients` and in the log. Numbers are not used again.
  var number: Int { Int(handle.generation) }

  /// The connection, for log lines.
  var description: String {
    let name = client.name.isEmpty ? "" : " client \(client.name)"
    return "connection \(number) (uid \(peer.uid) pid \(peer.pid)\(name))"
  }

  /// The client, for the fields of the log.
  var subject: EngineEvent.Subject { EngineEvent.Subject(uid: peer.uid, pid: peer.pid) }
}
