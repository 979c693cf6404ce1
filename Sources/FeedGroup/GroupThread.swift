import FeedJSON
import FeedModel
import FeedSystem

/// The thread of a group's log: gives the machine what arrives and the time, and publishes images.
final class GroupThread: @unchecked Sendable {
  private static let statusPause: UInt64 = 200_000_000
  /// Nanoseconds without a connection after which libnats is not relied on any more to restore it, and those for which a server that
  /// does not reach the log is kept if there are others.
  private static let connectionPatience = 20 * second

  /// Used by the thread alone.
  private let machine: GroupMachine
  private let transport: NatsTransport
  private let inbox: GroupInbox
  private let notices: GroupNotices
  private let replicas: Int
  private let wakeUp: WakeUp?
  private var upload: ImageUpload?
  private var statusAt: UInt64 = 0
  /// When a connection is tried again.
  private var connectsAt: UInt64 = 0
  /// When there was a connection last that serves, or an attempt to replace it.
  private var connectedAt = MonotonicClock.now
  private var wasUnreachable = true
  private var isEnding = false

  init(
    _ machine: GroupMachine, _ transport: NatsTransport, _ inbox: GroupInbox, _ notices: GroupNotices, replicas: Int
  ) {
    (self.machine, self.transport, self.inbox) = (machine, transport, inbox)
    (self.notices, self.replicas) = (notices, replicas)
    wakeUp = try? WakeUp()
  }

  func start() throws(SystemError) { try Thread("group") { self.run() } }

  /// Tells the group that this member ends, and ends the thread.
  func end(within nanoseconds: UInt64) {
    inbox.post(.leave)
    inbox.post(.end)
    guard let wakeUp else { return }
    _ = try? Readiness.readable.wait(
      on: wakeUp.descriptor, timeout: .nanoseconds(Int64(clamping: min(nanoseconds, 1_000_000_000))))
  }

  func abandon() { inbox.post(.end) }

  private func run() {
    var pause: UInt64 = 0
    while !isEnding {
      let items = inbox.take(within: pause)
      var now = MonotonicClock.now
      for item in items { handle(item, now) }
      now = MonotonicClock.now
      if machine.isConnected, machine.unreachableSince == nil || !transport.hasOthers { connectedAt = now }
      // A connection is tried while this thread waits, so only for the certificates, and for a server that is cut off from the others.
      let isStale =
        (transport.isSecure || machine.isConnected) && now &- connectedAt >= Self.connectionPatience
      if transport.needsConnection || isStale, now >= connectsAt { connect() }
      pause = machine.tick(now)
      if let upload, upload.isLate(now) { endUpload(.failed("the servers do not answer"), now) }
      notices.post(machine, status: status(now))
    }
    upload?.close()
    transport.close()
    wakeUp?.signal()
  }

  private func handle(_ item: GroupInbox.Item, _ now: UInt64) {
    switch item {
    case .nats(.message(let message)): receive(message, now)
    case .nats(.connected):
      transport.didConnect()
      connectedAt = now
      machine.didConnect(now: now)
    case .nats(.disconnected(let reason)):
      transport.didDisconnect()
      machine.didDisconnect(reason, now: now)
    case .nats(.closed(let reason)):
      transport.didClose()
      machine.didDisconnect(reason, now: now)
    case .append(let batch): machine.append(batch, now: now)
    case .digest(let mark, let value): machine.didDigest(mark, value, now: now)
    case .image(let image):
      machine.didWriteImage(image, now: now)
      guard image.isShared else { return }
      upload?.close()
      upload = ImageUpload(
        image, as: machine.nextImageName, machine.settings, epoch: machine.identity.epoch,
        replicas: machine.replicas ?? replicas,
        inbox: machine.inbox,
        id: (try? Random.hex128()) ?? "\(now)", transport, now: now)
    case .imageFailed: machine.didFailToWriteImage(now: now)
    case .announce(let feeds, let number): machine.announce(feeds, number: number, now: now)
    case .sharedImage: machine.requestImage()
    case .freeze: machine.freeze()
    case .leave: machine.leave(now: now)
    case .rejoin: machine.rejoin(now: now)
    case .end: isEnding = true
    }
  }

  /// Tries to connect. libnats does so itself after a disconnection, but not before the first connection, not after a server
  /// refused it, not while one that is of no use keeps its connection, and with the authority and the certificate that it read at first,
  /// which may have been replaced since.
  private func connect() {
    do throws(GroupError) {
      try transport.connect()
    } catch {
      // A connection that is of no use stays.
      if !machine.isConnected { machine.didDisconnect(error.cause, now: MonotonicClock.now) }
    }
    connectedAt = MonotonicClock.now
    connectsAt = connectedAt &+ second
  }

  private func receive(_ message: NatsMessage, _ now: UInt64) {
    let subject = message.subject
    let imagePrefix = "\(machine.inbox).image."
    if subject.hasPrefix(imagePrefix) {
      let name = subject.dropFirst(imagePrefix.count)
      guard let outcome = upload?.receive(JSONObject(message.bytes), name, now: now) else { return }
      return endUpload(outcome, now)
    }
    var input = GroupInput(subject: subject, reply: message.reply, bytes: message.bytes, owner: message)
    if message.bytes.isEmpty, let status = message.header("Status") {
      input.status = status
      input.lastConsumer = message.header("Nats-Last-Consumer").flatMap { UInt64($0) }
      input.stalled = message.header("Nats-Consumer-Stalled")
    }
    machine.receive(input, now: now)
  }

