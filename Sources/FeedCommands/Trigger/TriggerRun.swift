import FeedClient
import FeedJSON
import FeedSystem

/// One run of `trigger`: follows a feed, and runs the command for its changes.
final class TriggerRun {
  /// The numbers of unfinished runs, and of changes in a batch, at which no more is read. The daemon then coalesces.
  private static let (maxItems, maxChanges) = (1_000, 10_000)
  private static let signals = [SignalQueue.terminate, SignalQueue.interrupt, SignalQueue.hangUp]

  private let invocation: Invocation
  private let settings: TriggerSettings
  private let state: TriggerState
  private let follower: Follower
  private var tracker: RowTracker
  private var queue: TriggerQueue
  private let arrivals: SignalQueue
  /// The running commands by the number of their items.
  private var programs: [Int: (program: ChildProgram, item: TriggerItem)] = [:]
  /// The position of the last notification.
  private var position: FeedPosition?
  /// The changes of the snapshot that is being received, and whether it is that of a reset.
  private var snapshot: (changes: [TriggerChange], reset: RowNews.Reset?) = ([], nil)
  private var batch = TriggerBatch()
  private var remarks: WatchRemarks
  /// Why no more commands are started; the failure that ends the program.
  private var ending: Failure?
  private let deadline: UInt64?

  init(_ invocation: Invocation, _ settings: TriggerSettings) throws(Failure) {
    (self.invocation, self.settings) = (invocation, settings)
    let console = invocation.console
    // A command that is not there is refused now, and not when the first change comes.
    try Failure.ofSystem(try ChildProgram.check(settings.command[0]))
    ChildProgram.awaitsEnds()
    // The file may be locked for a while. Until then signals end the process.
    state = try TriggerState(settings.state, feed: settings.feed, filter: settings.condition) { console.say($0) }
    let signals = Self.signals.filter { !SignalQueue.isIgnored($0) } + [SignalQueue.childEnd]
    arrivals = try Failure.ofSystem(try SignalQueue(signals))
    queue = TriggerQueue(jobs: settings.jobs)
    for item in state.items { queue.add(item) }
    var options = WatchOptions(feed: settings.feed)
    options.client = "feedclient/trigger"
    options.since = state.position
    (options.waits, options.reconnects) = (true, true)
    options.ids = true
    // The rows of the first snapshot are remembered, to tell later what is new.
    options.spanning = false
    position = state.position
    remarks = WatchRemarks(settings.feed, invocation)
    follower = Follower(path: invocation.socketPath, options: options, keepsMirror: false)
    let saved = state.position.flatMap { [state] position in state.rows.map { (position, $0) } }
    tracker = RowTracker(settings.feed, keepsRows: true, RowPrinter(filter: settings.filter.filter), saved: saved)
    deadline = invocation.timeout.map { MonotonicClock.now &+ $0.clampedNanoseconds }
  }

  private var console: Console { invocation.console }

  /// Runs until a signal, the timeout or a failure. Commands that run then are awaited.
  func run() throws(Failure) -> ExitStatus {
    while true {
      try takeSignals()
      let now = MonotonicClock.now
      if let deadline, now >= deadline, ending == nil { ending = invocation.failure(.timedOut) }
      if let ending, programs.isEmpty { throw ending }
      if ending == nil {
        if hasRoomForChanges { try follow() }
        if settings.isBatch, queue.hasRoom { try closeBatch() }
        try shortenFile()
        try startCommands(now)
      }
      if ending == nil || !programs.isEmpty { try wait() }
    }
  }

  /// Replaces the file if it is much longer than its content. A running command would keep only the former file locked.
  private func shortenFile() throws(Failure) {
    guard state.isLong, programs.isEmpty, batch.deltas.isEmpty, let position = state.position else { return }
    try state.replace(position, rows: tracker.saved, items: queue.unfinished)
  }

  private var hasRoomForChanges: Bool { queue.count < Self.maxItems && batch.count < Self.maxChanges }

  private func wait() throws(Failure) {
    var list = WaitList()
    list.add(arrivals.descriptor, .readable)
    var due: [UInt64?] = []
    if ending == nil {
      due = [deadline, mayStart ? queue.deadline : nil]
      if hasRoomForChanges {
        due.append(follower.deadline)
        if let descriptor = follower.descriptor { list.add(descriptor, follower.interest) }
      }
    }
    _ = try Failure.ofSystem(try list.wait(until: due.compactMap { $0 }.min()))
  }

  /// Handles signals and the ends of commands. The first signal lets the running commands end; the second is sent to them.
  private func takeSignals() throws(Failure) {
    while let arrival = try Failure.ofSystem(try arrivals.next()) {
      if arrival.signal == SignalQueue.childEnd { continue }
      if ending != nil {
        for entry in programs.values { try? ProcessIdentity.send(arrival.signal, to: entry.program.pid) }
        continue
      }
      ending = .interrupted(arrival.signal)
      if !programs.isEmpty {
        console.say("waiting for the end of the running command; a second signal is sent to it")
      }
    }
    for (number, entry) in programs {
      guard let end = entry.program.end() else { continue }
      programs[number] = nil
      try take(end, of: entry.item)
    }
  }
}

extension TriggerRun {
  /// Whether a command may be started. A file that has become too long is replaced first, when no command runs.
  private var mayStart: Bool { programs.isEmpty || !state.isTooLong }

