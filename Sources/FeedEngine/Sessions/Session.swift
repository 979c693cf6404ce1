import FeedJSON
import FeedModel

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

/// The requests of one connection that were decoded and not executed, which the batches of the turn hold in order.
///
/// Invariant: the bytes and reads are those of the requests; without requests there are none, and nothing is held.
struct RequestLine {
  private var count = 0
  /// Bytes of the requests.
  private(set) var bytes = 0
  private var reads = 0
  /// Whether nothing may follow the last request until it is answered: the answer may take several turns.
  private var isHeld = false
  /// Whether the next request found no room in the open batch.
  var isStalled = false
  /// Whether the stream ends behind the last request.
  var isCut = false

  /// Requests that may wait without being stored: their answers may be large, and all come in one turn.
  private static let maxReads = 32

  var isEmpty: Bool { count == 0 }
  /// Whether further requests may be added.
  var takesMore: Bool { !isHeld && !isCut && !isStalled && reads < Self.maxReads }

  mutating func add(bytes: Int, isRead: Bool, isHeld: Bool) {
    assert(takesMore)
    count &+= 1
    self.bytes &+= bytes
    if isRead { reads &+= 1 }
    self.isHeld = isHeld
    checkInvariants()
  }

  /// The first request is executed.
  mutating func remove(bytes: Int, isRead: Bool, isHeld: Bool) {
    assert(count > 0)
    count &-= 1
    self.bytes &-= bytes
    if isRead { reads &-= 1 }
    if isHeld { self.isHeld = false }
    checkInvariants()
  }

  func checkInvariants() {
    assert(count >= reads && reads >= 0 && bytes >= 0)
    assert(count > 0 || bytes == 0 && !isHeld)
  }
}

/// One connection as the engine sees it: who it is, what it watches, what it still has to be sent.
///
/// Guarded by the engine's thread.
final class Session {
  let handle: SessionHandle
  let peer: Peer
  let connectedAt: Instant
  /// What the client calls itself in `hello`.
  var clientName = ""
  var watches: [Watch] = []
  /// What was received and not decoded.
  var input = SessionInput()
  /// What was decoded and not executed.
  var line = RequestLine()
  var output = OutputQueue()
  /// The engine's count of deltas when the watches in step were last given theirs.
  var givenDeltas: UInt64 = 0
  /// Whether the session is on the engine's list of those with something to write.
  var isDirty = false
  /// Nothing more is read; it closes when its output is written.
  var isClosing = false
  /// It came over a limit: it counts for none and closes once it was told so.
  var isRefused = false
  /// When a closing session is cut off even if its output was not read.
  var closeDeadline: Instant?
  /// The last write did not take everything.
  var isBlocked = false
  /// The answer that is being worked out in parts; requests behind it wait.
  var work: (job: any Job, ticket: JobTicket)?
  /// The JSON-RPC batch under way; requests behind it wait.
  var batch: Batch?
  /// Bytes that its user's usage has of it: queued output, held input, and requests not executed yet.
  var counted = 0
  /// The feed that the last request named: most requests of a session name the same one.
  var lastFeed: Feed?
  /// Its name as that request wrote it, a JSON string.
  var lastName = ByteBuffer()
  var requests: UInt64 = 0
  var resets: UInt64 = 0

  init(handle: SessionHandle, peer: Peer, connectedAt: Instant) {
    self.handle = handle
    self.peer = peer
    self.connectedAt = connectedAt
  }

  deinit { input.held.removeAll() }

  var id: ConnectionID { ConnectionID(rawValue: Int(handle.index)) }

  /// The connection in a line of the log.
  var description: String {
    let name = clientName.isEmpty ? "" : " client \(clientName)"
    return "connection \(id.rawValue) (uid \(peer.uid) pid \(peer.pid)\(name))"
  }
}
