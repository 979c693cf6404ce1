import FeedEngine
import FeedModel
import FeedSystem

extension EventLoop {
  /// Runs until a signal asked for the end and the connections are drained.
  /// - Throws: when the event queue itself fails.
  mutating func run() throws(SystemError) {
    while !shutdown.isOver { try cycle() }
  }

  private mutating func cycle() throws(SystemError) {
    let wakes = try link.wait(milliseconds: timeout(), clock)
    now = clock.now
    cycles &+= 1
    if wakes.contains(.signals) { takeSignals() }
    if wakes.contains(.fileEvents) { sources.takeFileEvents(now: now) }
    if wakes.contains(.sourceReports) { sources.takeReports(engine, now: now) }
    turn.run(&link, now: now)
    reportHealth()
    attendTimers()
    storage?.workOnImage(executed: turn.executed, isBusy: turn.tookInput) { engine.catalog.makeImage() }
  }

  /// Milliseconds until something is due; -1 when nothing is.
  private func timeout() -> Int32 {
    var deadline: Instant?
    func consider(_ moment: Instant?) {
      if let moment { deadline = min(deadline ?? moment, moment) }
    }
    switch turn.next(after: now) {
    case .now: return 0
    case .at(let moment): consider(moment)
    case .whenReadable: break
    }
    consider(link.deadline)
    consider(service.deadline)
    consider(storage?.imagePause.map { now.adding(nanoseconds: $0) })
    consider(sources.deadline)
    consider(shutdown.deadline)
    return deadline.map { clock.milliseconds(until: $0) } ?? -1
  }

  private mutating func attendTimers() {
    arrangeSources()
    sources.attend(now: now)
    service.attend(now: now)
    if shutdown.isDue(openConnections: turn.isDrained ? 0 : max(link.count, 1), now: now) { endDraining() }
  }
}
