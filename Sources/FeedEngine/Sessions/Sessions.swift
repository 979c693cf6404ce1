import FeedJSON
import FeedModel

/// The open connections, by number and by handle.
///
///     let session = sessions.open(peer, now: now)
///     sessions[session.handle] === session   // until sessions.close(session)
///
/// Numbers of closed connections are reused; a handle never refers to another session than its own. Invariant: a free
/// number has no session, and the index of a session's handle is its number.
struct Sessions {
  private var places: [Session?] = []
  private var free: [Int] = []
  /// The generation of the session that was opened last.
  private var generation: UInt32 = 0
  /// Paused sessions whose requests can be taken again, in the order in which they are, and those that come after all of them.
  private var resumable: [SessionHandle] = []
  private var resumableLast: [SessionHandle] = []
  /// The session in whose name stored requests are executed if their client is gone.
  let nobody: Session
  /// What the connections of each user hold.
  var quotas = Quotas()
  /// The memory of the snapshots of all sessions.
  let snapshots = SnapshotMemory()
  /// The part of it that was charged to the users of the sessions.
  var chargedSnapshots = 0
  /// The connections whose long request is scanned in parts.
  var longTexts = LongTexts()

  init(now: Instant) { nobody = Session(handle: .none, peer: Peer(uid: 0, gid: 0, pid: 0), connectedAt: now) }

  var isEmpty: Bool { places.count == free.count }
  var count: Int { places.count - free.count }

  /// The open sessions in the order of their numbers.
  var all: some Sequence<Session> { places.lazy.compactMap { $0 } }

  subscript(id: ConnectionID) -> Session? { places.indices.contains(id.rawValue) ? places[id.rawValue] : nil }

  /// The session of a handle; nil if it is closed.
  subscript(handle: SessionHandle) -> Session? {
    guard handle.index < places.count, let session = places[Int(handle.index)],
      session.handle.generation == handle.generation
    else { return nil }
    return session
  }

  mutating func open(_ peer: Peer, now: Instant) -> Session {
    let index = free.popLast() ?? places.count
    generation &+= 1
    let handle = SessionHandle(index: UInt32(index), generation: generation)
    let session = Session(handle: handle, peer: peer, connectedAt: now, snapshots: SnapshotMemory(partOf: snapshots))
    if index == places.count { places.append(session) } else { places[index] = session }
    return session
  }

  /// Removes a session. Its number may be reused immediately.
  mutating func close(_ session: Session) {
    precondition(self[session.handle] === session, "a session is closed once")
    places[Int(session.handle.index)] = nil
    free.append(Int(session.handle.index))
  }

  // MARK: Paused sessions

  var hasResumable: Bool { !resumable.isEmpty || !resumableLast.isEmpty }

  /// - Parameter isLast: whether it comes after others that are added before ``takeResumable()``, because it had its share.
  mutating func addResumable(_ session: Session, isLast: Bool = false) {
    if isLast { resumableLast.append(session.handle) } else { resumable.append(session.handle) }
  }

  mutating func takeResumable() -> [SessionHandle] {
    defer { (resumable, resumableLast) = ([], []) }
    return resumableLast.isEmpty ? resumable : resumable + resumableLast
  }

  /// Traps in a debug build unless each session is at the index of its handle. O(connections).
  func checkInvariants() {
    #if CHECK_INVARIANTS
      for (index, session) in places.enumerated() {
        guard let session else { continue }
        precondition(session.handle.index == index && session.handle.generation <= generation)
      }
      precondition(free.allSatisfy { places[$0] == nil } && Set(free).count == free.count)
      precondition(count == places.count { $0 != nil })
    #endif
  }
}

/// The memory and the number of the connections of each user.
///
/// A connection is charged for the memory of unread output, undecoded input, unexecuted requests, watches and snapshots, until it
/// is closed. Its requests are then charged to its user until they are executed. Output that several connections of a user hold
/// counts once. Invariant: the sum of a user equals the charges of its sessions, of the blocks that they hold and of the requests
/// that closed ones left; a user without connections and charges has no entry.
struct Quotas {
  private struct Usage {
    var connections = 0
    var bytes = 0
  }

  private var users: [UInt32: Usage] = [:]
  /// The user and the memory of the requests that closed connections left, by the generation of their sessions.
  private var left: [UInt32: (uid: UInt32, bytes: Int)] = [:]
  /// Users over their quota.
  private var overLimit: [UInt32] = []
  /// The bytes that are charged to all users.
  private(set) var bytes = 0
  /// The number of admitted connections. Refused ones do not count.
  private(set) var connections = 0