  private func endUpload(_ outcome: ImageUpload.Outcome, _ now: UInt64) {
    guard let upload else { return }
    switch outcome {
    case .underWay: return
    case .failed(let reason):
      machine.note("cannot publish an image: \(reason); nothing is lost, it is tried again", isWarning: true)
      machine.didFailImage(now: now)
    case .complete(let published, let first): machine.didPublishImage(published, first: first, now: now)
    }
    upload.close()
    self.upload = nil
  }

  /// The status, if it may have changed; nil if it was told recently.
  private func status(_ now: UInt64) -> GroupStatus? {
    let isUnreachable = machine.unreachableSince != nil
    guard isUnreachable != wasUnreachable || now &- statusAt >= Self.statusPause else { return nil }
    (wasUnreachable, statusAt) = (isUnreachable, now)
    return machine.status(now, wall: WallClock.now, server: transport.url)
  }
}

/// What the engine's thread and the threads of libnats hand to the thread of a group's log.
final class GroupInbox: Sendable {
  enum Item: Sendable {
    case nats(NatsEvent)
    case append(LogBatch)
    case digest(mark: UInt64, String)
    case image(WrittenImage)
    case imageFailed
    case announce([String: UInt32], number: Int)
    case sharedImage
    /// Nothing more is read, because the daemon ends.
    case freeze
    case leave, rejoin, end
  }

  private let items = Guarded<[Item]>([])
  private let wakeUp: WakeUp

  init() throws(GroupError) { do throws(SystemError) { wakeUp = try WakeUp() } catch { throw .system("\(error)") } }

  func post(_ item: Item) {
    let isFirst = items.withLock { items in
      items.append(item)
      return items.count == 1
    }
    if isFirst { wakeUp.signal() }
  }

  /// Removes and returns all items, in order. Waits for one, at most for `nanoseconds`.
  func take(within nanoseconds: UInt64) -> [Item] {
    let items = takeAll()
    if !items.isEmpty || nanoseconds == 0 { return items }
    _ = try? Readiness.readable.wait(on: wakeUp.descriptor, timeout: .nanoseconds(Int64(clamping: nanoseconds)))
    return takeAll()
  }

  private func takeAll() -> [Item] {
    items.withLock { items in
      if items.isEmpty { return [] }
      wakeUp.clear()
      defer { items.removeAll(keepingCapacity: true) }
      return items
    }
  }
}

/// What the thread of a group's log hands to the engine's thread.
final class GroupNotices: Sendable {
  private struct State {
    var events: [(LogEvent, Upkeep.Purpose?)] = []
    var next = 0
    var lines: [(isWarning: Bool, text: String)] = []
    var status = GroupStatus()
    var isCaughtUp = false
    var announcement = OwnMessages.Announcement(number: 0)
    /// Nil if they did not change since they were taken.
    var duties: GroupMachine.Duties?
    var lastDuties: GroupMachine.Duties?
  }

  private let state = Guarded(State())
  private let wakeUp: WakeUp

  init() throws(GroupError) { do throws(SystemError) { wakeUp = try WakeUp() } catch { throw .system("\(error)") } }

  /// Readable while there are events.
  var descriptor: Int32 { wakeUp.descriptor }
  var status: GroupStatus { state.withLock { $0.status } }
  var isCaughtUp: Bool { state.withLock { $0.isCaughtUp } }
  var announcement: OwnMessages.Announcement { state.withLock { $0.announcement } }

  /// Removes and returns the duties of this member; nil if they did not change.
  func takeDuties() -> GroupMachine.Duties? {
    state.withLock { state in
      defer { state.duties = nil }
      return state.duties
    }
  }

  func post(_ machine: GroupMachine, status: GroupStatus?) {
    let events = machine.takeEvents()
    let lines = machine.takeLines()
    if events.isEmpty && lines.isEmpty && status == nil && machine.announcement == announcement { return }
    let added = events.map { event -> (LogEvent, Upkeep.Purpose?) in
      if case .mark(let mark) = event { (event, machine.takePurpose(mark)) } else { (event, nil) }
    }
    let (isCaughtUp, duties) = (machine.isCaughtUp, status == nil ? nil : machine.duties)
    let announcement = machine.announcement
    var isNews = false
    state.withLock { state in
      isNews = state.announcement != announcement
      state.announcement = announcement
      if let duties, duties != state.lastDuties {
        (state.duties, state.lastDuties) = (duties, duties)
        isNews = true
      }
      state.events.append(contentsOf: added)
      state.lines.append(contentsOf: lines)
      if let status {
        // An announced configuration waits no longer for a log that is away.
        isNews = isNews || (status.unreachable == nil) != (state.status.unreachable == nil)
        state.status = status
      }
      state.isCaughtUp = isCaughtUp
    }
    if !events.isEmpty || !lines.isEmpty || isNews { wakeUp.signal() }
  }

  func next() -> (LogEvent, Upkeep.Purpose?)? {
    state.withLock { state in
      guard state.next < state.events.count else {
        wakeUp.clear()
        return nil
      }
      let event = state.events[state.next]
      state.next += 1
      if state.next == state.events.count {
        state.events.removeAll(keepingCapacity: true)
        state.next = 0
        wakeUp.clear()
      }
      return event
    }
  }

  func takeLines() -> [(isWarning: Bool, text: String)] {
    state.withLock { state in
      if state.lines.isEmpty { return [] }
      defer { state.lines.removeAll() }
      return state.lines
    }
  }
}
