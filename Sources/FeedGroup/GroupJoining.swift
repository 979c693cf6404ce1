import FeedJSON
import FeedSystem
import Glibc

/// The steps before a member follows the log: it connects, finds or creates the stream, and loads an image. Blocks.
struct GroupJoining: ~Copyable {
  /// What the local state directory has: the image of an earlier run.
  struct Cached {
    let epoch: String
    let table: MemberTable
    let from: UInt64
  }

  /// The place from which the log is followed.
  struct Found {
    let identity: StreamIdentity
    let replicas: Int
    /// Whether the image in the state directory is used: the one that was there, or one that was loaded.
    let image: ImageSource
    let table: MemberTable
    let from: UInt64
    /// What arrived and is not answered to the steps.
    var rest: [GroupInbox.Item] = []
  }

  enum ImageSource: Equatable {
    case none, cached, loaded(String)
  }

  /// Nanoseconds for which servers that do not have what they should are asked again, and those that have a wrong image.
  private static let patience: UInt64 = 20_000_000_000
  private static let imagePatience: UInt64 = 5_000_000_000

  private let settings: GroupSettings
  private let transport: NatsTransport
  private let inbox: GroupInbox
  private let subject: String
  private let limits: [String: Int]
  private var requests = 0
  private var rest: [GroupInbox.Item] = []

  init(
    _ settings: GroupSettings, _ transport: NatsTransport, _ inbox: GroupInbox, subject: String, limits: [String: Int]
  ) {
    self.settings = settings
    self.transport = transport
    self.inbox = inbox
    self.subject = subject
    self.limits = limits
  }

  /// Connects to a server. Returns nil on success, or the reason why none answers.
  mutating func connect(within nanoseconds: UInt64) throws(GroupError) -> String? {
    let deadline = MonotonicClock.now &+ nanoseconds
    while true {
      do throws(GroupError) {
        try transport.connect()
        return nil
      } catch {
        guard case .unreachable(_, let reason) = error else { throw error }
        let now = MonotonicClock.now
        if now >= deadline { return reason }
        rest += inbox.take(within: min(deadline - now, 100_000_000))
      }
    }
  }

  /// Sends a request to JetStream and waits for the answer.
  private mutating func request(
    _ subject: String, _ text: String, seconds: UInt64 = 5
  ) throws(GroupError) -> JSONObject {
    requests += 1
    let reply = "\(self.subject).start.\(requests)"
    if let failure = transport.publish(subject, reply: reply, identity: nil, rollup: nil, Array(text.utf8)) {
      throw .jetStream(what: "cannot send \(subject)", reason: failure)
    }
    let deadline = MonotonicClock.now &+ seconds * 1_000_000_000
    while true {
      let now = MonotonicClock.now
      guard now < deadline else { throw .silent("\(subject) timed out") }
      var found: NatsMessage?
      for item in inbox.take(within: deadline - now) {
        if case .nats(.message(let message)) = item, message.subject == reply {
          found = message
        } else {
          rest.append(item)
        }
      }
      if let message = found {
        if message.bytes.isEmpty, let status = message.header("Status") {
          throw .silent(status == "503" ? "nobody listens to \(subject)" : "status \(status)")
        }
        guard let answer = JSONObject(message.bytes) else {
          throw .jetStream(what: "cannot read the answer to \(subject)", reason: "it is not JSON")
        }
        return answer
      }
    }
  }

  /// Finds the stream of the group, or creates it, and then loads the newest image unless the local one continues.
  mutating func join(
    epoch fresh: String, cached: Cached?, image path: String
  ) throws(GroupError) -> Found {
    var (cached, start) = (cached, MonotonicClock.now)
    while true {
      let state = try openStream(StreamIdentity(epoch: fresh, limits: limits))
      let identity = try StreamIdentity(state.description, stream: settings.stream)
      let differences = identity.differences(from: limits)
      guard differences.isEmpty else { throw .otherLimits(group: settings.name, differences: differences) }
      do throws(GroupError) {
        return try place(state, identity, cached, path)
      } catch {
        // A server that leads a stream since a moment may not know all of it yet, and another image may have replaced one.
        let patience = if case .badImage = error { Self.imagePatience } else { Self.patience }
        if MonotonicClock.now &- start >= patience {
          // The image of this host covers messages that the servers have lost for good.
          guard case .gap = error, cached != nil else { throw error }
          (cached, start) = (nil, MonotonicClock.now)
        }
        rest += inbox.take(within: 0)
        usleep(500_000)
      }
    }
  }

