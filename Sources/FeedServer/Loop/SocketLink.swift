import FeedEngine
import FeedModel
import FeedSystem

/// The daemon's ``Link``: Unix sockets behind one event queue.
///
/// It also waits for the loop's other descriptors (signals, reports of other threads), so that the daemon sleeps in one
/// place: ``wait(milliseconds:_:)``. It owns the descriptors of the connections and closes them.
///
/// Invariants: one slot an open descriptor; what the event queue reports of a descriptor is what its slot says.
struct SocketLink: ~Copyable, Link {
  /// Descriptors of others that woke the loop.
  struct Wakes: OptionSet {
    let rawValue: UInt64
    static let signals = Wakes(rawValue: 1 << 1)
    static let fileEvents = Wakes(rawValue: 1 << 2)
    static let sourceReports = Wakes(rawValue: 1 << 3)
    static let commitLog = Wakes(rawValue: 1 << 4)
    fileprivate static let listener = Wakes(rawValue: 1 << 0)
  }

  /// Tokens below this are bits of ``Wakes``; an address of a slot is never so small.
  private static let wakeTokens: UInt64 = 1 << 12
  /// Reads of what a peer still sends while its connection is closed.
  private static let lastReads = 8

  private let poll: EventPoll
  private var slots = SlotTable()
  private let writer = SliceWriter()
  private var acceptor: Acceptor
  private let log: Log
  /// Events of the last wait, and how many of them were taken.
  private var eventCount = 0
  private var nextIndex = 0
  /// Whether the next event was already reported as writable; it may be readable as well.
  private var toldWritable = false
  /// The connection that was reported as accepted and has no number yet; -1 for none.
  private var unassigned: Int32 = -1
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

  /// Open connections.
  var count: Int { slots.count }

  /// The numbers of all open connections. O(capacity).
  var connections: [ConnectionID] { slots.open.map(\.pointee.id) }

  /// Connections accepted so far.
  var accepted: Int { acceptor.accepted }

  /// Reports `wake` when a descriptor of somebody else is readable. The descriptor must outlive the link or be closed by its
  /// owner, which removes it.
  func add(_ descriptor: Int32, as wake: Wakes) throws(SystemError) {
    assert(wake.rawValue.nonzeroBitCount == 1 && wake.rawValue < Self.wakeTokens)
    try poll.add(descriptor, .readable, token: wake.rawValue)
  }

  /// Waits for events. Events of connections are then taken with ``nextEvent()``.
  /// - Parameter milliseconds: the longest wait; -1 for ever, 0 only looks.
  mutating func wait(milliseconds: Int32, _ clock: ServerClock) throws(SystemError) -> Wakes {
    assert(nextIndex >= eventCount, "events of the wait before were not taken")
    slots.recycle()
    eventCount = try poll.wait(milliseconds: milliseconds)
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

  /// When the link wants to be waited on again although nothing is ready; nil for never.
  var deadline: Instant? { acceptor.deadline }

  /// Takes the connections that wait already in this turn, then accepts no more.
  mutating func endListening() { acceptor.endListening() }

  // MARK: Link

  mutating func nextEvent() -> LinkEvent? {
    assert(unassigned < 0, "an accepted connection was not given a number")
    if let peer = nextPeer() { return .accepted(peer) }
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
      log.write(.error, "\(error)")
      slot.pointee.isDetached = true
      slot.pointee.interest = []
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
      // A peer that closed without reading everything. What it sent was read before this is reported.
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
      log.write(.error, "\(error)")
    }
  }

  mutating func close(_ id: ConnectionID) {
    guard let slot = slots[id] else { return }
    let descriptor = slot.pointee.descriptor
    if !slot.pointee.inputEnded { Self.discardInput(descriptor) }
    slots.close(slot)
    SocketIO.close(descriptor)
    if acceptor.isPaused { resumeAccepting() }
  }

  // MARK: -

  /// Takes the next connection that waits and keeps its descriptor for ``assign(_:)``.
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

  /// Takes a connection out of the event queue until it is watched again: the queue reports a hang-up in every wait, whatever
  /// it is asked to report.
  private func detach(_ slot: Slot) {
    guard !slot.pointee.isDetached else { return }
    do throws(SystemError) {
      try poll.remove(slot.pointee.descriptor)
      slot.pointee.isDetached = true
    } catch {
      log.write(.error, "\(error)")
    }
  }

  /// Reads what came and nobody wants: closing over unread bytes would reset the connection before the peer has read its last
  /// frames to the end.
  private static func discardInput(_ descriptor: Int32) {
    withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 16) { space in
      for _ in 0..<lastReads {
        guard case .bytes = SocketIO.read(descriptor, space) else { return }
      }
    }
  }

  /// Checks that slots and numbers agree. O(connections).
  func checkInvariants() {
    slots.checkInvariants()
    assert(nextIndex <= eventCount)
    assert(slots.open.allSatisfy { !$0.pointee.isDetached || $0.pointee.interest.isEmpty })
  }
}

/// What the link keeps of one connection.
private struct SocketSlot {
  /// -1 in a slot that is closed.
  var descriptor: Int32
  var id: ConnectionID
  /// What was asked to be reported. Not in force while detached.
  var interest: EventInterest = .readable
  /// Whether the slot is out of the event queue, because its peer hung up while nothing was watched.
  var isDetached = false
  /// Whether a read has met the end.
  var inputEnded = false
}

/// The address of a slot, which the event queue keeps.
private typealias Slot = UnsafeMutablePointer<SocketSlot>

extension UnsafeMutablePointer<SocketSlot> {
  fileprivate var token: UInt64 { UInt64(UInt(bitPattern: self)) }
  fileprivate var isOpen: Bool { pointee.descriptor >= 0 }
}

/// Slots in raw memory that does not move, found by the connection's number.
///
/// A closed slot is reused only after the next wait: events of the present one may still name it.
private struct SlotTable: ~Copyable {
  /// Index: the raw value of the number.
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

  /// The open slot of a number; nil when there is none. O(1).
  @inline(__always)
  subscript(id: ConnectionID) -> Slot? { id.rawValue < byNumber.count ? byNumber[id.rawValue] : nil }

  /// Makes the slots closed so far available again.
  mutating func recycle() {
    guard !closed.isEmpty else { return }
    free += closed
    closed.removeAll(keepingCapacity: true)
  }

  /// Every open slot, by number. O(capacity).
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
