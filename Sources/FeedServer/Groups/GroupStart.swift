import FeedEngine
import FeedGroup
import FeedJSON
import FeedModel
import FeedStorage
import FeedSystem
import Glibc

/// A daemon as a member of a group: its locked directory, the group's log, and the images of this host.
final class GroupMember {
  let directory: StateDirectory
  let log: GroupLog
  /// The directory with the image, inside the state directory.
  let imageDirectory: String
  /// Nil until the state was restored.
  private var images: StateImages?
  /// What the newest image of this host covers.
  private var covered: UInt64 = 0
  /// The image that is being written.
  private var writing: GroupLog.PendingImage?
  private let report: (LogLevel, String) -> Void

  init(
    _ directory: consuming StateDirectory, _ log: GroupLog, imageDirectory: String,
    _ report: @escaping (LogLevel, String) -> Void
  ) {
    self.directory = directory
    self.log = log
    self.imageDirectory = imageDirectory
    self.report = report
    log.report = { isWarning, text in report(isWarning ? .warning : .notice, text) }
  }

  /// Readable while there is work besides batches; nil before the start.
  var descriptor: Int32? { images?.descriptor }

  /// Nanoseconds until `work` should be called without an event; nil if only an event can create work.
  var pause: UInt64? {
    guard let own = images?.pause else { return log.pause }
    return min(own, log.pause ?? own)
  }

  func startImages(_ limits: Limits) throws(StorageError) {
    images = try StateImages(imageDirectory, epoch: log.epoch, software: ProgramVersion.text, limits)
  }

  /// Works on a digest or an image for a few milliseconds.
  func work(isBusy: Bool) {
    log.work()
    guard let images else { return }
    if writing == nil, let image = log.takeImage() {
      writing = image
      images.begin(image.content, position: image.position, note: image.note)
    }
    guard let writing, let outcome = images.work(isBusy: isBusy) else { return }
    self.writing = nil
    switch outcome {
    case .written(let bytes):
      covered = writing.position
      log.didWrite(
        WrittenImage(
          path: images.path, bytes: bytes, position: writing.position, from: writing.from, isShared: writing.isShared,
          note: writing.note))
    case .failed(let error):
      report(.error, "\(error) (nothing is lost: the group's log has everything)")
      log.didFailToWriteImage()
    }
  }

  /// Removes the image of this host if the state that it was made of is wrong, and its name if another member has that too. An image
  /// that may have what the servers lost is kept beside the next one.
  /// - Parameter reason: why the log cannot be followed further.
  func didLose(_ reason: String) {
    if reason.contains(GroupLog.divergence) {
      if reason.contains(GroupLog.replacement), let former = try? GroupStart.keepFormer(in: imageDirectory, log.epoch) {
        report(.warning, "the last image of this host is kept as \(former) for: feedclient restore")
      }
      unlink(StateFile.path(in: imageDirectory))
    }
    if reason.contains(GroupLog.copiedName) { unlink(Self.namePath(directory.path)) }
  }

  /// The file with the random name of the member.
  static func namePath(_ directory: String) -> String { "\(directory)/member" }

  /// Writes a last image of this host, of the place up to which everything was read.
  /// - Parameters:
  ///   - execute: executes what the log has handed over.
  ///   - mayGoOn: called several times a second; if it returns false, the image is abandoned.
  func writeLastImage(_ execute: () -> Void, whileTrue mayGoOn: () -> Bool) {
    guard let images else { return }
    if let writing {
      guard images.finish(whileTrue: mayGoOn) else { return }
      covered = writing.position
      self.writing = nil
    }
    _ = log.takeImage()
    log.freeze()
    while mayGoOn() {
      execute()
      log.work()
      if let image = log.takeImage() {
        if image.position == covered { return }
        images.begin(image.content, position: image.position, note: image.note)
        _ = images.finish(whileTrue: mayGoOn)
        return
      }
      _ = try? Readiness.readable.wait(on: log.descriptor ?? -1, timeout: .milliseconds(50))
    }
  }

  /// Ends the membership until the next start: tells the group, and ends the thread of the log.
  func close(within nanoseconds: UInt64) { log.close(within: nanoseconds) }
}

enum GroupStart {
  static let defaultServer = "nats://127.0.0.1:4222"

  /// The settings of the command line and the configuration combined; nil if the daemon joins no group.
  static func settings(
    _ options: DaemonOptions, _ facts: GroupFacts?, member: String
  ) throws(GroupError) -> GroupSettings? {
    guard let name = options.group ?? facts?.name else {
      if facts != nil {
        throw .configuration("\"group\" in the configuration has no \"name\"; add it, or pass --group NAME")
      }
      return nil
    }
    let servers = options.logServers.isEmpty ? facts?.log ?? [] : options.logServers
    var nats = NatsSettings(servers: servers.isEmpty ? [defaultServer] : servers)
    (nats.user, nats.password, nats.token) = (facts?.user, facts?.password, facts?.token)
    (nats.credentials, nats.authority) = (facts?.credentials, facts?.authority)
    (nats.certificate, nats.key) = (facts?.certificate, facts?.key)
    var settings = try GroupSettings(
      name: name, nats: nats, host: options.groupHost ?? facts?.host ?? hostName, member: member,
      version: ProgramVersion.text, pid: Int(ProcessIdentity.pid), timeout: options.logTimeout.clampedNanoseconds)
    settings.replicas = facts?.replicas
    settings.imageBytes = options.images.journalBytes
    return settings
  }

