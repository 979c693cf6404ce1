import FeedEngine
import FeedModel
import FeedSystem

/// The daemon's ``Link``: Unix sockets behind one event queue.
///
/// It also waits for the loop's other descriptors (signals, reports of other threads), so that the daemon blocks in one
/// place: ``wait(milliseconds:_:)``. It owns the descriptors of the connections and closes them.
///
/// Invariants: the registration of a descriptor in the event queue matches the slot of its connection, or the connection is
/// reported as gone. An event has the generation of a slot, so that one of a closed connection is no event of the next.
struct SocketLink: ~Copyable, Link {
  /// The other descriptors that woke the loop.
  struct Wakes: OptionSet {
    let rawValue: UInt64
    static let signals = Wakes(rawValue: 1 << 1)
    static let fileEvents = Wakes(rawValue: 1 << 2)
    static let sourceReports = Wakes(rawValue: 1 << 3)
    static let commitLog = Wakes(rawValue: 1 << 4)
    fileprivate static let listener = Wakes(rawValue: 1 << 0)
  }

  /// Tokens below this value are bits of ``Wakes``. Those of connections are larger; see ``SocketSlot/token(_:)``.
  private static let wakeTokens: UInt64 = 1 << 12
  /// The maximum number of reads of remaining input when a connection is closed.
  private static let lastReads = 8

  private let poll: EventPoll
  private var eager = EagerWait()
  private var slots: [SocketSlot] = []
  private(set) var count = 0
  /// The generation of the connection that was opened last.
  private var generation: UInt32 = 0
  private let writer = SliceWriter()
  private var acceptor: Acceptor
  private let log: Log
  /// The number of events of the last wait, and the number of those that were taken.
  private var eventCount = 0
  private var nextIndex = 0
  /// Whether the current event was already reported as writable. It may be readable too.
  private var toldWritable = false
  /// The descriptor that was reported as accepted and has no number yet; -1 for none.
  private var unassigned: Int32 = -1
  /// Connections that the event queue could not register, so that nothing would be heard of them.
  private var unregistered: [ConnectionID] = []
  /// The time of the last wait.
  private var now = Instant(nanoseconds: 0)

  init(_ listener: UnixListener, _ log: Log) throws(SystemError) {
    let poll = try EventPoll()
    try poll.add(listener.descriptor, .readable, token: Wakes.listener.rawValue)
    self.poll = poll
    self.log = log
    acceptor = Acceptor(listener, log)
  }

  deinit {
    assert(unassigned < 0, "an accepted connection was not given a number")
    for slot in slots where slot.isOpen { SocketIO.close(slot.descriptor) }
  }

  /// The numbers of all open connections. O(capacity).
  var connections: [ConnectionID] { slots.indices.filter { slots[$0].isOpen }.map(ConnectionID.init(rawValue:)) }

  @inline(__always)
  private func isOpen(_ id: ConnectionID) -> Bool { id.rawValue < slots.count && slots[id.rawValue].isOpen }

  /// The number of connections accepted so far.
  var accepted: Int { acceptor.accepted }

  /// Reports `wake` when a descriptor is readable. The descriptor must outlive the link or be closed by its owner,
  /// which also removes it.
  func add(_ descriptor: Int32, as wake: Wakes) throws(SystemError) {
    assert(wake.rawValue.nonzeroBitCount == 1 && wake.rawValue < Self.wakeTokens)
    try poll.add(descriptor, .readable, token: wake.rawValue)
  }

  /// Waits for events. Events of connections are then returned by ``nextEvent()``.
  /// - Parameter milliseconds: the timeout; -1 for none, 0 to return immediately.
  /// - Parameter mayLook: see ``EagerWait``.
  mutating func wait(milliseconds: Int32, mayLook: Bool = false, _ clock: ServerClock) throws(SystemError) -> Wakes {
    assert(nextIndex >= eventCount, "events of the wait before were not taken")
    eventCount = try eager.wait(poll, milliseconds: unregistered.isEmpty ? milliseconds : 0, mayLook: mayLook)
    nextIndex = 0
    now = clock.now
    if let moment = acceptor.deadline, moment <= now { resumeAccepting() }
    var wakes: Wakes = []
    for index in 0..<eventCount {
      let token = poll.event(at: index).token
      if token < Self.wakeTokens { wakes.insert(Wakes(rawValue: token)) }
    }
    if wakes.remove(.listener) != nil { acceptor.beginTurn() }
    return wakes
  }

