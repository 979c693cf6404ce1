import FeedJSON
import FeedModel
import TestSupport

@testable import FeedGroup

extension SeededRandom {
  mutating func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &self) < probability }
}

/// The servers of a group as a simulation: a stream, a consumer for each member, and what is on its way. Messages and answers
/// are delayed, lost and repeated, consumers lose messages, and while there is no leader nothing is stored.
final class SimulatedStream {
  struct Stored {
    let bytes: [UInt8]
    let time: UInt64
  }

  private struct OnItsWay {
    let due: UInt64
    let order: Int
    let deliver: () -> Void
  }

  private struct Consumer {
    var subject: String
    var next: Int
    var sequence: UInt64 = 0
    var heartbeatAt: UInt64
  }

  var random: SeededRandom
  private(set) var now: UInt64 = 1_000_000_000_000
  private(set) var stored: [Stored] = []
  /// The places of the messages by their identities, also of those that were lost since.
  private var places: [String: Int] = [:]
  private var consumers: [Int: Consumer] = [:]
  private var onItsWay: [OnItsWay] = []
  private var order = 0
  /// The images that members published.
  var images: [SimulatedImage] = []
  /// Until when nothing is stored, because there is no leader.
  private var leaderlessUntil: UInt64 = 0
  /// How likely a message or an answer is lost, and a consumer's message.
  var loss = 0.0
  /// Nanoseconds that everything takes besides.
  var delay: UInt64 = 0
  /// The stream's clock minus that of the members.
  let clockOffset: UInt64 = 5_000_000_000_000_000
  let identity: StreamIdentity
  /// Whether the servers tell their version, so that they are to discard repeated messages.
  private let discardsRepeats: Bool

  init(seed: UInt64, discardsRepeats: Bool) {
    self.discardsRepeats = discardsRepeats
    random = SeededRandom(seed: seed)
    identity = StreamIdentity(epoch: "e", limits: [:])
  }

  /// Calls `body` after a random time, unless it is lost.
  func send(losing loss: Double = 0, _ body: @escaping () -> Void) {
    if random.chance(loss) { return }
    order += 1
    let slow = random.chance(0.05) ? 400_000_000 : 3_000_000
    let due = now + delay + UInt64.random(in: 100_000...UInt64(slow), using: &random)
    onItsWay.append(OnItsWay(due: due, order: order, deliver: body))
  }

  /// Forgets what is on its way.
  func end() { onItsWay.removeAll() }

  /// Loses the last messages, as servers that crash together may.
  func loseTail(of count: Int) { stored.removeLast(min(count, stored.count)) }

  /// Whether an image was made of what is stored.
  func has(_ image: SimulatedImage) -> Bool {
    guard let records = MemberTable(text: image.text)?.records else { return false }
    return image.position <= stored.count
      && records.newest().allSatisfy { record in
        stored[Int(record.sequence) - 1].bytes.withUnsafeBytes(GroupMessage.checksum) == record.checksum
      }
  }

  /// Whether nothing is on its way, and there is a leader.
  var isIdle: Bool { onItsWay.isEmpty && now >= leaderlessUntil }

  func loseLeader(for nanoseconds: UInt64) { leaderlessUntil = now + nanoseconds }

  /// Delivers what is due up to a time. Members act in between by `onStep`.
  func advance(by nanoseconds: UInt64) {
    now += nanoseconds
    while true {
      let due = onItsWay.filter { $0.due <= now }.sorted { ($0.due, $0.order) < ($1.due, $1.order) }
      if due.isEmpty { return }
      onItsWay.removeAll { $0.due <= now }
      for item in due { item.deliver() }
    }
  }

  /// A member's connection broke: its consumer loses its interest.
  func disconnect(_ member: Int) { consumers[member] = nil }

