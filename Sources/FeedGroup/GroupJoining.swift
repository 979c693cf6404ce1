import FeedJSON
import FeedSystem
import Glibc

/// The steps before a member follows the log: it connects, finds or creates the stream, and loads an image. Blocks.
struct GroupJoining: ~Copyable {
  /// What the local state directory has: the image of an earlier run.
  struct Cached {
    let epoch: String
    let table: MemberTable
  }

  /// The place from which the log is followed.
  struct Found {
    let identity: StreamIdentity
    let replicas: Int
    /// Whether the image in the state directory is used: the one that was there, or one that was loaded.
    let image: GroupLog.Image
    /// What the members knew of each other there; empty if the image tells.
    let table: MemberTable
    /// Whether the image of this host was made of messages that the servers lost.
    var hasLostImage = false
    /// Whether the servers did not answer in time, so that the image of this host is used without them.
    var hasWaited = false
    /// What arrived and is not answered to the steps.
    var rest: [GroupInbox.Item] = []
  }

  /// Nanoseconds for which servers that do not have what they should are asked again, and those that have a wrong image.
  private static let patience: UInt64 = 20_000_000_000
  private static let imagePatience: UInt64 = 5_000_000_000
  /// Nanoseconds for which an answer is awaited, at most, at most of the stream, and at least, and until a stream is created.
  private static let requestPatience: UInt64 = 5_000_000_000
  private static let streamPatience: UInt64 = 3_000_000_000
  private static let minPatience: UInt64 = 1_000_000_000
  private static let creationPatience: UInt64 = 10_000_000_000
  /// Requests for messages at once.
  private static let window = 16

  private let settings: GroupSettings
  private let transport: NatsTransport
  private let inbox: GroupInbox
  private let subject: String
  private let limits: [String: Int]
  /// When servers that do not answer are given up.
  private var deadline: UInt64
  private var requests = 0
  private var rest: [GroupInbox.Item] = []

  init(
    _ settings: GroupSettings, _ transport: NatsTransport, _ inbox: GroupInbox, subject: String, limits: [String: Int]
  ) {
    (self.settings, self.transport, self.inbox) = (settings, transport, inbox)
    (self.subject, self.limits) = (subject, limits)
    deadline = Self.time(after: settings.timeout)
  }

  private static func time(after nanoseconds: UInt64) -> UInt64 {
    let (time, isEndless) = MonotonicClock.now.addingReportingOverflow(nanoseconds)
    return isEndless ? .max : time
  }

  private mutating func connect() throws(GroupError) {
    while true {
      do throws(GroupError) {
        return try transport.connect()
      } catch {
        let now = MonotonicClock.now
        guard case .unreachable = error, now < deadline else { throw error }
        rest += inbox.take(within: min(deadline - now, 100_000_000))
      }
    }
  }

  /// Sends a request to JetStream and waits for the answer.
  private mutating func request(_ subject: String, _ text: String) throws(GroupError) -> JSONObject {
    try request(subject, [text], until: Self.time(after: Self.requestPatience))[0]
  }

  private mutating func request(
    _ subject: String, _ texts: [String], until deadline: UInt64
  ) throws(GroupError) -> [JSONObject] {
    var answers: [String: JSONObject] = [:]
    var replies: [String] = []
    for text in texts {
      requests += 1
      let reply = "\(self.subject).start.\(requests)"
      replies.append(reply)
      if let failure = transport.publish(subject, reply: reply, identity: nil, Array(text.utf8)) {
        throw .jetStream(what: "cannot send \(subject)", reason: failure)
      }
    }
    while answers.count < replies.count {
      let now = MonotonicClock.now
      guard now < deadline else { throw .silent("\(subject) timed out") }
      var received: [NatsMessage] = []
      for item in inbox.take(within: deadline - now) {
        if case .nats(.message(let message)) = item, replies.contains(message.subject) {
          received.append(message)
        } else {
          rest.append(item)
        }
      }
      for message in received {
        if message.bytes.isEmpty, let status = message.header("Status") {
          throw .silent(status == "503" ? "nobody listens to \(subject)" : "status \(status)")
        }
        guard let answer = JSONObject(message.bytes) else {
          throw .jetStream(what: "cannot read the answer to \(subject)", reason: "it is not JSON")
        }
        answers[message.subject] = answer
      }
    }
    return replies.compactMap { answers[$0] }
  }