  private mutating func place(
    _ state: StreamState, _ identity: StreamIdentity, _ cached: Cached?, _ path: String
  ) throws(GroupError) -> Found {
    if let cached, cached.epoch == identity.epoch, cached.from >= state.first {
      guard cached.table.position <= state.last else {
        throw .gap(stream: settings.stream, from: state.last + 1, to: cached.table.position)
      }
      return Found(
        identity: identity, replicas: state.replicas, image: .cached, table: cached.table, from: cached.from, rest: rest
      )
    }
    var (found, flaw) = try findImages()
    for published in found where published.epoch == identity.epoch {
      do throws(GroupError) {
        guard published.from >= state.first, published.position <= state.last else {
          throw .gap(stream: settings.stream, from: published.from, to: max(state.first, 1) - 1)
        }
        try load(published, to: path)
      } catch {
        // The image before it serves as well.
        flaw = flaw ?? error
        continue
      }
      return Found(
        identity: identity, replicas: state.replicas, image: .loaded(path), table: MemberTable(), from: published.from,
        rest: rest)
    }
    if let flaw { throw flaw }
    guard state.first <= 1 else { throw .gap(stream: settings.stream, from: 1, to: state.first - 1) }
    return Found(
      identity: identity, replicas: state.replicas, image: .none, table: MemberTable(), from: 1, rest: rest)
  }

  /// Asks for the stream. A leaf node that was just started may not have reached the servers yet.
  private mutating func requestStream() throws(GroupError) -> JSONObject {
    let start = MonotonicClock.now
    while true {
      do throws(GroupError) {
        return try request(JetStream.streamInfo(settings.stream), "")
      } catch {
        guard case .silent = error, MonotonicClock.now &- start < settings.timeout else { throw error }
        usleep(100_000)
      }
    }
  }

  private mutating func openStream(_ identity: StreamIdentity) throws(GroupError) -> StreamState {
    var copies = settings.replicas ?? 3
    let start = MonotonicClock.now
    while true {
      let answer = try requestStream()
      if let state = StreamState(answer) { return state }
      if waits(for: answer, since: start) { continue }
      guard let failure = JetStream.failure(answer), failure.error == JetStream.Failure.streamNotFound else {
        throw .jetStream(
          what: "cannot use stream \(settings.stream)",
          reason: JetStream.failure(answer)?.description ?? "the answer is not understood")
      }
      let created = try request(
        JetStream.createStream(settings.stream),
        JetStream.logConfiguration(settings, description: identity.text, replicas: copies), seconds: 10)
      if let state = StreamState(created) { return state }
      if waits(for: created, since: start) { continue }
      guard let failure = JetStream.failure(created) else { continue }
      if failure.error == JetStream.Failure.noReplicasOutsideCluster && settings.replicas == nil && copies > 1 {
        copies = 1
      } else if failure.error != JetStream.Failure.streamNameInUse {
        throw .jetStream(what: "cannot create stream \(settings.stream)", reason: failure.description)
      }
    }
  }

  /// Waits a moment if servers that start cannot answer yet.
  private func waits(for answer: JSONObject, since start: UInt64) -> Bool {
    guard JetStream.failure(answer)?.isTransient == true, MonotonicClock.now &- start < settings.timeout else {
      return false
    }
    usleep(200_000)
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
      throw .jetStream(what: "cannot read bucket \(settings.bucket)", reason: failure.description)
    }
    guard let data = answer.object("message")?.string("data"), let text = Base64.decode(data),
      let facts = text.withUnsafeBytes({ JSONObject($0) })
    else {
      throw .badImage(settings.bucket, reason: "its description is not JSON")
    }
    guard let published = PublishedImage(facts) else {
      throw .badImage(settings.bucket, reason: "its description is not that of a group")
    }
    return published
  }

  /// Writes the chunks of an image to a file and verifies them. The leader of the bucket's stream is asked for each: a consumer may
  /// be on a server whose copy lacks them.
  private mutating func load(_ published: PublishedImage, to path: String) throws(GroupError) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw .system("cannot create \(path)") }
    defer { close(file) }
    let subject = PublishedImage.chunkSubject(settings, published.id).quotedAsJSON
    var (hash, size, next) = (SHA256(), 0, UInt64(1))
    for number in 0..<published.chunks {
      let answer = try request(
        JetStream.message(settings.bucketStream), "{\"seq\":\(next),\"next_by_subj\":\(subject)}")
      guard let message = answer.object("message"), let sequence = message.unsigned("seq"),
        let chunk = message.string("data").flatMap(Base64.decode)
      else {
        throw .badImage(settings.bucket, reason: "the servers have \(number) of \(published.chunks) chunks")
      }
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
  }
}
