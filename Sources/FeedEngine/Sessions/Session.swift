import FeedJSON
import FeedModel
import FeedWire
import Glibc

/// Identifies a connection between the link and the engine, from accept to close. The number is then reused.
public struct ConnectionID: Hashable, Sendable {
  public let rawValue: Int

  public init(rawValue: Int) { self.rawValue = rawValue }
}

/// The peer of a connection, as reported by the kernel.
public struct Peer: Sendable, Hashable {
  public let uid: UInt32
  public let gid: UInt32
  public let pid: Int32
  /// The supplementary groups.
  public let groups: [UInt32]

  public init(uid: UInt32, gid: UInt32, pid: Int32, groups: [UInt32] = []) {
    (self.uid, self.gid, self.pid, self.groups) = (uid, gid, pid, groups)
  }
}

/// Identifies a session. Connection numbers are reused, but a handle never refers to another session than its own.
struct SessionHandle: Equatable {
  let index: UInt32
  let generation: UInt32

  /// A handle that refers to no session.
  static let none = SessionHandle(index: .max, generation: 0)
}

/// The facts about a connection in `clients` and in the log.
struct ClientFacts {
  let connectedAt: Instant
  /// The client's name, from `hello`.
  var name = ""
  var requests: UInt64 = 0
  var resets: UInt64 = 0
}

/// The progress of closing a connection.
struct SessionPhase {
  /// Input is ignored. The connection closes when its output is written.
  var isClosing = false
  /// The connection was refused because of a limit. It does not count towards any limit.
  var isRefused = false
  /// The time when a closing connection is closed even if its output was not read.
  var closeDeadline: Instant?
}

/// A cache of the feed that the last request of a session named. Most requests name the same feed, which costs one
/// comparison.
struct NamedFeed: ~Copyable {
  private var feed: Feed? {
    didSet { unretained = feed.map { .passUnretained($0) } }
  }
  private var unretained: Unmanaged<Feed>?
  /// The name as the request wrote it, a JSON string.
  private var name = ByteBuffer()

  /// Returns the feed if `text` is the same name and the feed was not undefined. It is not retained: it is kept until the commit
  /// ends that undefines it.
  @inline(__always)
  func feed(named text: UnsafeRawBufferPointer) -> Unmanaged<Feed>? {
    guard let unretained, name.count == text.count, let start = text.baseAddress,
      memcmp(name.pointer, start, text.count) == 0, !unretained._withUnsafeGuaranteedRef({ $0.isGone })
    else { return nil }
    return unretained
  }

  /// Calls `body` with the feed if it is a collection with so many elements that looking at coming requests is worthwhile.
  @inline(__always)
  func withLargeCollection(_ body: (CollectionKind) -> Void) {
    unretained?._withUnsafeGuaranteedRef { feed in
      _ = feed.withCollection { if $0.isLarge { body($0) } }
    }
  }

  mutating func set(_ feed: Feed, named text: UnsafeRawBufferPointer) {
    self.feed = feed
    name.removeAll(keepingCapacity: true)
    name.append(text)
  }

  mutating func forget() { feed = nil }

  /// Clears a feed that was undefined, so that its memory can be released.
  mutating func forgetIfGone() { if feed?.isGone == true { feed = nil } }
}

/// What is remembered of the last requests of a connection, to decode the next ones in less time.
struct LastRequests: ~Copyable {
  var feed = NamedFeed()
  /// The form of its updates.
  var form = UpdateForm()
}

/// One connection: its peer, its watches, its input and its output.
///
/// Its parts have private state. The parts themselves are not private, because each step of a turn works on one of
/// them.
final class Session {
  let handle: SessionHandle
  let peer: Peer
  var client: ClientFacts
  var watches = SessionWatches()
  /// The input that was not decoded.
  var input = SessionInput()
  /// The text of the first request of the input, if that is long and scanned in part. Written by `LongTexts` only.
  var longText: LongText?
  /// The requests that were decoded but not answered.
  var line = RequestLine()
  var output: OutputQueue
  /// The engine's count of deltas when the watches in step were last given theirs.
  var givenDeltas: UInt64 = 0
  var phase = SessionPhase()
  /// The memory of snapshots that its watches and answers read.
  let snapshots: SnapshotMemory
  /// The bytes charged to the user of this session, besides its output. Written by `Quotas` only.
  var charged = 0
  /// Whether the session is listed in the outbox. Written by `Outbox` only.
  var isInOutbox = false
  /// What its next requests probably have in common with the last ones.
  var last = LastRequests()

  /// The memory in bytes of the input, its tokens, the requests, the unfinished answers, the watches, and the snapshots.
  var memory: Int {
    input.held.count &+ line.memory &+ (longText?.memory ?? 0) &+ watches.count &* Watch.memory &+ snapshots.bytes
  }

  /// That memory, and the part of the output that was written but is not free yet. O(parts of the output).
  var held: Int { memory &+ output.spent }

  /// What closing the connection frees: all but the requests, which are executed nevertheless, and output that others hold too.
  /// O(parts of the output).
  var freeable: Int { charged &- line.bytes &+ output.count &+ output.spent }

