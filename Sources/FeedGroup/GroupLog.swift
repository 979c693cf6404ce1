import FeedJSON
import FeedModel
import FeedSystem
import Glibc

/// The commit log of a group of hosts, which a NATS JetStream stream keeps (Protocol/groups.md).
///
///     let log = try GroupLog.join(settings, limits: limits, directory: directory, cached: note, freshEpoch: epoch)
///     // restore the image log.image, if there is one
///     try log.start(note)                       // the thread of the log follows the stream
///     log.append(batch)                         // returns at once
///     while let event = log.nextEvent() { … }   // when `descriptor` is readable
///
/// All calls come from the engine's thread. Every member executes all batches in the order of the stream; the own ones are
/// reported as `ordered`, those of others as `received`.
public final class GroupLog: CommitLog {
  /// The image that the state begins with.
  public enum Image: Equatable, Sendable {
    case none
    /// The one in the state directory.
    case cached
    case loaded(String)
  }

  /// What became of the announcement of the feeds of a configuration.
  public enum Announcement: Equatable, Sendable {
    case accepted
    /// The configuration of another host defines a feed differently.
    case refused(String)
  }

  /// What the state directory has of an earlier run.
  public struct Cached: Sendable {
    public let epoch: String
    /// What the image was written with; see ``PendingImage/note``.
    public let note: String

    public init(epoch: String, note: String) { (self.epoch, self.note) = (epoch, note) }
  }

  /// An image to write, of the state at a place of the log.
  public struct PendingImage {
    public let content: CatalogImage
    public let position: UInt64
    public let from: UInt64
    /// The table of the members at that place, which a member that begins with the image needs.
    public let note: String
    public let isShared: Bool
  }

  /// How the reason of a loss begins if the images of this host are wrong too.
  public static let divergence = "the state differs"
  /// The cause of a divergence if only the images of this host may still have what the servers lost.
  public static let replacement = "the servers lost messages and stored others"
  /// How the reason of a loss begins if the servers have another history, none, or nothing of it: the state of this host is the
  /// newest one of a history that they have forgotten.
  public static let oblivion = "the servers have forgotten the history of the group"
  /// The reason of a loss if another daemon has the name of this member: a state directory was copied.
  public static let copiedName =
    "another daemon has the name of this member, because its state directory was copied; this member takes another name"

  public let settings: GroupSettings
  /// The feeds that the configuration of this host defined when its image was made.
  public let formerFeeds: Set<String>
  /// Called with lines for the daemon's log: whether it is a warning, and the text.
  public var report: (_ isWarning: Bool, _ text: String) -> Void = { _, _ in }

  private let inbox: GroupInbox
  private let notices: GroupNotices
  private let transport: NatsTransport
  private let inboxSubject: String
  private var found: GroupJoining.Found
  private var thread: GroupThread?
  private var purposes: [UInt64: Upkeep.Purpose] = [:]
  private var digest: StateDigest?
  private var pendingImage: PendingImage?
  /// Whether this member was told to leave the group and not to join again.
  private var hasLeft = false
  private var announcements = 0

  /// Connects to the servers, finds or creates the stream, and loads the newest image if the state directory has none that
  /// continues. Without a connection, a member with a cached image begins cut off.
  public static func join(
    _ settings: GroupSettings, limits: Limits, image path: String, cached: Cached?, freshEpoch: String
  ) throws(GroupError) -> GroupLog {
    let inbox = try GroupInbox()
    let id: String
    do throws(SystemError) { id = try Random.hex128() } catch { throw .system("\(error)") }
    let subject = "_INBOX.feedd.\(id)"
    let transport = NatsTransport(settings.nats, name: "feedd \(settings.host)", inboxSubject: subject, inbox)
    let deciding = StreamIdentity.deciding(Limits.all.map { ($0.name, limits[keyPath: $0.keyPath]) })
    var joining = GroupJoining(settings, transport, inbox, subject: subject, limits: deciding)
    let known = cached.flatMap { cached in
      MemberTable(text: cached.note).map { table in GroupJoining.Cached(epoch: cached.epoch, table: table) }
    }
    let found: GroupJoining.Found
    do throws(GroupError) {
      found = try joining.join(epoch: freshEpoch, cached: known, image: path)
    } catch {
      guard let known, error.isAbsence else { throw error }
      let rules = known.table.rules ?? ExecutionRules.current
      found = GroupJoining.Found(
        identity: StreamIdentity(epoch: known.epoch, limits: deciding, rules: rules), replicas: 1, image: .cached,
        table: known.table, hasWaited: true)
    }
    let former = known.flatMap { $0.epoch == found.identity.epoch ? $0.table.configured(by: settings.member) : nil }
    return GroupLog(settings, found, former ?? [], inbox, try GroupNotices(), transport, subject)
  }

  private init(
    _ settings: GroupSettings, _ found: GroupJoining.Found, _ formerFeeds: Set<String>, _ inbox: GroupInbox,
    _ notices: GroupNotices, _ transport: NatsTransport, _ subject: String
  ) {
    (self.settings, self.found, self.formerFeeds) = (settings, found, formerFeeds)
    (self.inbox, self.notices, self.transport) = (inbox, notices, transport)
    inboxSubject = subject
  }

  deinit { thread?.abandon() }