  private func startCommands(_ now: UInt64) throws(Failure) {
    while mayStart, let item = queue.next(now: now) {
      do throws(SystemError) {
        let program = try ChildProgram(
          settings.command, input: item.input + [UInt8(ascii: "\n")],
          variables: [
            ("FEEDD_FEED", settings.feed), ("FEEDD_REVISION", "\(item.revision)"), ("FEEDD_KIND", item.kind),
          ], inherited: state.lockDescriptor)
        programs[item.number] = (program, item)
      } catch {
        guard error.isShortage else {
          if ending == nil { ending = .system(error) }
          return
        }
        fail(item, "\(error)")
      }
    }
  }

  private func take(_ end: ChildProgram.End, of item: TriggerItem) throws(Failure) {
    if end == .exit(0) {
      queue.done(item.number)
      return try state.done(item.number)
    }
    switch end {
    case .exit(let status): fail(item, "'\(settings.command[0])' exited with \(status)")
    case .signal(let signal): fail(item, "'\(settings.command[0])' was ended by signal \(signal)")
    }
  }

  /// Plans to run the command again, or gives up.
  private func fail(_ item: TriggerItem, _ reason: String) {
    let (count, pause) = queue.failed(item.number, now: MonotonicClock.now)
    // The signal that ends this program may have been meant for the command too.
    if case .interrupted? = ending { return }
    let what = "\(reason) for revision \(item.revision) (\(item.kind))"
    guard count > settings.retries else {
      return console.say("\(what); retry \(count) of \(settings.retries) in \(pause / 1_000_000) ms")
    }
    console.say("\(what); gave up after \(counted(count, "run")); the next feedclient trigger begins with it")
    if ending == nil { ending = .told(.commandFailed) }
  }
}

extension TriggerRun {
  private func follow() throws(Failure) {
    do throws(ClientError) {
      try follower.advance { event throws(ClientError) in
        do throws(Failure) {
          try take(event)
        } catch {
          if case .client(let error) = error { throw error }
          ending = error
        }
        return ending == nil && hasRoomForChanges ? .proceed : .pause
      }
    } catch {
      if ending == nil { ending = invocation.failure(error) }
    }
  }

  private func take(_ event: Follower.Event) throws(Failure) {
    switch event {
    case .waiting(let reason): remarks.complain(reason)
    case .started(let start):
      snapshot.changes = []
      let identities = IdentityPaths(of: settings.feed, invocation)
      (tracker.printer.identities, batch.identities) = (identities, identities)
      tracker.started(start, asked: position, hasSnapshot: follower.asksForSnapshot)
      try remarks.started(start, settings.section)
    case .response: return
    case .notification(let notification, _):
      let news = try invocation.attempt { () throws(ClientError) in try reading(tracker.take(notification)) }
      position = follower.position
      if let news { try take(news, notification) } else if notification.kind == .bookmark { try moveOn() }
    }
  }

  /// Notes a later position at which nothing has changed.
  private func moveOn() throws(Failure) {
    guard let position, position != state.position, batch.deltas.isEmpty else { return }
    try state.append([], [], position)
  }

  private func take(_ news: RowNews, _ notification: Notification) throws(Failure) {
    var changes: [TriggerChange] = []
    for row in news.rows {
      if let change = TriggerChange(row, initial: settings.initial && state.position == nil) { changes.append(change) }
    }
    guard let delta = news.delta else {
      if let begun = news.reset { snapshot = ([], begun) }
      snapshot.changes += changes
      return notification.params.member("last")?.bool == true ? try takeSnapshot() : ()
    }
    guard let position else { return }
    if settings.isBatch { return batch.add(changes, delta, position) }
    let items = changes.compactMap { TriggerInput(settings, position).item(of: $0, number: state.takeNumber) }
    try state.append(items, [delta.text], position)
    for item in items { queue.add(item) }
  }

  /// Takes over the changes of a complete snapshot.
  private func takeSnapshot() throws(Failure) {
    // The changes before it are a batch of their own: their places belong to other revisions.
    try closeBatch()
    defer { snapshot = ([], nil) }
    guard let position else { return }
    if let reset = snapshot.reset { tell(reset) }
    let input = TriggerInput(settings, position, isReset: snapshot.reset != nil)
    let items =
      settings.isBatch
      ? [input.item(of: snapshot.changes, from: state.position?.revision, number: state.takeNumber)].compactMap { $0 }
      : snapshot.changes.compactMap { input.item(of: $0, number: state.takeNumber) }
    if programs.isEmpty {
      try state.replace(position, rows: tracker.saved, items: queue.unfinished + items)
    } else {
      try state.restart(position, rows: tracker.saved, items: items)
    }
    for item in items { queue.add(item) }
  }

  private func tell(_ reset: RowNews.Reset) {
    let counts = ["added", "updated", "deleted"].map { word in
      "\(snapshot.changes.count { $0.wanted(Set(ChangeFilter.words))?.kind.rawValue == word }) \(word)"
    }
    console.say(
      "\(settings.feed): \(reset.reason); "
        + (reset.isCompared
          ? "compared with the rows from before: \(counts.joined(separator: ", "))"
          : "the rows from before are not known, so all are handed over as added"))
  }

  /// Makes the changes since the last batch an item, and saves the position.
  private func closeBatch() throws(Failure) {
    guard let (start, end) = batch.span else { return }
    let item = TriggerInput(settings, end).item(of: batch.changes, from: start, number: state.takeNumber)
    try state.append(item.map { [$0] } ?? [], batch.deltas, end)
    batch = TriggerBatch(batch.identities)
    if let item { queue.add(item) }
  }
}