  init(handle: SessionHandle, peer: Peer, connectedAt: Instant, snapshots: SnapshotMemory = SnapshotMemory()) {
    (self.snapshots, self.handle) = (snapshots, handle)
    output = OutputQueue(uid: peer.uid)
    self.peer = peer
    client = ClientFacts(connectedAt: connectedAt)
  }

  deinit { input.held.removeAll() }

  var id: ConnectionID { ConnectionID(rawValue: Int(handle.index)) }
  var isClosing: Bool { phase.isClosing }

  /// The number of the connection in `clients` and in the log. Numbers are not used again.
  var number: Int { Int(handle.generation) }

  /// The connection, for log lines.
  var description: String {
    let name = client.name.isEmpty ? "" : " client \(client.name)"
    return "connection \(number) (uid \(peer.uid) pid \(peer.pid)\(name))"
  }

  /// The client, for the fields of the log.
  var subject: EngineEvent.Subject { EngineEvent.Subject(uid: peer.uid, pid: peer.pid) }
}

/// The unanswered requests of one connection: those that were decoded but not executed, which the turn's batches hold
/// in order, and one whose answer takes more than one turn.
///
/// Invariant: the bytes and reads are those of the requests. Without requests both are 0, and the line is not held.
struct RequestLine {
  private var count = 0
  /// The memory in bytes of the requests, and that of the one that is being executed.
  private(set) var bytes = 0
  private var reads = 0
  /// Whether the last request must be answered before another is added, because its answer may take several turns.
  private var isHeld = false
  /// Whether the open batch had no room for the next request.
  var isStalled = false
  /// Whether the stream ends after the last request.
  var isCut = false
  /// The answer that is computed in parts. Later requests wait.
  var work: (job: any Job, ticket: JobTicket)? {
    didSet { oldValue?.job.cancel() }
  }
  /// Whether that answer took so much of the turn in which it began that it goes on in the next one.
  var restsInTurn = false
  /// The JSON-RPC batch in progress. Later requests wait.
  var array: RequestArray?
  /// The place of the connection in the queue of those with unfinished answers; nil if it is not there.
  var place: Int?

  /// The maximum number of waiting requests that are not stored: their answers may be large, and all are written in one
  /// turn.
  private static let maxReads = 32

  /// The memory in bytes of the requests and the unfinished answers.
  var memory: Int { isAnswering ? bytes &+ (work?.job.memory ?? 0) &+ (array?.memory ?? 0) : bytes }

  /// Whether no decoded request waits.
  var isEmpty: Bool { count == 0 }
  /// Whether more requests may be added.
  var takesMore: Bool { !isHeld && !isCut && !isStalled && reads < Self.maxReads }
  /// Whether an answer or a JSON-RPC batch is in progress.
  var isAnswering: Bool { work != nil || array != nil }
  var isDone: Bool { isEmpty && !isAnswering }

  mutating func add(bytes: Int, isRead: Bool, isHeld: Bool) {
    assert(takesMore)
    count &+= 1
    self.bytes &+= bytes
    if isRead { reads &+= 1 }
    self.isHeld = isHeld
    checkInvariants()
  }

  /// Removes the first request, which is being executed.
  mutating func remove(bytes: Int, isRead: Bool) {
    assert(count > 0)
    count &-= 1
    self.bytes &-= bytes
    if isRead { reads &-= 1 }
    if count == 0 { isHeld = false }
    checkInvariants()
  }

  /// Changes the memory of the request that is being executed.
  mutating func charge(_ more: Int) {
    bytes &+= more
    checkInvariants()
  }

  /// Discards the unfinished answers.
  mutating func cancelAnswers() {
    work = nil
    array = nil
  }

  func checkInvariants() {
    assert(count >= reads && reads >= 0 && bytes >= 0)
    assert(count > 0 || bytes == 0 && !isHeld)
  }
}

/// The watches of one connection: at most one for each name of a feed. Each operation is O(1).
///
/// Invariant: `places` has the place of each watch in `all`, by the name of its feed.
struct SessionWatches: Sequence {
  private var all: [Watch] = []
  private var places: [String: Int] = [:]

  var count: Int { all.count }
  var isEmpty: Bool { all.isEmpty }

  func makeIterator() -> IndexingIterator<[Watch]> { all.makeIterator() }

  /// The watch of the feed with a name, or of a former feed with that name, whose end is not sent yet.
  subscript(name: String) -> Watch? { places[name].map { all[$0] } }

  /// Adds a watch.
  /// - Precondition: there is none with the name of its feed.
  mutating func add(_ watch: Watch) {
    let former = places.updateValue(all.count, forKey: watch.channel.feed.name)
    precondition(former == nil, "a connection watches a feed once")
    all.append(watch)
  }

  /// Removes a watch; the last one takes its place.
  mutating func remove(_ watch: Watch) {
    guard let place = places.removeValue(forKey: watch.channel.feed.name) else {
      preconditionFailure("the watch is not of this connection")
    }
    assert(all[place] === watch)
    let last = all.removeLast()
    if last === watch { return }
    all[place] = last
    places[last.channel.feed.name] = place
  }
}