  /// Handles a publication that has arrived. Returns the answer; nil for none.
  func receive(_ member: Int, _ subject: String, identity: String?, _ bytes: [UInt8]) -> String? {
    let (isLeaderless, isInquiry) = (now < leaderlessUntil, subject.hasPrefix("$JS.API.STREAM.INFO.feedd_"))
    // Old servers tell of a stream without a leader.
    if isLeaderless && (discardsRepeats || !isInquiry) { return nil }
    if isInquiry {
      let metadata = discardsRepeats ? ",\"metadata\":{\"_nats.ver\":\"2.15.1\"}" : ""
      let description = self.identity.text.quotedAsJSON
      let cluster = "\"cluster\":{\(isLeaderless ? "" : "\"leader\":\"n1\"")}"
      return "{\"config\":{\"description\":\(description),\"num_replicas\":3\(metadata)},\(cluster),\"state\":"
        + "{\"first_seq\":\(stored.isEmpty ? 0 : 1),\"last_seq\":\(stored.count),\"last_ts\":\"\(stored.last?.time ?? 0)\",\"messages\":\(stored.count)}}"
    }
    if subject.hasPrefix("$JS.API.CONSUMER.CREATE") {
      guard let config = bytes.withUnsafeBytes({ JSONObject($0) })?.object("config"),
        let deliver = config.string("deliver_subject"), let first = config.int("opt_start_seq")
      else { return "{\"error\":{\"code\":400}}" }
      consumers[member] = Consumer(subject: deliver, next: first - 1, heartbeatAt: now + 500_000_000)
      return "{\"name\":\"c\"}"
    }
    if subject.hasPrefix("$JS.API.STREAM.MSG.GET") {
      let sequence = bytes.withUnsafeBytes { JSONObject($0) }?.int("seq") ?? 0
      guard stored.indices.contains(sequence - 1) else { return "{\"error\":{\"code\":404,\"err_code\":10037}}" }
      return "{\"message\":{\"data\":\"\(Base64.encode(stored[sequence - 1].bytes))\"}}"
    }
    if subject.hasPrefix("$JS.API") { return nil }
    // Sometimes the window for duplicates has passed.
    if let identity, let place = places[identity], !random.chance(0.1) {
      // A cluster that has not decided yet says so.
      if random.chance(0.2) { return "{\"error\":{\"code\":409,\"err_code\":10158}}" }
      return "{\"seq\":\(place),\"duplicate\":true}"
    }
    stored.append(Stored(bytes: bytes, time: now + clockOffset))
    if let identity { places[identity] = stored.count }
    return "{\"seq\":\(stored.count)}"
  }

  /// Sends what the consumer of a member has to deliver. `deliver` takes the subject, the reply and the bytes, or a heartbeat.
  func serve(
    _ member: Int, _ deliver: @escaping (_ subject: String, _ reply: String, _ bytes: [UInt8]) -> Void,
    heartbeat: @escaping (_ subject: String, _ last: UInt64) -> Void
  ) {
    guard var consumer = consumers[member] else { return }
    while consumer.next < stored.count, random.chance(0.9) {
      let message = stored[consumer.next]
      consumer.next += 1
      consumer.sequence += 1
      let reply = "$JS.ACK.s.c.1.\(consumer.next).\(consumer.sequence).\(message.time).0"
      let subject = consumer.subject
      if random.chance(loss) { continue }
      deliver(subject, reply, message.bytes)
    }
    if now >= consumer.heartbeatAt {
      consumer.heartbeatAt = now + 500_000_000
      if consumer.next == stored.count { heartbeat(consumer.subject, consumer.sequence) }
    }
    consumers[member] = consumer
  }
}

/// An image in the simulation: the table of the members as text, and the batches up to its position.
struct SimulatedImage {
  let text: String
  let position: UInt64
  let executed: [String]

  init(table: MemberTable, executed: [String]) {
    (text, position, self.executed) = (table.text, table.position, executed)
  }
}

/// One member in the simulation: a machine, its connection, and what it was told.
final class SimulatedMember: GroupTransport {
  struct Outcome: Equatable {
    var isStored = false
    var failure: String?
    /// The member was killed before it told.
    var isForgotten = false
  }