  /// Connects, finds the stream of the group or creates it, and then loads the newest image unless the local one continues.
  mutating func join(epoch fresh: String, cached: Cached?, image path: String) throws(GroupError) -> Found {
    try connect()
    // Whether the servers may still find messages that an image was made of.
    var (isPatient, start) = (true, MonotonicClock.now)
    while true {
      let state = try openStream(StreamIdentity(epoch: fresh, limits: limits))
      let identity = try StreamIdentity(state.description, stream: settings.stream)
      let differences = identity.differences(from: limits)
      guard differences.isEmpty else { throw .otherLimits(group: settings.name, differences: differences) }
      do throws(GroupError) {
        return try place(state, identity, cached, path, isPatient)
      } catch {
        // A server that leads a stream since a moment may not know all of it yet, and another image may have replaced one.
        let patience = if case .badImage = error { Self.imagePatience } else { Self.patience }
        if case .emptied = error { throw error }
        if case .gap = error, !isPatient { throw error }
        if MonotonicClock.now &- start >= patience {
          guard case .gap = error else { throw error }
          (isPatient, start) = (false, MonotonicClock.now)
        }
        rest += inbox.take(within: 0)
        usleep(500_000)
        deadline = Self.time(after: settings.timeout)
      }
    }
  }

  /// Decides where the member begins.
  /// - Parameter isPatient: whether to wait for the messages that an image covers and the stream does not have. Otherwise the servers
  ///   have lost them for good, and the image is not used.
  private mutating func place(
    _ state: StreamState, _ identity: StreamIdentity, _ cached: Cached?, _ path: String, _ isPatient: Bool
  ) throws(GroupError) -> Found {
    var hasLostImage = false
    if let cached, cached.epoch == identity.epoch, cached.table.firstToRead >= state.unbroken {
      hasLostImage = try !isOfStream(cached.table.records, state)
      if !hasLostImage && cached.table.position > state.last {
        if isPatient { throw .gap(stream: settings.stream, from: state.last + 1, to: cached.table.position) }
        hasLostImage = true
      }
      if !hasLostImage {
        return Found(identity: identity, replicas: state.replicas, image: .cached, table: cached.table, rest: rest)
      }
    }
    var (found, flaw) = try findImages()
    for published in found where published.epoch == identity.epoch {
      guard try isOfStream(published.records, state), published.position <= state.last || isPatient else { continue }
      do throws(GroupError) {
        guard published.position <= state.last else {
          throw .gap(stream: settings.stream, from: state.last + 1, to: published.position)
        }
        guard published.from >= state.unbroken else {
          throw .gap(stream: settings.stream, from: published.from, to: state.unbroken - 1)
        }
        try load(published, to: path)
      } catch {
        // The image before it serves as well.
        flaw = flaw ?? error
        continue
      }
      return Found(
        identity: identity, replicas: state.replicas, image: .loaded(path), table: MemberTable(),
        hasLostImage: hasLostImage, rest: rest)
    }
    if let flaw { throw flaw }
    guard state.unbroken <= 1 else { throw .gap(stream: settings.stream, from: 1, to: state.unbroken - 1) }
    let own = cached.flatMap { $0.epoch == identity.epoch ? $0.table.position : nil } ?? 0
    let covered = found.reduce(own) { $1.epoch == identity.epoch ? max($0, $1.position) : $0 }
    // Revisions would begin anew in the same epoch, and clients that resume would not notice.
    if state.last == 0 && covered > 0 { throw .emptied(stream: settings.stream, covered: covered) }
    return Found(
      identity: identity, replicas: state.replicas, image: .none, table: MemberTable(), hasLostImage: hasLostImage,
      rest: rest)
  }

  // MARK: The stream

  /// Finds the stream, or creates it. A leaf node that was just started may not have reached the servers yet, and servers that start
  /// may not have found each other.
  private mutating func openStream(_ identity: StreamIdentity) throws(GroupError) -> StreamState {
    var copies = settings.replicas ?? 3
    let creationDeadline = Self.time(after: Self.creationPatience)
    while true {
      do throws(GroupError) {
        if let state = try findStream(identity, &copies, creationDeadline) { return state }
      } catch {
        guard case .silent = error, MonotonicClock.now < deadline else { throw error }
        usleep(100_000)
      }
    }
  }

  /// Asks for the stream, and creates it if there is none. Returns nil if that is to be tried again.
  private mutating func findStream(
    _ identity: StreamIdentity, _ copies: inout Int, _ creationDeadline: UInt64
  ) throws(GroupError) -> StreamState? {
    let now = MonotonicClock.now
    let answer = try requestStream(
      JetStream.streamInfo(settings.stream), StreamState.questionForGaps,
      until: min(max(deadline, now &+ Self.minPatience), now &+ Self.streamPatience))
    if let state = StreamState(answer) { return state }
    guard let failure = JetStream.failure(answer), failure.error == JetStream.Failure.streamNotFound else {
      throw refusal("cannot use stream \(settings.stream)", JetStream.failure(answer))
    }
    // Servers may not answer all of several members that ask for it or create it at once.
    deadline = max(deadline, creationDeadline)
    let created = try requestStream(
      JetStream.createStream(settings.stream),
      JetStream.logConfiguration(settings, description: identity.text, replicas: copies),
      until: now &+ Self.streamPatience)
    guard let failure = JetStream.failure(created) else { return StreamState(created) }
    switch failure.error {
    case JetStream.Failure.streamNameInUse: break
    case JetStream.Failure.noReplicasOutsideCluster where settings.replicas == nil && copies > 1: copies = 1
    default: throw refusal("cannot create stream \(settings.stream)", failure)
    }
    return nil
  }