  /// The time to call ``wait(milliseconds:_:)`` if nothing is ready; nil if there is none.
  var deadline: Instant? { acceptor.deadline }

  /// Accepts the connections that already wait, then accepts no more.
  mutating func endListening() { acceptor.endListening() }

  // MARK: Link

  mutating func nextEvent() -> LinkEvent? {
    assert(unassigned < 0, "an accepted connection was not given a number")
    if let peer = nextPeer() { return .accepted(peer) }
    if let id = unregistered.popLast() { return .gone(id) }
    while nextIndex < eventCount {
      let event = poll.event(at: nextIndex)
      let isNew = !toldWritable
      let id = ConnectionID(rawValue: Int(event.token & 0xFFFF_FFFF))
      if event.token >= Self.wakeTokens, isOpen(id), slots[id.rawValue].token(id) == event.token {
        let interest = slots[id.rawValue].interest
        if isNew && event.isWritable && interest.contains(.writable) {
          toldWritable = true
          return .writable(id)
        }
        if event.isReadable && interest.contains(.readable) {
          skipEvent()
          return .readable(id, hungUp: event.isHungUp)
        }
        if event.isHungUp && interest.isEmpty && !slots[id.rawValue].isDetached {
          detach(id)
          skipEvent()
          return .hungUp(id)
        }
      }
      skipEvent()
    }
    return nil
  }

  private mutating func skipEvent() {
    nextIndex += 1
    toldWritable = false
  }

  mutating func assign(_ id: ConnectionID) {
    assert(unassigned >= 0, "no connection was accepted")
    assert(!isOpen(id), "the number is in use")
    generation = max(1, generation &+ 1)
    let slot = SocketSlot(descriptor: unassigned, generation: generation)
    while slots.count <= id.rawValue { slots.append(SocketSlot(descriptor: -1, generation: 0)) }
    slots[id.rawValue] = slot
    count += 1
    unassigned = -1
    do throws(SystemError) {
      try poll.add(slot.descriptor, .readable, token: slot.token(id))
    } catch {
      slots[id.rawValue].isDetached = true
      slots[id.rawValue].interest = []
      giveUp(id, error)
    }
  }

  @inline(__always)
  mutating func read(_ id: ConnectionID, into space: UnsafeMutableRawBufferPointer) -> ReadOutcome {
    assert(!space.isEmpty)
    guard isOpen(id) else { return .failed }
    switch SocketIO.read(slots[id.rawValue].descriptor, space) {
    case .bytes(let count): return .bytes(count)
    case .wouldBlock: return .wouldBlock
    case .end:
      slots[id.rawValue].inputEnded = true
      return .end
    case .failed(let code):
      // The peer closed without reading all output. All its input was read before this error.
      log.write(.debug, "\(SystemError(code: code, operation: "read from connection \(id.rawValue)"))")
      slots[id.rawValue].inputEnded = true
      return .failed
    }
  }

