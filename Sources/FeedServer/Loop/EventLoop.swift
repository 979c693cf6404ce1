import FeedEngine
import FeedGroup
import FeedJSON
import FeedModel
import FeedStorage
import FeedSystem

/// The daemon's main thread: it waits for sockets, timers and signals, and runs the turn.
///
/// A cycle waits, handles signals and reports of other threads, runs the turn, then attends to timers and images. Only
/// the wait for events blocks, and short writes to the log, which the disk may delay.
package struct EventLoop: ~Copyable {
  package private(set) var turn: Turn
  private var link: SocketLink
  /// The state directory, locked while the loop exists; nil without a commit log.
  private let state: DurableState?
  /// The group that the daemon is a member of; nil for none.
  private let member: GroupMember?
  private let log: Log
  private let signals: Signals
  private var health = LogHealth()
  private(set) var shutdown: Shutdown
  private var service: ServiceManager
  private var sources = ManagedSources()
  private var metrics: MetricsFile?
  private var configuration: LiveConfiguration
  private var freed: FreedMemory
  private var time: CycleTime

  /// - Parameters:
  ///   - commitLog: the log of `state` or `member`, or one that needs no directory.
  ///   - makeRunner: makes what runs long work in slices, on a thread with a name; nil if requests are executed at once.
  init(
    engine: Engine, commitLog: any CommitLog, state: DurableState?, member: GroupMember? = nil, clock: ServerClock,
    listener: UnixListener,
    signals: consuming Signals, notify: Notify, log: Log, openFiles: OpenFiles? = nil, drainTimeout: Duration,
    configurationFile: ConfigurationFile?, socket: SocketSettings = SocketSettings(), metricsPath: String? = nil,
    makeRunner: (String) -> (any SliceRunner)? = { SlicedWork($0) }
  ) throws(SystemError) {
    let link = try SocketLink(listener, log)
    for descriptor in signals.descriptors { try link.add(descriptor, as: .signals) }
    if let descriptor = commitLog.descriptor { try link.add(descriptor, as: .commitLog) }
    if let descriptor = member?.descriptor { try link.add(descriptor, as: .commitLog) }
    time = CycleTime(clock)
    turn = Turn(
      engine, log: commitLog, slices: makeRunner("feedd-slices"), queries: makeRunner("feedd-queries"),
      deltas: makeRunner("feedd-deltas"), now: time.now)
    self.link = link
    self.signals = signals
    self.state = state
    self.member = member
    self.log = log
    configuration = LiveConfiguration(
      configurationFile, socket, openFiles ?? OpenFiles(engine.limits), member?.log, log)
    shutdown = Shutdown(drainTimeout: drainTimeout)
    freed = FreedMemory(now: time.now)
    service = ServiceManager(notify, log, now: time.now)
    if let metricsPath { metrics = MetricsFile(metricsPath, log, now: time.now) }
  }

  /// Creates a loop without a state directory, a configuration and a service manager. Simulations run it on system calls that
  /// fail, with a clock that they advance.
  package init(
    _ engine: Engine, commitLog: any CommitLog, listener: UnixListener, log: Log,
    makeRunner: (String) -> (any SliceRunner)?
  ) throws(SystemError) {
    try self.init(
      engine: engine, commitLog: commitLog, state: nil, clock: ServerClock(after: 0), listener: listener,
      signals: Signals(), notify: Notify(Environment([:]), pid: ProcessIdentity.pid), log: log,
      drainTimeout: .seconds(60), configurationFile: nil, makeRunner: makeRunner)
  }

  var engine: Engine { turn.engine }

  /// The commit log; nil if nothing is stored.
  private var storage: FileLog? { state?.log }

  // MARK: Cycles

  /// Tells the service manager that the daemon listens.
  /// - Parameter news: why the feeds of the configuration are not in effect; nil if they are.
  mutating func reportReady(socket path: String, _ news: String?) {
    let status = "listening at \(path)\(news.map { "; \($0)" } ?? "")".inLine
    service.tell(.ready, .status(status), .mainPID(ProcessIdentity.pid))
  }

  /// Runs until a signal requests the end and the connections are drained.
  /// - Throws: if the event queue itself fails.
  mutating func run() throws(SystemError) {
    while !isOver { try cycle() }
  }

  /// Whether the connections were drained after a request to end.
  package var isOver: Bool { shutdown.isOver }

  /// Waits for events, and does what they and the time require.
  package mutating func cycle() throws(SystemError) {
    let wakes = try link.wait(milliseconds: timeout(), mayLook: turn.hadInput, time.clock)
    time.beginCycle()
    if wakes.contains(.signals) { handleSignals() }
    reloadIfAwaited()
    if wakes.contains(.fileEvents) { sources.readFileEvents(now: time.now) }
    if wakes.contains(.sourceReports) {
      sources.applyReports(to: shutdown.deadline == nil ? engine : nil, now: time.now)
    }
    turn.pausesBetweenBatches = storage?.wantsImage ?? false || configuration.awaitedReload != nil
    turn.run(&link, now: time.now)
    reportHealth()
    attendTimers()
    workOnImage()
    workForGroup()
  }

  /// Works on digests and images for the group, unless feeds are half changed, and does what this member does for all.
  private mutating func workForGroup() {
    guard let member else { return }
    if !turn.isExclusive { member.work(isBusy: turn.hadInput) }
    if let (proposed, rank) = member.log.takeDuties() {
      engine.proposeRows(of: proposed)
      // Others act only if the first one is away.
      engine.delayEvictions(by: min(UInt64(rank) * 250_000_000, 2_000_000_000))
    }
    if !turn.isWithinBatch { tell(configuration.applyAnnounced(engine, now: time.now)) }
  }

  /// Works on an image of the state. None begins while a batch is executed in part.
  private func workOnImage() {
    guard let storage, !turn.isExclusive else { return }
    let catalog = engine.catalog
    storage.workOnImage(
      executed: turn.executed, steps: catalog.stepsTaken, stateBytes: catalog.accounts.total.bytes,
      isBusy: turn.hadInput
    ) { catalog.makeImage() }
  }

  /// Milliseconds until the next deadline; -1 if there is none.
  private func timeout() -> Int32 {
    var deadline: Instant?
    func consider(_ moment: Instant?) {
      if let moment { deadline = min(deadline ?? moment, moment) }
    }
    switch turn.next(after: time.now) {
    case .now: return 0
    case .at(let moment): consider(moment)
    case .whenReadable: break
    }
    consider(link.deadline)
    consider(service.deadline)
    consider(storage?.imagePause.map { time.now.adding(nanoseconds: $0) })
    consider(member?.pause.map { time.now.adding(nanoseconds: $0) })
    consider(sources.deadline)
    consider(configuration.deadline)
    consider(shutdown.deadline)
    consider(metrics?.deadline)
    consider(freed.deadline)
    return deadline.map { time.clock.milliseconds(until: $0) } ?? -1
  }

  package func checkInvariants() { link.checkInvariants() }

  private mutating func attendTimers() {
    sources.attend(now: time.now)
    arrangeSources()
    service.attend(now: time.now)
    metrics?.write(turn.engine, now: time.now)
    freed.attend(engine.accountedBytes, now: time.now)
    if shutdown.isDue(openConnections: turn.isDrained ? 0 : max(link.count, 1), now: time.now) { endDraining() }
  }

  // MARK: Signals and the end

  private mutating func handleSignals() {
    do throws(SystemError) {
      while let request = try signals.next() { handle(request) }
    } catch {
      log.write(.error, "\(error)")
    }
  }

  private mutating func handle(_ request: Signals.Request) {
    switch request {
    case .reload(let cause): configuration.awaitedReload = cause
    case .end(let cause): end(cause)
    }
  }

  /// Begins the end, or ends at once if it has begun.
  package mutating func end(_ cause: String) {
    guard shutdown.request(now: time.now) else { return log.write(.notice, "\(cause) again: ending at once") }
    // Accepts only the connections that already wait, queues `bye` for all, and continues until all output is written.
    link.endListening()
    let clients = counted(link.count, "connection")
    service.tell(.stopping, .status("ending; notifying \(clients)"))
    log.write(.notice, "\(cause): ending; notifying \(clients)")
    turn.drain(reason: "shutdown", message: "feedd is ending; connect again when it is back.")
  }

  /// Ends after all output was written, or after the drain timeout.
  private mutating func endDraining() {
    let left = link.count
    turn.closeAll(&link)
    shutdown.finish()
    closeStorage()
    if left == 0 {
      log.write(.notice, "ended")
    } else {
      log.write(.warning, "ended; \(counted(left, "connection")) did not read the last frame in time")
    }
    log.write(.debug, "\(counted(time.cycles, "turn")) of the loop, \(counted(link.accepted, "connection")) accepted")
  }

  // MARK: Storage

  /// Reports when storing starts to fail and when it works again.
  private mutating func reportHealth() {
    if let reason = turn.lossReason, !isOver {
      shutdown.mustRejoin = member != nil
      member?.didLose(reason)
      let (news, message) =
        shutdown.mustRejoin
        ? (
          "the daemon stops serving and begins again from an image of the group",
          "feedd loads the state of its group again; connect again in a few seconds."
        )
        : ("the daemon ends", "feedd cannot tell which changes are stored and ends; connect again when it is back.")
      log.write(.error, "\(reason); \(news)")
      turn.abandon(&link, reason: "shutdown", message: message)
      return endDraining()
    }
    guard let report = health.note(failedBatches: turn.failedBatches, turn.failureReason) else { return }
    log.write(report.isFailure ? .error : .notice, report.line)
    service.tell(.status(report.status))
  }

  /// Writes an image, so that the next start has nothing to replay, and closes the log. Another signal to end cancels
  /// the image.
  private mutating func closeStorage() {
    closeMembership()
    guard let storage else { return }
    var isToldToEnd = shutdown.isHurried
    // A batch still in flight waits for a disk that does not respond. The image would wait too.
    if let executed = turn.executed, !turn.awaitsLog, !isToldToEnd {
      let engine = engine
      storage.writeImage(executed: executed, { engine.catalog.makeImage() }) {
        if continueEnding() { isToldToEnd = true }
        return !isToldToEnd
      }
    }
    let patience: UInt64 = isToldToEnd ? 1 : 10
    service.tell(.extendTimeout(.seconds(Int64(patience) + 5)))
    storage.close(within: patience * 1_000_000_000)
  }

  /// Asks the service manager for more time during an end that takes long. Returns whether another signal to end has arrived.
  private mutating func continueEnding() -> Bool {
    time.read()
    service.askForTime(now: time.now)
    var isTold = false
    while let request = try? signals.next() { if case .end = request { isTold = true } }
    return isTold
  }

  /// Writes an image of this host, so that the next start has little to execute, and leaves the group. If the servers have forgotten
  /// the history, that image is its newest copy; of any other state that cannot be continued there is none.
  private mutating func closeMembership() {
    guard let member else { return }
    let isForgotten = turn.lossReason?.contains(GroupLog.oblivion) ?? false
    if (!shutdown.mustRejoin || isForgotten) && !shutdown.isHurried {
      var isToldToEnd = false
      let deadline = time.now.adding(seconds: 60)
      member.writeLastImage({ turn.run(&link, now: time.now) }) {
        if continueEnding() { isToldToEnd = true }
        return !isToldToEnd && time.now < deadline && (turn.lossReason == nil || isForgotten)
      }
    }
    member.close(within: 1_000_000_000)
  }

  // MARK: Configuration

  /// Applies the configuration of the file at the start, and reads the databases that it names; nil for no file.
  /// - Returns: why its feeds are not in effect; nil if they are.
  mutating func begin(_ configuration: Configuration?) throws(ConfigurationFileError) -> String? {
    let news: String?
    do throws(ConfigurationFileError) {
      news = try self.configuration.begin(configuration, engine, now: time.now)
    } catch {
      // Otherwise the group would count this host as a member, whose feeds other hosts may not define differently.
      member?.close(within: 1_000_000_000)
      throw error
    }
    arrangeSources()
    return news
  }

  /// Reads the configuration again if that was asked for. While a batch is executed in part this waits: a configuration is tried in a
  /// commit of its own, and that of a long request may be open.
  private mutating func reloadIfAwaited() {
    guard let cause = configuration.awaitedReload, !turn.isWithinBatch || shutdown.deadline != nil else { return }
    configuration.awaitedReload = nil
    if shutdown.deadline == nil { return reload(cause) }
    log.write(.notice, "\(cause): nothing is read again, because the daemon ends")
  }

  /// Reads the configuration and all databases again, and reports this to the service manager.
  private mutating func reload(_ cause: String) {
    service.tell(.reloading)
    defer { service.tell(.ready) }
    sources.startOver(now: time.now)
    tell(configuration.reload(cause, engine, now: time.now))
  }

  /// Does the rest of what reading the configuration again asks for.
  private mutating func tell(_ report: ConfigurationReport?) {
    guard let report else { return }
    arrangeSources()
    service.tell(.status("listening; configuration read again: \(report.text)".inLine))
  }

  /// Updates the set of databases to that of the current managed feeds, if these may have changed.
  private mutating func arrangeSources() {
    sources.arrange(engine, now: time.now) { descriptor, wake throws(SystemError) in
      try link.add(descriptor, as: wake)
    }
  }
}