  private static var hostName: String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "unknown" }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Locks the state directory and joins the group; nil if the daemon is in none.
  static func join(
    _ options: DaemonOptions, _ configuration: Configuration?, _ environment: Environment, _ log: Log
  ) throws -> GroupMember? {
    guard options.group != nil || configuration?.group != nil else {
      if !options.logServers.isEmpty { throw GroupError.configuration("--log is for groups; pass --group NAME too") }
      return nil
    }
    if options.skippedBatch != nil || options.skipsDamaged {
      throw GroupError.configuration(
        "--skip-batch and --skip-damaged are for a log in the state directory; remove them, or \"group\" in the configuration"
      )
    }
    // Refused before anything is locked or created.
    _ = try settings(options, configuration?.group, member: "")
    guard options.durability != .memory, let path = options.stateDirectory ?? StatePath.standard(environment) else {
      throw StateDirectoryError.unknown
    }
    let directory = try StateDirectory.lock(path)
    guard let settings = try settings(options, configuration?.group, member: try memberName(in: path)) else {
      return nil
    }
    let images = StateImages.directory(ofGroup: settings.name, in: path)
    try PrivateDirectory.make(images)
    var cached: GroupLog.Cached?
    var isDamaged = false
    do throws(StorageError) {
      cached = try StateImages.note(in: images).map { GroupLog.Cached(epoch: $0.epoch, note: $0.note) }
    } catch {
      isDamaged = true
      log.write(
        .warning, "cannot restore \(error.path): \(error.reason); it is kept, and the state is loaded from the group")
    }
    let loaded = "\(images)/loaded"
    let shared = try GroupLog.join(
      settings, limits: options.limits, image: loaded, cached: cached, freshEpoch: try Random.hex128())
    if isDamaged {
      let kept = try keepDamaged(in: images)
      log.write(.warning, "the image that cannot be restored is kept as \(kept)")
    }
    if let cached, shared.hasLostImage || cached.epoch != shared.epoch {
      // If the servers lost their stream, or a part of it, it may be the last copy of the state.
      let former = try keepFormer(in: images, cached.epoch)
      let cause =
        shared.hasLostImage
        ? "the image of this host was made of messages that the servers lost; it is not used, and"
        : "the group has begun a new history; the image of the former one is"
      log.write(.warning, "\(cause) kept as \(former) for: feedclient restore")
    }
    switch shared.image {
    case .none: unlink(StateFile.path(in: images))
    case .cached: break
    case .loaded:
      guard rename(loaded, StateFile.path(in: images)) == 0 else {
        throw GroupError.system("cannot rename \(loaded); make \(images) writable")
      }
    }
    return GroupMember(directory, shared, imageDirectory: images) { log.write($0, $1) }
  }

  private static func move(_ path: String, to other: String) throws(GroupError) {
    guard rename(path, other) == 0 else { throw .system("cannot rename \(path) to \(other)") }
  }

  /// Keeps the image of this host beside the next one, for an operator. Returns the path. Of one epoch, the first one is kept, which may
  /// be all that is left of the state, and the newest one.
  static func keepFormer(in images: String, _ epoch: String) throws(GroupError) -> String {
    let first = "\(images)/former-\(epoch).sqlite"
    let former = access(first, F_OK) == 0 ? "\(images)/former-\(epoch)-2.sqlite" : first
    try move(StateFile.path(in: images), to: former)
    return former
  }

  /// Keeps an image that cannot be restored, so that the state is loaded from the group. Returns the path.
  private static func keepDamaged(in images: String) throws(GroupError) -> String {
    let damaged = "\(images)/damaged.sqlite"
    try move(StateFile.path(in: images), to: damaged)
    return damaged
  }

  /// The random name of this member, which its state directory keeps.
  private static func memberName(in directory: String) throws -> String {
    let path = GroupMember.namePath(directory)
    if let bytes = try? SmallFile.read(path, limit: 64) {
      let text = String(decoding: bytes, as: UTF8.self).filter { $0.isHexDigit }
      if text.utf8.count == 32 { return text }
    }
    let name = try Random.hex128()
    try SmallFile.replace(path, with: Array("\(name)\n".utf8))
    return name
  }

  /// Restores the image, follows the log, and executes what it has up to now. Returns the newest moment of the state.
  static func recover(
    _ engine: Engine, _ member: GroupMember, _ limits: Limits, _ notify: Notify, _ log: Log
  ) throws -> UInt64 {
    let start = MonotonicClock.now
    var (note, moment, elements): (String?, UInt64, Int) = (nil, 0, 0)
    if member.log.image != .none {
      do throws(StorageError) {
        note = try StateImages.note(in: member.imageDirectory)?.note
        let found = try StateImages.recover(member.imageDirectory, into: engine)
        (moment, elements) = (found.newestMoment, found.elements)
      } catch {
        throw try failure(toRestore: member, error)
      }
    }
    engine.use(limits)
    try member.startImages(limits)
    try member.log.start(note)
    let (batches, newest) = try catchUp(engine, member, notify)
    let recovered = Daemon.recovered(engine.catalog, elements: elements, batches: batches, since: start)
    log.write(.notice, "group \(member.log.settings.name): \(recovered)")
    return max(moment, newest)
  }

  /// Lets the next start load the state from the group, if this host's own image cannot be restored and the group can be reached.
  /// Returns the reason that ends this start.
  private static func failure(toRestore member: GroupMember, _ error: StorageError) throws(GroupError) -> any Error {
    let (log, what) = (member.log, "cannot restore \(error.path): \(error.reason)")
    switch log.image {
    case .none: return error
    case .loaded:
      // It is that of the group: its bytes arrived as they were published, and another one helps.
      unlink(StateFile.path(in: member.imageDirectory))
      return GroupError.badImage(log.settings.bucket, reason: error.reason)
    case .cached where log.hasWaited:
      return GroupError.system(
        "\(what), and the group cannot be reached at \(log.settings.nats.publicServers); start nats-server or correct --log "
          + "to load the state from the group (the image is kept)")
    case .cached:
      return RejoinNeeded(reason: "\(what); it is kept as \(try keepDamaged(in: member.imageDirectory))")
    }
  }

  /// Executes the batches that the log has. Returns their number and the newest moment. Cut off from the log, a member that has an
  /// image begins with that.
  private static func catchUp(
    _ engine: Engine, _ member: GroupMember, _ notify: Notify
  ) throws -> (batches: Int, moment: UInt64) {
    let (log, start) = (member.log, MonotonicClock.now)
    var (batches, moment, reportAt) = (0, UInt64(0), start)
    while true {
      let isComplete = log.isCaughtUp
      while let event = log.nextEvent() {
        switch event {
        case .received(let batch):
          try engine.replay(batch)
          batches += 1
          moment = max(moment, batch.at.nanoseconds)
        case .mark(let mark): log.didReach(mark) { engine.catalog.makeImage() }
        case .lost(let reason):
          member.didLose(reason)
          throw RejoinNeeded(reason: reason)
        case .ordered, .stored, .failed: break
        }
      }
      if isComplete { return (batches, moment) }
      let now = MonotonicClock.now
      if now >= reportAt {
        reportAt = now &+ 2_000_000_000
        notify.reportRecovery("recovering: \(counted(batches, "batch", plural: "batches")) of the group's log")
      }
      let status = log.status
      if status.unreachable != nil, log.hasWaited || now &- start > log.settings.timeout {
        if log.image == .cached { return (batches, moment) }
        throw GroupError.unreachable(
          servers: log.settings.nats.publicServers,
          reason: status.unreachable?.reason ?? "")
      }
      _ = try? Readiness.readable.wait(on: log.descriptor ?? -1, timeout: .milliseconds(50))
    }
  }
}