  /// The error for what JetStream refused.
  /// - Parameter failure: nil if the answer is neither a success nor a failure.
  private func refusal(_ what: String, _ failure: JetStream.Failure?) -> GroupError {
    guard let failure else { return .jetStream(what: what, reason: "the answer is not understood") }
    return .jetStream(what: what, reason: failure.description, remedy: failure.remedy(settings.stream))
  }

  /// Sends a request that is repeated if the servers cannot answer it yet.
  private mutating func requestStream(
    _ subject: String, _ text: String, until deadline: UInt64
  ) throws(GroupError) -> JSONObject {
    let answer = try request(subject, [text], until: deadline)[0]
    if let failure = JetStream.failure(answer), failure.isTransient { throw .silent(failure.description) }
    return answer
  }

  /// Whether the messages that an image was made of are those of the stream, as far as it has them still. Servers may have lost
  /// messages and stored others in their places.
  private mutating func isOfStream(_ records: LogRecords, _ state: StreamState) throws(GroupError) -> Bool {
    var left = records.newest(first: state.first)
    while !left.isEmpty {
      let part = left.suffix(Self.window)
      left = left.dropLast(Self.window)
      let texts = part.map { "{\"seq\":\($0.sequence)}" }
      let answers = try request(
        JetStream.message(settings.stream), texts, until: Self.time(after: Self.requestPatience))
      for (record, answer) in zip(part, answers) {
        if let checksum = JetStream.checksum(answer), checksum != record.checksum { return false }
      }
    }
    return true
  }

  // MARK: Images

  /// The images of the bucket, the newest one first, and what is wrong with one of them.
  private mutating func findImages() throws(GroupError) -> (found: [PublishedImage], flaw: GroupError?) {
    var (found, flaw): ([PublishedImage], GroupError?) = ([], nil)
    for name in PublishedImage.names {
      do throws(GroupError) {
        if let image = try findImage(name) { found.append(image) }
      } catch {
        guard case .badImage = error else { throw error }
        flaw = error
      }
    }
    return (found.sorted { $0.position > $1.position }, flaw)
  }

  private mutating func findImage(_ name: String) throws(GroupError) -> PublishedImage? {
    let answer = try request(
      JetStream.message(settings.bucketStream), "{\"last_by_subj\":\"\(PublishedImage.subject(settings, name))\"}")
    if let failure = JetStream.failure(answer) {
      if [JetStream.Failure.streamNotFound, JetStream.Failure.messageNotFound].contains(failure.error) { return nil }
      throw refusal("cannot read bucket \(settings.bucket)", failure)
    }
    guard let data = answer.object("message")?.string("data"), let text = Base64.decode(data),
      let facts = text.withUnsafeBytes({ JSONObject($0) })
    else { throw .badImage(settings.bucket, reason: "its description is not JSON") }
    guard let published = PublishedImage(facts) else {
      throw .badImage(settings.bucket, reason: "its description is not that of a group")
    }
    return published
  }

  /// Writes the chunks of an image to a file and verifies them. The leader of the bucket's stream is asked for each: a consumer may
  /// be on a server whose copy lacks them.
  private mutating func load(_ published: PublishedImage, to path: String) throws(GroupError) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw .system("\(SystemError(code: errno, operation: "create", path: path))") }
    defer { close(file) }
    let subject = PublishedImage.chunkSubject(settings, published.id).quotedAsJSON
    var (hash, size, next) = (SHA256(), 0, UInt64(1))
    for number in 0..<published.chunks {
      let answer = try request(
        JetStream.message(settings.bucketStream), "{\"seq\":\(next),\"next_by_subj\":\(subject)}")
      guard let message = answer.object("message"), let sequence = message.unsigned("seq"),
        let chunk = message.string("data").flatMap(Base64.decode)
      else { throw .badImage(settings.bucket, reason: "the servers have \(number) of \(published.chunks) chunks") }
      next = sequence &+ 1
      size += chunk.count
      let written = chunk.withUnsafeBytes { bytes in
        hash.update(bytes)
        return write(file, bytes.baseAddress, bytes.count)
      }
      guard written == chunk.count else { throw .system("cannot write \(path): free space on its file system") }
    }
    let digest = "SHA-256=\(Base64.encode(hash.finish()))"
    guard size == published.size, digest == published.digest else {
      throw .badImage(settings.bucket, reason: "its bytes do not match its SHA-256")
    }
    // It is renamed over the image of this host next.
    guard fsync(file) == 0 else { throw .system("cannot write \(path): check the disk and the system's log") }
  }
}