  /// Returns the reason to refuse another connection of `peer`; nil if it is admitted.
  /// - Parameter reserve: the number of connections beyond the limits that this peer may use.
  func refusal(of peer: Peer, limits: Limits, reserve: Int) -> String? {
    if connections >= limits.maxConnections + reserve {
      return
        "Limit maxConnections (\(grouped(limits.maxConnections))) is reached; close a connection, or start feedd with a larger --max-connections."
    }
    if let usage = users[peer.uid], usage.connections >= limits.maxConnectionsPerUser + reserve {
      return
        "Limit maxConnectionsPerUser (\(grouped(limits.maxConnectionsPerUser))) is reached; close a connection of this user first."
    }
    return nil
  }

  mutating func admit(_ session: Session) {
    connections += 1
    users[session.peer.uid, default: Usage()].connections += 1
  }

  /// Removes an admitted connection and its charge, except that of its requests.
  mutating func release(_ session: Session) {
    precondition(connections > 0, "a connection is released once")
    connections -= 1
    guard var usage = users[session.peer.uid] else { return }
    usage.connections -= 1
    let more = session.line.bytes - session.charged + session.output.takeDues()
    usage.bytes += more
    bytes += more
    session.charged = 0
    users[session.peer.uid] = usage.connections > 0 || usage.bytes > 0 ? usage : nil
    if session.line.bytes > 0 { left[session.handle.generation] = (session.peer.uid, session.line.bytes) }
  }

  /// Adds to the charge for the requests that a closed connection left. Does nothing if it left none.
  mutating func charge(_ more: Int, leftBy handle: SessionHandle, limit: Int) {
    guard var requests = left[handle.generation], var usage = users[requests.uid] else { return }
    requests.bytes += more
    usage.bytes += more
    bytes += more
    left[handle.generation] = requests.bytes > 0 ? requests : nil
    users[requests.uid] = usage.connections > 0 || usage.bytes > 0 ? usage : nil
    if more > 0 { noteIfOverLimit(requests.uid, limit) }
  }

  /// Sets the charge of an admitted session, and takes what it owes for its output. O(1).
  mutating func charge(_ session: Session, _ charge: Int, limit: Int) {
    let more = charge - session.charged + session.output.takeDues()
    session.charged = charge
    self.charge(more, to: session.peer.uid, limit: limit)
  }

  /// Adds to the charge of a user. O(1).
  mutating func charge(_ more: Int, to uid: UInt32, limit: Int) {
    users[uid, default: Usage()].bytes += more
    bytes += more
    if more > 0 { noteIfOverLimit(uid, limit) }
  }

  private mutating func noteIfOverLimit(_ uid: UInt32, _ limit: Int) {
    if bytes(of: uid) > limit && !overLimit.contains(uid) { overLimit.append(uid) }
  }

  /// Users with a connection, or with requests that closed ones left.
  var connectedUsers: some Sequence<UInt32> { users.keys }

  func connections(of uid: UInt32) -> Int { users[uid]?.connections ?? 0 }

  /// The bytes of the requests that closed connections left. O(requests).
  var leftBytes: Int { left.values.reduce(0) { $0 + $1.bytes } }

  func bytes(of uid: UInt32) -> Int { users[uid]?.bytes ?? 0 }

  var hasOverLimit: Bool { !overLimit.isEmpty }

  /// Returns the users that exceeded their quota since the last call.
  mutating func takeOverLimit() -> [UInt32] {
    defer { overLimit.removeAll() }
    return overLimit
  }

  /// Traps in a debug build unless the sums equal those of the sessions. O(connections).
  func checkInvariants(_ sessions: some Sequence<Session>) {
    #if CHECK_INVARIANTS
      var expected: [UInt32: Usage] = [:]
      var open = 0
      var blocks: [UInt32: Set<ObjectIdentifier>] = [:]
      for session in sessions where !session.phase.isRefused {
        open += 1
        expected[session.peer.uid, default: Usage()].connections += 1
        expected[session.peer.uid, default: Usage()].bytes += session.charged
        for block in session.output.blocks
        where blocks[session.peer.uid, default: []].insert(ObjectIdentifier(block)).inserted {
          expected[session.peer.uid]?.bytes += block.charge
        }
      }
      for requests in left.values { expected[requests.uid, default: Usage()].bytes += requests.bytes }
      precondition(left.values.allSatisfy { $0.bytes > 0 })
      precondition(open == connections, "\(connections) connections are counted, \(open) are open")
      precondition(users.count == expected.count)
      precondition(bytes == expected.values.reduce(0) { $0 + $1.bytes })
      for (uid, usage) in expected {
        precondition(users[uid]?.connections == usage.connections && users[uid]?.bytes == usage.bytes)
      }
    #endif
  }
}