/// The state of this host cannot be continued: it is loaded again from the group.
struct RejoinNeeded: Error, CustomStringConvertible {
  let reason: String
  var description: String { "\(reason); the member begins again from an image" }

  /// Starts the program again in this process, after a pause. Returns if that failed, and if the service manager handed over the
  /// socket: it must do so again.
  static func restart(_ environment: Environment) {
    if environment.nonEmpty("LISTEN_FDS") != nil { return }
    usleep(1_000_000)
    var arguments = CommandLine.arguments.map { strdup($0) as UnsafeMutablePointer<CChar>? }
    arguments.append(nil)
    execv("/proc/self/exe", &arguments)
  }
}

extension GroupMember {
  /// What the engine tells clients of the group.
  var shared: SharedLog {
    let status = log.status
    return SharedLog(
      group: log.settings.name, log: status.logText { WallClock.text($0) }, position: status.position,
      last: max(status.last, status.position), members: status.members.count,
      details: ByteBuffer.text { status.append(to: &$0) { WallClock.text($0) } })
  }

  func perform(_ action: GroupAction) {
    switch action {
    case .leave: log.leave()
    case .join: log.rejoin()
    case .image: log.requestImage()
    }
  }
}

extension Configuration {
  /// The feeds of the file with the checksums of their definitions.
  var checksums: [String: UInt32] { Self.checksums(of: entries.map(\.definition)) }

  static func checksums(of definitions: [FeedDefinition]) -> [String: UInt32] {
    Dictionary(
      uniqueKeysWithValues: definitions.map { definition in
        var text = ByteBuffer()
        definition.appendMembers(to: &text)
        return (definition.name, CRC32C.of(text.bytes))
      })
  }
}
