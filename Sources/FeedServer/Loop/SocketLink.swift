import FeedEngine
import FeedModel
import FeedSystem

/// The daemon's ``Link``: Unix sockets behind one event queue.
///
/// It also waits for the loop's other descriptors (signals, reports of other threads), so that the daemon blocks in one
/// place: ``wait(milliseconds:_:)``. It owns the descriptors of the connections and closes them.
///
/// Invariants: there is one slot for each open descriptor; the registration of a descriptor in the event queue matches
/// its slot, or the connection is reported as gone.
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

  /// Tokens below this value are bits of ``Wakes``. No address of a slot is that small.
  private static let wakeTokens: UInt64 = 1 << 12
  /// The maximum number of reads of remaining input when a connection is closed.
  private static let lastReads = 8

  private let poll: EventPoll
  private var eager = EagerWait()
  private var slots = SlotTable()
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
    for slot in slots.open { SocketIO.close(slot.pointee.descriptor) }
  }

  /// The number of open connections.
  var count: Int { slots.count }

  /// The numbers of all open connections. O(capacity).
  var connections: [ConnectionID] { slots.open.map(\.pointee.id) }

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
    slots.recycle()
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
      if event.token >= Self.wakeTokens, let slot = Slot(bitPattern: UInt(event.token)), slot.isOpen {
        let interest = slot.pointee.interest
        if isNew && event.isWritable && interest.contains(.writable) {
          toldWritable = true
          return .writable(slot.pointee.id)
        }
        if event.isReadable && interest.contains(.readable) {
          skipEvent()
          return .readable(slot.pointee.id, hungUp: event.isHungUp)
        }
        if event.isHungUp && interest.isEmpty && !slot.pointee.isDetached {
          detach(slot)
          skipEvent()
          return .hungUp(slot.pointee.id)
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
    assert(slots[id] == nil, "the number is in use")
    let slot = slots.open(unassigned, id)
    unassigned = -1
    do throws(SystemError) {
      try poll.add(slot.pointee.descriptor, .readable, token: slot.token)
    } catch {
      slot.pointee.isDetached = true
      slot.pointee.interest = []
      giveUp(id, error)
    }
  }

  @inline(__always)
  mutating func read(_ id: ConnectionID, into space: UnsafeMutableRawBufferPointer) -> ReadOutcome {
    assert(!space.isEmpty)
    guard let slot = slots[id] else { return .failed }
    switch SocketIO.read(slot.pointee.descriptor, space) {
    case .bytes(let count): return .bytes(count)
    case .wouldBlock: return .wouldBlock
    case .end:
      slot.pointee.inputEnded = true
      return .end
    case .failed(let code):
      // The peer closed without reading all output. All its input was read before this error.
      log.write(.debug, "\(SystemError(code: code, operation: "read from connection \(id.rawValue)"))")
      slot.pointee.inputEnded = true
      return .failed
    }
  }

  @inline(__always)
  mutating func write(_ id: ConnectionID, _ slices: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> WriteOutcome {
    assert(!slices.isEmpty)
    guard let slot = slots[id] else { return .failed }
    switch writer.write(slices, to: slot.pointee.descriptor) {
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
    guard let slot = slots[id], !slot.pointee.isWide else { return }
    slot.pointee.isWide = true
    SocketIO.setSendBuffer(slot.pointee.descriptor, Self.wideBuffer)
  }

  /// The bytes of a socket's buffer for long frames, of which the kernel allows twice as many for its own needs.
  private static let wideBuffer = 192 << 10

  mutating func watch(_ id: ConnectionID, reading: Bool, writing: Bool) {
    guard let slot = slots[id] else { return }
    var interest: EventInterest = []
    if reading { interest.insert(.readable) }
    if writing { interest.insert(.writable) }
    guard interest != slot.pointee.interest else { return }
    slot.pointee.interest = interest
    do throws(SystemError) {
      if !slot.pointee.isDetached {
        try poll.modify(slot.pointee.descriptor, interest, token: slot.token)
      } else if !interest.isEmpty {
        try poll.add(slot.pointee.descriptor, interest, token: slot.token)
        slot.pointee.isDetached = false
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
    guard let slot = slots[id] else { return }
    let descriptor = slot.pointee.descriptor
    if !slot.pointee.inputEnded { Self.discardInput(descriptor) }
    // The end of the descriptor would end its events only if no other process had a copy. The slot may be used again.
    detach(slot)
    unregistered.removeAll { $0 == id }
    slots.close(slot)
    SocketIO.close(descriptor)
    if acceptor.isPaused { resumeAccepting() }
  }

  // MARK: -

  /// Accepts the next waiting connection and keeps its descriptor for ``assign(_:)``.
  private mutating func nextPeer() -> Peer? {
    let wasPaused = acceptor.isPaused
    guard let connection = acceptor.next(now: now, openConnections: slots.count) else {
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

  private func watchListener(_ interest: EventInterest) {
    guard let descriptor = acceptor.descriptor else { return }
    do throws(SystemError) {
      try poll.modify(descriptor, interest, token: Wakes.listener.rawValue)
    } catch {
      log.write(.error, "\(error)")
    }
  }

  /// Removes a connection from the event queue until it is watched again. The queue would report a hang-up in every
  /// wait, whatever events are requested.
  private func detach(_ slot: Slot) {
    guard !slot.pointee.isDetached else { return }
    do throws(SystemError) {
      try poll.remove(slot.pointee.descriptor)
      slot.pointee.isDetached = true
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

  /// Checks that slots and numbers match. O(connections).
  func checkInvariants() {
    slots.checkInvariants()
    assert(nextIndex <= eventCount)
    assert(slots.open.allSatisfy { !$0.pointee.isDetached || $0.pointee.interest.isEmpty })
  }
}

/// The link's state of one connection.
private struct SocketSlot {
  /// The descriptor; -1 in a closed slot.
  var descriptor: Int32
  var id: ConnectionID
  /// The requested events. Not registered while detached.
  var interest: EventInterest = .readable
  /// Whether the slot is not in the event queue, because its peer hung up while nothing was watched.
  var isDetached = false
  /// Whether a read reached the end of the input.
  var inputEnded = false
  /// Whether the socket has room for long frames.
  var isWide = false
}

/// The address of a slot, used as the token in the event queue.
private typealias Slot = UnsafeMutablePointer<SocketSlot>

extension UnsafeMutablePointer<SocketSlot> {
  fileprivate var token: UInt64 { UInt64(UInt(bitPattern: self)) }
  fileprivate var isOpen: Bool { pointee.descriptor >= 0 }
}

/// Slots at stable addresses, indexed by the number of the connection.
///
/// A closed slot is reused only after the next wait, because events of the current one may still refer to it.
private struct SlotTable: ~Copyable {
  /// The slots, indexed by the raw value of the number.
  private var byNumber: UnsafeMutableBufferPointer<Slot?>
  private var closed: [Slot] = []
  private var free: [Slot] = []
  private(set) var count = 0

  init() {
    byNumber = .allocate(capacity: 64)
    byNumber.initialize(repeating: nil)
  }

  deinit {
    for slot in open + closed + free { slot.deallocate() }
    byNumber.deallocate()
  }

  /// O(1), amortized.
  mutating func open(_ descriptor: Int32, _ id: ConnectionID) -> Slot {
    let slot = free.popLast() ?? .allocate(capacity: 1)
    slot.initialize(to: SocketSlot(descriptor: descriptor, id: id))
    if id.rawValue >= byNumber.count { grow(beyond: id.rawValue) }
    byNumber[id.rawValue] = slot
    count += 1
    return slot
  }

  /// Marks a slot closed. The caller closes the descriptor.
  mutating func close(_ slot: Slot) {
    slot.pointee.descriptor = -1
    byNumber[slot.pointee.id.rawValue] = nil
    closed.append(slot)
    count -= 1
  }

  /// The open slot of a number; nil if there is none. O(1).
  @inline(__always)
  subscript(id: ConnectionID) -> Slot? { id.rawValue < byNumber.count ? byNumber[id.rawValue] : nil }

  /// Makes closed slots available for reuse.
  mutating func recycle() {
    guard !closed.isEmpty else { return }
    free += closed
    closed.removeAll(keepingCapacity: true)
  }

  /// All open slots, by number. O(capacity).
  var open: [Slot] { byNumber.compactMap { $0 } }

  private mutating func grow(beyond number: Int) {
    let larger = UnsafeMutableBufferPointer<Slot?>.allocate(capacity: max(number + 1, byNumber.count * 2))
    larger.initialize(repeating: nil)
    for index in byNumber.indices { larger[index] = byNumber[index] }
    byNumber.deallocate()
    byNumber = larger
  }

  func checkInvariants() {
    assert(open.count == count)
    assert(byNumber.indices.allSatisfy { byNumber[$0].map { $0.isOpen } ?? true })
    assert(byNumber.indices.allSatisfy { index in byNumber[index].map { $0.pointee.id.rawValue == index } ?? true })
    assert((closed + free).allSatisfy { !$0.isOpen })
  }
}
