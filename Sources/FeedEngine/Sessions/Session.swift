import FeedJSON
import FeedModel

/// One connection as the engine sees it: who it is, what it watches, what it still has to be sent.
///
/// Guarded by the engine's thread.
final class Session {
  let id: ConnectionID
  let peer: Peer
  let connectedAt: Instant
  /// What the client calls itself in `hello`.
  var clientName = ""
  var watches: [Watch] = []
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
  /// The peer will send nothing more.
  var inputEnded = false
  /// The last write found the socket full.
  var isBlocked = false
  /// The answer that is being worked out in parts; requests behind it wait.
  var work: (job: any Job, ticket: JobTicket)?
  /// The batch that is being worked off; requests behind it wait.
  var batch: Batch?
  /// Whether input was refused and must be offered again once the session can take it.
  var isPaused = false
  /// Bytes of whole frames that this turn may execute; of a durable daemon only.
  var preparedBytes = 0
  /// Whether requests of this turn were prepared behind the one that is being executed.
  var hasPreparedMore = false
  /// Since when a half frame has been waiting for its rest; nil when there is none.
  var partialSince: Instant?
  /// Bytes of the half frame when `partialSince` was set.
  var partialBytes = 0
  /// Bytes that came and are kept until they make a whole frame, or until the session can take requests.
  var heldInput = 0
  /// Bytes of it that its user's usage has: what waits for it, and what it holds.
  var counted = 0
  /// The feed that the last request named: most requests of a session name the same one.
  var lastFeed: Feed?
  /// Its name as that request wrote it, a JSON string.
  var lastName = ByteBuffer()
  var requests: UInt64 = 0
  var resets: UInt64 = 0

  init(id: ConnectionID, peer: Peer, connectedAt: Instant) {
    self.id = id
    self.peer = peer
    self.connectedAt = connectedAt
  }

  /// The connection in a line of the log.
  var description: String {
    let name = clientName.isEmpty ? "" : " client \(clientName)"
    return "connection \(id.rawValue) (uid \(peer.uid) pid \(peer.pid)\(name))"
  }
}
