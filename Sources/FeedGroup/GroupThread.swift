import FeedSystem

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
    case .imageFailed: machine.didFailToWriteImage(now: now)
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