  let index: Int
  let stream: SimulatedStream
  private(set) var machine: GroupMachine!
  private(set) var isConnected = false
  /// Whether it left the group and did not join again.
  private(set) var hasLeft = false
  /// The batches in the order of their execution: name, length and moment of each.
  private(set) var executed: [String] = []
  private(set) var outcomes: [UInt64: Outcome] = [:]
  private(set) var lost: String?
  private var nextBatch: UInt64 = 0
  private var texts: [UInt64: String] = [:]
  private var inFlight: Set<UInt64> = []
  /// The events that the machine has made and the engine has not taken yet.
  private var events: [LogEvent] = []
  private var tickAt: UInt64 = 0
  /// What arrives at once is in order, as on a connection.
  private var connection = 0
  private let settings: GroupSettings
  /// The last image of this host.
  private var image: SimulatedImage?
  private var starts = 0

  init(_ index: Int, _ stream: SimulatedStream, imageBytes: Int = 16 << 20) throws {
    self.index = index
    self.stream = stream
    var settings = try GroupSettings(
      name: "g", nats: NatsSettings(servers: []), host: "h\(index)", member: "m\(index)", version: "1", pid: 1,
      timeout: 3_000_000_000)
    settings.imageBytes = imageBytes
    self.settings = settings
    start(MemberTable())
  }

  private func start(_ table: MemberTable) {
    starts += 1
    machine = GroupMachine(
      settings, stream.identity, table, readingFrom: table.firstToRead, inbox: "i\(index)-\(starts)", self,
      now: stream.now
    ) { [stream] in stream.random.next() }
  }

  func end() {
    machine = nil
    stream.end()
  }

  /// Keeps the state as it is now, for the next start.
  func writeImage() {
    takeEvents()
    image = SimulatedImage(table: machine.table, executed: executed)
  }

  /// Is killed, and begins again from the last image.
  func restart() {
    if isConnected { disconnect() }
    for number in inFlight { outcomes[number, default: Outcome()].isForgotten = true }
    inFlight = []
    events = []
    hasLeft = false
    image = (stream.images + [image].compactMap(\.self)).last(where: stream.has)
    executed = image?.executed ?? []
    start(image.flatMap { MemberTable(text: $0.text) } ?? MemberTable())
    tickAt = 0
    connect()
  }

  /// Begins again after it left the log. It keeps its image if the stream continues that.
  func startOver() {
    if lost?.contains(GroupLog.divergence) == true { image = nil }
    lost = nil
    restart()
  }

  func leave() {
    hasLeft = true
    machine.leave(now: stream.now)
  }

  func rejoin() {
    hasLeft = false
    machine.rejoin(now: stream.now)
  }

  var lastIsStored: Bool { outcomes[nextBatch]?.isStored ?? false }
  var canAppend: Bool { inFlight.count < 4 && lost == nil }

  func connect() {
    isConnected = true
    connection += 1
    machine.didConnect(now: stream.now)
  }

  func disconnect() {
    isConnected = false
    connection += 1
    stream.disconnect(index)
    machine.didDisconnect("cut", now: stream.now)
  }

  /// Appends a batch; `bytes` long, so that it may be several messages.
  func append(bytes: Int) {
    nextBatch += 1
    let name = Array("m\(index)-\(nextBatch);".utf8)
    inFlight.insert(nextBatch)
    let filler = [UInt8](repeating: UInt8(ascii: "x"), count: max(0, bytes - name.count))
    let frames = HeldFrames(copying: name + filler, ByteCounter())
    texts[nextBatch] = Self.summary(frames.frames)
    machine.append(
      LogBatch(
        number: nextBatch, at: Instant(nanoseconds: stream.now), revision: nil, frames: frames.frames, owner: frames),
      now: stream.now)
  }

  private static func summary(_ bytes: UnsafeRawBufferPointer) -> String {
    let name = String(decoding: bytes.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self)
    return "\(name);\(bytes.count)"
  }

  /// Whether its batches have an outcome, and it has read the whole stream and would store more.
  var isSettled: Bool {
    events.isEmpty && inFlight.isEmpty && machine.unreachableSince == nil
      && machine.table.position == stream.stored.count
  }

