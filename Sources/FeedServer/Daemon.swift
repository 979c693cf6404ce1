import FeedEngine
import FeedJSON
import FeedModel
import FeedStorage
import FeedSystem

/// The program `feedd`, from its command line to its exit code.
public enum Daemon {
  /// Runs until the daemon ends.
  /// - Returns: 0 if it ended on request, 1 if it failed, 2 if the command line is wrong.
  public static func main(_ arguments: [String], environment: Environment) -> Int32 {
    StandardStreams.occupyClosed()
    do throws(UsageError) {
      let terminal = Terminal(descriptor: StandardStreams.output, environment: environment)
      switch try DaemonOptions.parse(arguments, environment: environment, width: terminal.columns) {
      case .print(let text): return print(text)
      case .check(let options): return check(options, environment)
      case .run(let options): return run(options, environment)
      case .checkConfiguration(let options): return checkConfiguration(options)
      case .reload(let pid, let signals): return reload(pid, signals: signals)
      }
    } catch {
      try? write(["feedd: \(error)", "Try 'feedd --help'."], to: StandardStreams.error)
      return UsageError.exitStatus
    }
  }

  private static func print(_ text: String) -> Int32 {
    do throws(SystemError) {
      try StandardStreams.writeAll(text, to: StandardStreams.output)
      return 0
    } catch {
      try? write(["feedd: \(error)"], to: StandardStreams.error)
      return 1
    }
  }

  /// Writes lines in which characters that control a terminal are replaced: lines quote arguments and files.
  static func write(_ lines: [String], to descriptor: Int32) throws(SystemError) {
    try StandardStreams.writeAll(lines.map { $0.inLine + "\n" }.joined(), to: descriptor)
  }

  private static func run(_ options: DaemonOptions, _ environment: Environment) -> Int32 {
    let isJournal = JournalStream.isConnected(to: StandardStreams.error, environment)
    let log = Log(
      threshold: options.logLevel, style: isJournal ? .journal : .timestamps,
      journal: isJournal ? try? JournalSocket() : nil)
    let notify = Notify(environment, pid: ProcessIdentity.pid)
    do {
      var loop = try start(options, environment, notify, log)
      try loop.run()
      guard loop.shutdown.mustRejoin else { return 0 }
      throw RejoinNeeded(reason: "the daemon starts again")
    } catch let error as RejoinNeeded {
      log.write(.warning, "\(error)")
      try? notify.send(.status("\(error)".inLine))
      RejoinNeeded.restart(environment)
      return 1
    } catch {
      log.write(.error, "\(error)")
      // The service manager shows this text with the failed unit.
      try? notify.send(.status("\(error)".inLine))
      return 1
    }
  }

  /// Starts the daemon, up to the point at which it can serve clients.
  private static func start(
    _ options: DaemonOptions, _ environment: Environment, _ notify: Notify, _ log: Log
  ) throws -> EventLoop {
    ProcessIdentity.returnLargeBlocks()
    StandardStreams.ignoreBrokenPipes()
    SignalQueue.ignoreFileSizeLimit()
    SignalQueue.endOnCrash()
    let signals = try Signals()
    let file = ConfigurationFile(options)
    let configuration = try file?.read(forgiving: log)
    var options = options
    if let file, let configuration {
      options.limits = file.limits(configuration)
      options.socket = file.socket(configuration)
    }
    let listener = try listen(options, log)
    let openFiles = OpenFiles(options.limits)
    let connections = openFiles.connections(managedFeeds: configuration?.managedFeedCount ?? 0)
    options.limits.maxConnections = connections.allowed
    if let shortage = connections.shortage { log.write(.warning, shortage) }
    let guardian = try guardStart(signals, listener, options, environment, notify, log)
    defer { guardian.stop() }
    let member = try GroupStart.join(options, configuration, environment, log)
    let state = member == nil ? try openState(options, environment) : nil
    let storage = state?.log
    let engine = try makeEngine(options, storage, member, log)
    var newestMoment = try storage.map { try recover(engine, from: $0, options.limits, notify, log) }?.newestMoment ?? 0
    if let member { newestMoment = try GroupStart.recover(engine, member, options.limits, notify, log) }
    if let warning = ServerClock.warning(after: newestMoment) { log.write(.warning, warning) }
    if member == nil { engine.catalog.forgetManagedHistory() }
    var loop = try EventLoop(
      engine: engine, commitLog: member?.log ?? storage ?? NoLog(), state: state, member: member,
      clock: ServerClock(after: newestMoment), listener: listener, signals: signals, notify: notify,
      log: log, openFiles: openFiles, drainTimeout: options.drainTimeout, configurationFile: file,
      socket: options.socket,
      metricsPath: options.metricsPath)
    let news = try loop.begin(configuration)
    guardian.stop()
    SocketPath.leaveMark(ofListenerAt: listener.path, environment)
    loop.reportReady(socket: listener.path, news)
    log.write(
      .notice,
      "feedd \(ProgramVersion.text) listens at \(listener.path)\(listener.isInherited ? " (handed over)" : ""), "
        + "\(member.map { "group \($0.log.settings.name)" } ?? "durability \(options.durability.rawValue) (\(place(storage)))"), pid \(ProcessIdentity.pid)"
    )
    return loop
  }

