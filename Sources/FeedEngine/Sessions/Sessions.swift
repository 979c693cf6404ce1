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

  init(now: Instant) {
    nobody = Session(handle: .none, peer: Peer(uid: 0, gid: 0, pid: 0), connectedAt: now)
  }

  var isEmpty: Bool { places.count == free.count }
  var count: Int { places.count - free.count }

  /// The open sessions in the order of their numbers.
  var all: some Sequence<Session> { places.lazy.compactMap { $0 } }

  subscript(id: ConnectionID) -> Session? {
    places.indices.contains(id.rawValue) ? places[id.rawValue] : nil
  }

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
