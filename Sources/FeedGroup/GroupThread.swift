import FeedJSON
import FeedModel
import FeedSystem
import Synchronization

/// The connection of a member. One that never was, or that a server ended for good, is replaced by a new one.
///
/// Used by one thread at a time: at the start by the engine's thread, later by that of the log.
final class NatsTransport: GroupTransport, @unchecked Sendable {
  private let settings: NatsSettings
  private let name: String
  private let inboxSubject: String
  private let inbox: GroupInbox
  private var connection: NatsConnection?
  private var isOver = false

  init(_ settings: NatsSettings, name: String, inboxSubject: String, _ inbox: GroupInbox) {
    self.settings = settings
    self.name = name
    self.inboxSubject = inboxSubject
    self.inbox = inbox
  }

  var isConnected: Bool { connection?.isConnected ?? false }
  var url: String { connection?.url ?? "" }
  /// Whether libnats does not try to connect.
  var needsConnection: Bool { connection == nil || isOver }

  /// Connects anew.
  func connect() throws(GroupError) {
    connection?.close()
    connection = nil
    isOver = false
    let inbox = inbox
    connection = try NatsConnection(settings, name: name, inbox: "\(inboxSubject).>") { inbox.post(.nats($0)) }
  }

  /// Records that libnats gave the connection up.
  func didClose() { isOver = true }

  func publish(_ subject: String, reply: String?, identity: String?, rollup: String?, _ bytes: [UInt8]) -> String? {
    guard let connection, !isOver else { return "not connected" }
    return bytes.withUnsafeBytes {
      connection.publish(subject, reply: reply, identity: identity, rollup: rollup, $0)
    }
  }

  func follow(_ subject: String) { _ = connection?.follow(subject) }

  func close() {
    connection?.close()
    connection = nil
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

  private let state = Guarded(Box(State()))
  private let wakeUp: WakeUp

  /// Not sendable, but guarded.
  private struct Box: @unchecked Sendable {
    var value: State
    init(_ value: State) { self.value = value }
  }

  init() throws(GroupError) {
    do throws(SystemError) { wakeUp = try WakeUp() } catch { throw .system("\(error)") }
  }

  /// Readable while there are events.
  var descriptor: Int32 { wakeUp.descriptor }
  var status: GroupStatus { state.withLock { $0.value.status } }
  var isCaughtUp: Bool { state.withLock { $0.value.isCaughtUp } }
  var announcement: OwnMessages.Announcement { state.withLock { $0.value.announcement } }

  /// Removes and returns the duties of this member; nil if they did not change.
  func takeDuties() -> GroupMachine.Duties? {
    state.withLock { state in
      defer { state.value.duties = nil }
      return state.value.duties
    }
  }

  func post(_ machine: GroupMachine, status: GroupStatus?) {
    let events = machine.takeEvents()
    let lines = machine.takeLines()
    if events.isEmpty && lines.isEmpty && status == nil && machine.announcement == announcement { return }
    var added: [(LogEvent, Upkeep.Purpose?)] = []
    for event in events {
      if case .mark(let mark) = event {
        added.append((event, machine.takePurpose(mark)))
      } else {
        added.append((event, nil))
      }
    }
    let (isCaughtUp, box, duties) = (machine.isCaughtUp, Events(added), status == nil ? nil : machine.duties)
    let announcement = machine.announcement
    var isNews = false
    state.withLock { state in
      isNews = state.value.announcement != announcement
      state.value.announcement = announcement
      if let duties, duties != state.value.lastDuties {
        (state.value.duties, state.value.lastDuties) = (duties, duties)
        isNews = true
      }
      state.value.events.append(contentsOf: box.events)
      state.value.lines.append(contentsOf: lines)
      if let status { state.value.status = status }
      state.value.isCaughtUp = isCaughtUp
    }
    if !events.isEmpty || !lines.isEmpty || isNews { wakeUp.signal() }
  }

  private struct Events: @unchecked Sendable {
    let events: [(LogEvent, Upkeep.Purpose?)]
    init(_ events: [(LogEvent, Upkeep.Purpose?)]) { self.events = events }
  }

  /// Removes and returns the next event.
  func next() -> (LogEvent, Upkeep.Purpose?)? {
    let found = state.withLock { state -> Events in
      guard state.value.next < state.value.events.count else {
        wakeUp.clear()
        return Events([])
      }
      let event = state.value.events[state.value.next]
      state.value.next += 1
      if state.value.next == state.value.events.count {
        state.value.events.removeAll(keepingCapacity: true)
        state.value.next = 0
        wakeUp.clear()
      }
      return Events([event])
    }
    return found.events.first
  }

  func takeLines() -> [(isWarning: Bool, text: String)] {
    state.withLock { state in
      if state.value.lines.isEmpty { return [] }
      defer { state.value.lines.removeAll() }
      return state.value.lines
    }
  }
}

/// The thread of a group's log: gives the machine what arrives and the time, and publishes images.
final class GroupThread: @unchecked Sendable {
  private static let statusPause: UInt64 = 200_000_000

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
  private var wasUnreachable = true
  private var isEnding = false

  init(
    _ machine: GroupMachine, _ transport: NatsTransport, _ inbox: GroupInbox, _ notices: GroupNotices, replicas: Int
  ) {
    self.machine = machine
    self.transport = transport
    self.inbox = inbox
    self.notices = notices
    self.replicas = replicas
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
      if transport.needsConnection, now >= connectsAt { connect() }
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
    case .nats(.connected): machine.didConnect(now: now)
    case .nats(.disconnected(let reason)): machine.didDisconnect(reason, now: now)
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
    case .imageFailed: machine.didFailImage(now: now)
    case .announce(let feeds, let number): machine.announce(feeds, number: number, now: now)
    case .sharedImage: machine.requestImage()
    case .freeze: machine.freeze()
    case .leave: machine.leave(now: now)
    case .rejoin: machine.rejoin(now: now)
    case .end: isEnding = true
    }
  }

  /// Tries to connect. libnats does so itself after a disconnection, but not before the first connection, and not after a server
  /// refused it.
  private func connect() {
    do throws(GroupError) {
      try transport.connect()
    } catch {
      machine.didDisconnect(error.cause, now: MonotonicClock.now)
    }
    connectsAt = MonotonicClock.now &+ 1_000_000_000
  }

  private func receive(_ message: NatsMessage, _ now: UInt64) {
    let subject = message.subject
    let imagePrefix = "\(machine.inbox).image."
    if subject.hasPrefix(imagePrefix) {
      let name = subject.dropFirst(imagePrefix.count)
      guard let outcome = upload?.receive(JSONObject(message.bytes), name, now: now) else { return }
      return endUpload(outcome, now)
    }
    var input = GroupInput(
      subject: subject, reply: message.reply, bytes: message.bytes, status: nil, lastConsumer: nil, stalled: nil,
      owner: message)
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
    return machine.status(now, wall: WallClock.now, server: transport.isConnected ? transport.url : "")
  }
}