  @inline(__always)
  mutating func write(_ id: ConnectionID, _ slices: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> WriteOutcome {
    assert(!slices.isEmpty)
    guard isOpen(id) else { return .failed }
    switch writer.write(slices, to: slots[id.rawValue].descriptor) {
    case .bytes(let count): return .bytes(count)
    case .wouldBlock, .end: return .wouldBlock
    case .failed(let code):
      log.write(.debug, "\(SystemError(code: code, operation: "write to connection \(id.rawValue)"))")
      return .failed
    }
  }

  /// Enlarges the buffer of a socket, once. By default it holds three frames of 60 kB, so daemon and client would wait for each
  /// other again and again.
  mutating func makeRoom(_ id: ConnectionID) {
    guard isOpen(id), !slots[id.rawValue].isWide else { return }
    slots[id.rawValue].isWide = true
    SocketIO.setSendBuffer(slots[id.rawValue].descriptor, Self.wideBuffer)
  }

  /// The bytes of a socket's buffer for long frames, of which the kernel allows twice as many for its own needs.
  private static let wideBuffer = 192 << 10

  mutating func watch(_ id: ConnectionID, reading: Bool, writing: Bool) {
    guard isOpen(id) else { return }
    let slot = slots[id.rawValue]
    var interest: Readiness = []
    if reading { interest.insert(.readable) }
    if writing { interest.insert(.writable) }
    guard interest != slot.interest else { return }
    slots[id.rawValue].interest = interest
    do throws(SystemError) {
      if !slot.isDetached {
        try poll.modify(slot.descriptor, interest, token: slot.token(id))
      } else if !interest.isEmpty {
        try poll.add(slot.descriptor, interest, token: slot.token(id))
        slots[id.rawValue].isDetached = false
      }
    } catch {
      giveUp(id, error)
    }
  }

  /// Reports in the next turn that a connection is gone.
  private mutating func giveUp(_ id: ConnectionID, _ error: SystemError) {
    log.write(.error, "connection \(id.rawValue) ends: \(error)")
    unregistered.append(id)
  }

  mutating func close(_ id: ConnectionID) {
    guard isOpen(id) else { return }
    let descriptor = slots[id.rawValue].descriptor
    if !slots[id.rawValue].inputEnded { Self.discardInput(descriptor) }
    // The end of the descriptor would end its events only if no other process had a copy. The slot may be used again.
    detach(id)
    unregistered.removeAll { $0 == id }
    slots[id.rawValue].descriptor = -1
    count -= 1
    SocketIO.close(descriptor)
    if acceptor.isPaused { resumeAccepting() }
  }

  // MARK: -

  /// Accepts the next waiting connection and keeps its descriptor for ``assign(_:)``.
  private mutating func nextPeer() -> Peer? {
    let wasPaused = acceptor.isPaused
    guard let connection = acceptor.next(now: now, openConnections: count) else {
      if acceptor.isPaused && !wasPaused { watchListener([]) }
      return nil
    }
    unassigned = connection.descriptor
    return connection.peer
  }

  private mutating func resumeAccepting() {
    acceptor.resume()
    watchListener(.readable)
  }

  private func watchListener(_ interest: Readiness) {
    guard let descriptor = acceptor.descriptor else { return }
    do throws(SystemError) {
      try poll.modify(descriptor, interest, token: Wakes.listener.rawValue)
    } catch {
      log.write(.error, "\(error)")
    }
  }

  /// Removes a connection from the event queue until it is watched again. The queue would report a hang-up in every
  /// wait, whatever events are requested.
  private mutating func detach(_ id: ConnectionID) {
    guard !slots[id.rawValue].isDetached else { return }
    do throws(SystemError) {
      try poll.remove(slots[id.rawValue].descriptor)
      slots[id.rawValue].isDetached = true
    } catch {
      log.write(.error, "\(error)")
    }
  }

  /// Reads and discards the remaining input. Closing a socket with unread input would reset the connection before the
  /// peer has read its last frames.
  private static func discardInput(_ descriptor: Int32) {
    withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 16) { space in
      for _ in 0..<lastReads {
        guard case .bytes = SocketIO.read(descriptor, space) else { return }
      }
    }
  }

  /// Checks the slots. O(connections).
  func checkInvariants() {
    let open = slots.filter(\.isOpen)
    assert(nextIndex <= eventCount && open.count == count)
    assert(open.allSatisfy { !$0.isDetached || $0.interest.isEmpty })
  }
}

/// The link's state of one connection.
private struct SocketSlot {
  /// The descriptor; -1 in a closed slot.
  var descriptor: Int32
  /// At least 1 in an open slot. The next connection of the number has another one.
  let generation: UInt32
  /// The requested events. Not registered while detached.
  var interest: Readiness = .readable
  /// Whether the slot is not in the event queue, because its peer hung up while nothing was watched.
  var isDetached = false
  /// Whether a read reached the end of the input.
  var inputEnded = false
  /// Whether the socket has room for long frames.
  var isWide = false

  var isOpen: Bool { descriptor >= 0 }

  /// The token of the connection in the event queue: its generation, and its number in the lower half.
  func token(_ id: ConnectionID) -> UInt64 { UInt64(generation) << 32 | UInt64(id.rawValue) }
}