  public var window: Int { 4 }
  public var storesNothing: Bool { false }
  public var isShared: Bool { true }
  public var shortage: String? { nil }
  /// The identity of the stream's history: the same on all members.
  public var epoch: String { found.identity.epoch }
  /// The version of the rules by which the members execute requests (``ExecutionRules``).
  public var rules: Int { found.identity.rules }
  public var image: Image { found.image }
  /// Whether the image of this host is not used because it was made of messages that the servers lost.
  public var hasLostImage: Bool { found.hasLostImage }
  /// Whether joining waited for the servers in vain, so that the member begins cut off.
  public var hasWaited: Bool { found.hasWaited }

  /// Follows the stream.
  /// - Parameter note: that of the image that was restored; nil without one.
  public func start(_ note: String?) throws(GroupError) {
    guard let table = note.map({ MemberTable(text: $0) }) ?? found.table else {
      throw .badImage(settings.bucket, reason: "it has no table of the members")
    }
    let machine = GroupMachine(
      settings, found.identity, table, readingFrom: table.firstToRead, inbox: inboxSubject, transport,
      now: MonotonicClock.now
    ) { (try? Random.number()) ?? UInt64.random(in: 1...UInt64.max) }
    let thread = GroupThread(machine, transport, inbox, notices, replicas: found.replicas)
    for item in found.rest { inbox.post(item) }
    found.rest = []
    if transport.isConnected { inbox.post(.nats(.connected)) }
    do throws(SystemError) { try thread.start() } catch { throw .system("\(error)") }
    self.thread = thread
  }

  // MARK: Batches

  public var descriptor: Int32? { notices.descriptor }
  public func append(_ batch: LogBatch) { inbox.post(.append(batch)) }

  public func nextEvent() -> LogEvent? {
    guard let (event, purpose) = notices.next() else { return nil }
    if case .mark(let mark) = event, let purpose { purposes[mark] = purpose }
    return event
  }

  public func didReach(_ mark: UInt64, _ makeImage: () -> CatalogImage) {
    switch purposes.removeValue(forKey: mark) {
    case .digest(let place): digest = StateDigest(makeImage(), mark: place, rules: rules)
    case .image(let table, let isShared):
      pendingImage = PendingImage(
        content: makeImage(), position: table.position, from: table.firstNeeded, note: table.text, isShared: isShared)
    case nil: break
    }
  }

  public func close(within nanoseconds: UInt64) {
    thread?.end(within: nanoseconds)
    thread = nil
  }

  // MARK: Work beside batches

  /// Whether everything was read that the stream had when this member began to follow it.
  public var isCaughtUp: Bool { notices.isCaughtUp }
  /// Whether the log takes nothing from this member now: it is unreachable, or the member has left the group.
  public var isAway: Bool { status.unreachable != nil || hasLeft }

  public var status: GroupStatus {
    var status = notices.status
    // The answer to a leave tells of it.
    status.hasLeft = hasLeft
    return status
  }

  /// Nanoseconds until `work` should be called without an event; nil if only an event can create work.
  public var pause: UInt64? { digest == nil ? nil : 0 }

  /// Does a small part of the work on a digest, and reports lines for the daemon's log.
  public func work() {
    for line in notices.takeLines() { report(line.isWarning, line.text) }
    guard digest != nil, let value = digest?.step(for: 1_000_000), let mark = digest?.mark else { return }
    digest = nil
    inbox.post(.digest(mark: mark, value))
  }

  /// Removes and returns the image that should be written now.
  public func takeImage() -> PendingImage? {
    defer { pendingImage = nil }
    return pendingImage
  }

  /// The image was written to a file, which must stay until ``isPublishing`` is false.
  public func didWrite(_ image: WrittenImage) { inbox.post(.image(image)) }
  public func didFailToWriteImage() { inbox.post(.imageFailed) }
  /// Publishes an image for all members.
  public func requestImage() { inbox.post(.sharedImage) }

  /// Reads nothing more from the stream. A last image follows the batches that were read.
  public func freeze() { inbox.post(.freeze) }

  /// Tells the group which feeds the configuration of this host defines, with the checksums of their definitions.
  /// ``announcement`` tells later what became of it.
  public func announce(_ feeds: [String: UInt32]) {
    announcements += 1
    inbox.post(.announce(feeds, number: announcements))
  }

  /// What became of the last call of ``announce(_:)``; nil until the log has it.
  public var announcement: Announcement? {
    let found = notices.announcement
    guard found.number == announcements, found.isDecided else { return nil }
    return found.refusal.map { .refused($0) } ?? .accepted
  }

  /// The feeds that the configurations of other hosts defined when the log got the announcement.
  public var configuredByOthers: Set<String> { notices.announcement.others }

  /// Waits until the log has the announcement.
  public func awaitAnnouncement(within nanoseconds: UInt64) -> Announcement? {
    let deadline = MonotonicClock.now &+ nanoseconds
    while true {
      if let announcement { return announcement }
      if MonotonicClock.now >= deadline { return nil }
      // The start has waited for the servers already.
      if let since = status.unreachable?.since, WallClock.now &- since > settings.timeout { return nil }
      usleep(1000)
    }
  }

  /// What this member does for all, if that changed since the last call: the feeds of its configuration whose rows it proposes, and
  /// the number of members that act before it.
  public func takeDuties() -> (proposed: Set<String>, rank: Int)? {
    notices.takeDuties().map { ($0.proposed, $0.rank) }
  }

  /// Leaves the group, until `rejoin`: changes are refused, and reads go on.
  public func leave() {
    hasLeft = true
    inbox.post(.leave)
  }

  public func rejoin() {
    hasLeft = false
    inbox.post(.rejoin)
  }
}

extension MemberTable {
  /// The first message that a member with an image of this table reads: parts of batches before its position are needed again.
  var firstToRead: UInt64 { needed ?? position &+ 1 }
}