  /// Lets a signal end the start, which may take long. Removes the files that a regular end would remove.
  private static func guardStart(
    _ signals: borrowing Signals, _ listener: UnixListener, _ options: DaemonOptions, _ environment: Environment,
    _ notify: Notify, _ log: Log
  ) throws -> StartGuard {
    let socket = listener.isInherited ? nil : listener.path
    let state = options.durability == .memory ? nil : options.stateDirectory ?? StatePath.standard(environment)
    let (threshold, style) = (log.threshold, log.style)
    return try signals.guardStart { cause in
      // A log belongs to one thread.
      Log(threshold: threshold, style: style).write(.notice, "\(cause): ended during the start")
      try? notify.send(.stopping, .status("ended during the start"))
      if let socket { UnixListener.remove(socket) }
      if let state { StateDirectory.removeLockFile(state) }
      ProcessIdentity.exitAtOnce(0)
    }
  }

  private static func place(_ storage: FileLog?) -> String {
    storage.map { "in \($0.directory)" } ?? "nothing is kept when it ends"
  }

  /// Returns the socket that the service manager passed, or opens one.
  private static func listen(_ options: DaemonOptions, _ log: Log) throws -> UnixListener {
    if let directory = options.stateDirectory, options.durability == .memory {
      log.write(.notice, "--state \(directory) is not used: with durability memory nothing is kept")
    }
    let passed = ListenFDs.take().sockets
    guard let first = passed.first else {
      return try UnixListener.bind(
        path: options.socketPath, mode: options.socket.mode ?? SocketSettings.defaultMode, group: options.socket.group)
    }
    guard passed.count == 1 else {
      throw ListenError.inherited("\(passed.count) were handed over and one is wanted; keep one ListenStream=")
    }
    let listener = try UnixListener(inherited: first.descriptor)
    if options.namesSocket && options.socketPath != listener.path {
      log.write(
        .warning, "--socket \(options.socketPath) is not used: the service manager handed over \(listener.path)")
    }
    if options.socket != SocketSettings() {
      log.write(
        .warning,
        "socketMode and socketGroup are not used: the service manager handed over the socket; set SocketMode= and "
          + "SocketGroup= of its unit")
    }
    return listener
  }

  static func makeEngine(
    _ options: DaemonOptions, _ storage: FileLog?, _ member: GroupMember?, _ log: Log
  ) throws -> Engine {
    let identity = ServerIdentity(
      version: ProgramVersion.text, epoch: try member?.log.epoch ?? storage?.epoch ?? Random.hex128(),
      pid: ProcessIdentity.pid, uid: ProcessIdentity.uid, durability: options.durability.rawValue,
      state: (storage?.directory ?? member?.imageDirectory).map { FilePath.absolute($0) })
    let engine = Engine(
      limits: options.limits, identity: identity, seed: try Random.number(),
      isDurable: storage != nil || member != nil,
      now: ServerClock(after: 0).now)
    engine.status.threshold = options.logLevel
    engine.status.useThreshold = { log.threshold = $0 }
    if let member {
      engine.catalog.keepsManagedRows = true
      engine.catalog.commit.rules = member.log.rules
      engine.useFormerFeeds(member.log.formerFeeds)
      engine.status.sharedLog = { member.shared }
      engine.status.groupAction = { member.perform($0) }
    }
    engine.status.process = {
      let sizes = storage?.sizes ?? StoredSizes()
      return ProcessGauges(
        memoryBytes: ProcessIdentity.memoryBytes, imageBytes: sizes.imageBytes, segmentBytes: sizes.segmentBytes,
        imagedAt: Int(sizes.imagedAt / 1_000_000_000))
    }
    engine.status.log = { log.write($0.level, $0.message, fields(of: $0.subject)) }
    return engine
  }

  /// The fields of a line in the journal. `_PID` and `_SYSTEMD_UNIT` are those of the daemon.
  private static func fields(of subject: EngineEvent.Subject) -> [JournalSocket.Field] {
    var fields: [JournalSocket.Field] = []
    if let uid = subject.uid { fields.append(.init("FEEDD_CLIENT_UID", "\(uid)")) }
    if let pid = subject.pid { fields.append(.init("FEEDD_CLIENT_PID", "\(pid)")) }
    if let feed = subject.feed { fields.append(.init("FEEDD_FEED", feed)) }
    return fields
  }
}
