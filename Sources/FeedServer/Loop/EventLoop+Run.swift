import FeedEngine
import FeedModel
import FeedSystem

extension EventLoop {
  /// Turns until a signal asked for the end and the connections are drained.
  /// - Throws: when the event queue itself fails.
  mutating func run() throws(SystemError) {
    while !shutdown.isOver { try turn() }
  }

  private mutating func turn() throws(SystemError) {
    let count = try poll.wait(milliseconds: timeout())
    now = clock.now
    turns &+= 1
    for index in 0..<count { handle(poll.event(at: index)) }
    resumeParked()
    let isBusy = !inputs.isEmpty
    executeTurn()
    engine.endTurn(now: now)
    writeAll()
    closeFinished()
    connections.recycle()
    attendTimers()
    workOnStore(isBusy: isBusy)
  }

  private mutating func handle(_ event: Event) {
    switch event.token {
    case Self.listenerToken: acceptConnections()
    case Self.signalToken: takeSignals()
    case Self.fileEventToken: sources.takeFileEvents(now: now)
    case Self.sourceReportToken: sources.takeReports(engine, now: now)
    default:
      guard let slot = ConnectionSlot(bitPattern: UInt(event.token)), slot.isOpen else { return }
      if event.isWritable && slot.pointee.flags.contains(.isBlocked) {
        slot.pointee.flags.remove(.isBlocked)
        writable.append(slot)
      }
      if event.isReadable { read(slot, isHungUp: event.isHungUp) }
    }
  }

  /// Milliseconds until something is due; -1 when nothing is.
  private func timeout() -> Int32 {
    if engine.hasWork || mayResume || store?.hasWork ?? false { return 0 }
    var deadline: Instant?
    func consider(_ moment: Instant?) {
      if let moment { deadline = min(deadline ?? moment, moment) }
    }
    consider(engine.nextDeadline)
    consider(acceptanceResumesAt)
    consider(service.deadline)
    consider(nextStoreMoment)
    consider(sources.deadline)
    consider(shutdown.deadline)
    return deadline.map { clock.milliseconds(until: $0) } ?? -1
  }

  private mutating func attendTimers() {
    if let moment = acceptanceResumesAt, moment <= now { resumeAcceptance() }
    arrangeSources()
    sources.attend(now: now)
    service.attend(now: now)
    if shutdown.isDue(openConnections: connections.count, now: now) { endDraining() }
  }
}