  /// What it has read, and which batches have no outcome.
  var progress: String {
    "read up to \(machine.table.position) of \(stream.stored.count), no outcome of \(inFlight.sorted()), "
      + (machine.unreachableSince == nil ? "connected" : "unreachable")
  }

  func step() {
    if isConnected {
      let here = connection
      stream.serve(
        index,
        { [unowned self] subject, reply, bytes in
          if here == connection { receive(subject, reply, bytes, nil, nil) }
        },
        heartbeat: { [unowned self] subject, last in
          if here == connection { receive(subject, nil, [], "100", last) }
        })
    }
    if stream.now >= tickAt { tickAt = stream.now + machine.tick(stream.now) }
    events += machine.takeEvents()
    // The engine is another thread: it may append batches before it takes the events of those before them.
    if stream.random.chance(0.5) { takeEvents() }
  }

  private func receive(_ subject: String, _ reply: String?, _ bytes: [UInt8], _ status: String?, _ last: UInt64?) {
    let held = HeldFrames(copying: bytes, ByteCounter())
    machine.receive(
      GroupInput(
        subject: subject, reply: reply, bytes: held.frames, status: status, lastConsumer: last, stalled: nil,
        owner: held),
      now: stream.now)
  }

  /// Does what the engine does with the events.
  private func takeEvents() {
    events += machine.takeEvents()
    defer { events = [] }
    for event in events {
      switch event {
      case .ordered(let number, let at):
        outcomes[number, default: Outcome()].isStored = true
        // The engine no longer has a batch that it refused.
        guard inFlight.remove(number) != nil else { break }
        executed.append("\(texts[number] ?? "?")@\(at.nanoseconds)")
      case .received(let batch):
        executed.append("\(Self.summary(batch.frames))@\(batch.at.nanoseconds)")
      case .failed(let first, let last, let reason):
        for number in first...last {
          outcomes[number, default: Outcome()].failure = reason
          inFlight.remove(number)
        }
      case .lost(let reason): lost = reason
      case .mark(let mark): reach(mark)
      case .stored: break
      }
    }
  }

  /// Computes the digest of the state at a mark, or makes an image.
  private func reach(_ mark: UInt64) {
    let (here, executed) = (starts, executed)
    let purpose = machine.takePurpose(mark)
    stream.send { [unowned self] in
      if here != starts { return }
      switch purpose {
      case .digest(let place): machine.didDigest(place, "\(executed.hashValue)", now: stream.now)
      case .image(let table, let isShared): write(SimulatedImage(table: table, executed: executed), table, isShared)
      case nil: break
      }
    }
  }

  private func write(_ image: SimulatedImage, _ table: MemberTable, _ isShared: Bool) {
    self.image = image
    machine.didWriteImage(
      WrittenImage(
        path: "", bytes: 1, position: table.position, from: table.firstNeeded, isShared: isShared, note: image.text),
      now: stream.now)
    guard isShared else { return }
    stream.images.append(image)
    machine.didPublishImage(
      PublishedImage(
        name: machine.nextImageName, id: "i", size: 1, chunks: 1, digest: "", epoch: "e", position: table.position,
        from: table.firstNeeded, records: table.records), first: 1, now: stream.now)
  }

  // MARK: GroupTransport

  let maxPayload = 0

  func publish(_ subject: String, reply: String?, identity: String?, _ bytes: [UInt8]) -> String? {
    guard isConnected else { return "not connected" }
    let here = connection
    let isLog = !subject.hasPrefix("$JS")
    // What was given to a connection may arrive after it broke.
    stream.send(losing: stream.loss) { [unowned self] in
      guard here == connection || isLog, let answer = stream.receive(index, subject, identity: identity, bytes) else {
        return
      }
      guard let reply else { return }
      stream.send(losing: stream.loss) { [unowned self] in
        if here == connection { receive(reply, nil, Array(answer.utf8), nil, nil) }
      }
    }
    return nil
  }

  func follow(_ subject: String) {}
}
