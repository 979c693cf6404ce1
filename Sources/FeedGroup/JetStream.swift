import FeedJSON

/// The requests to JetStream and its answers: JSON on subjects that begin with `$JS.API`, as nats.io documents them.
enum JetStream {
  static let prefix = "$JS.API"

  static func streamInfo(_ stream: String) -> String { "\(prefix).STREAM.INFO.\(stream)" }
  static func createStream(_ stream: String) -> String { "\(prefix).STREAM.CREATE.\(stream)" }
  static func purge(_ stream: String) -> String { "\(prefix).STREAM.PURGE.\(stream)" }
  static func message(_ stream: String) -> String { "\(prefix).STREAM.MSG.GET.\(stream)" }
  static func createConsumer(_ stream: String) -> String { "\(prefix).CONSUMER.CREATE.\(stream)" }
  static func deleteConsumer(_ stream: String, _ name: String) -> String {
    "\(prefix).CONSUMER.DELETE.\(stream).\(name)"
  }

  /// The stream with a group's log. A full one refuses new messages and keeps the old ones.
  static func logConfiguration(_ settings: GroupSettings, description: String, replicas: Int) -> String {
    "{\"name\":\"\(settings.stream)\",\"subjects\":[\"\(settings.subject)\"],\"description\":\(description.quotedAsJSON),"
      + "\"retention\":\"limits\",\"storage\":\"file\",\"discard\":\"new\",\"max_consumers\":-1,\"max_msgs\":-1,"
      + "\"max_bytes\":-1,\"max_age\":0,\"max_msg_size\":-1,\"num_replicas\":\(replicas),"
      + "\"duplicate_window\":120000000000}"
  }

  /// The stream of an object store bucket.
  static func bucketConfiguration(_ settings: GroupSettings, replicas: Int) -> String {
    let bucket = settings.bucket
    return "{\"name\":\"\(settings.bucketStream)\",\"subjects\":[\"$O.\(bucket).C.>\",\"$O.\(bucket).M.>\"],"
      + "\"description\":\"images of the feeds of group \(settings.name)\",\"retention\":\"limits\",\"storage\":\"file\","
      + "\"discard\":\"new\",\"max_consumers\":-1,\"max_msgs\":-1,\"max_bytes\":-1,\"max_age\":0,\"max_msg_size\":-1,"
      + "\"num_replicas\":\(replicas),\"allow_rollup_hdrs\":true,\"duplicate_window\":120000000000}"
  }

  /// A consumer that sends all messages from one on to `subject`, in order and without acknowledgements. It ends by itself when
  /// nobody listens.
  static func consumer(_ stream: String, deliver subject: String, from sequence: UInt64) -> String {
    "{\"stream_name\":\"\(stream)\",\"config\":{\"deliver_subject\":\"\(subject)\","
      + "\"deliver_policy\":\"by_start_sequence\",\"opt_start_seq\":\(sequence),\"ack_policy\":\"none\","
      + "\"replay_policy\":\"instant\",\"flow_control\":true,\"idle_heartbeat\":500000000,\"mem_storage\":true,"
      + "\"num_replicas\":1}}"
  }

  struct Failure: Error, Equatable {
    let code: Int
    let error: Int
    let description: String

    /// JetStream's numbers of errors that mean something here.
    static let streamNotFound = 10059
    static let streamNameInUse = 10058
    static let noReplicasOutsideCluster = 10074
    static let messageNotFound = 10037
    private static let subjectsOverlap = 10065
    /// The remedy of most refusals.
    static let access = "check that JetStream is enabled (nats-server --jetstream) and that the user may use it"
    static let room = "free space on the servers or raise their JetStream limits"
    /// The servers of a cluster have not found each other yet: there is no leader, or too few for the copies.
    var isTransient: Bool { error == 10005 || error == 10008 }
    /// The servers have the message already, and have not decided yet whether they store it.
    var isUndecided: Bool { error == 10158 }
    /// The publication was refused because a limit or the disk is full.
    var isFull: Bool { [10077, 10047, 10023, 10028, 10035].contains(error) || description.contains("maximum") }

    /// What the operator can do.
    /// - Parameter stream: the stream that is to be created or used.
    func remedy(_ stream: String) -> String {
      switch error {
      case Self.subjectsOverlap:
        "find the stream that takes the subjects of \(stream) and change it, or choose another name with --group"
      case Self.noReplicasOutsideCluster: "lower \"replicas\" in the configuration, or run a cluster of servers"
      default: isFull ? Self.room : Self.access
      }
    }
  }

  /// The failure that an answer reports; nil for a success.
  static func failure(_ answer: JSONObject?) -> Failure? {
    guard let answer else { return Failure(code: 500, error: 0, description: "the answer is not JSON") }
    guard let error = answer.object("error") else { return nil }
    return Failure(
      code: error.int("code") ?? 0, error: error.int("err_code") ?? 0,
      description: error.string("description") ?? "unknown error")
  }

  /// The checksum of the message that an answer contains; nil if it contains none.
  static func checksum(_ answer: JSONObject?) -> UInt32? {
    let bytes = answer?.object("message")?.string("data").flatMap(Base64.decode)
    return bytes?.withUnsafeBytes(GroupMessage.checksum)
  }

  /// What the reply subject of a delivered message says of its place.
  struct Place {
    let stream: UInt64
    let consumer: UInt64
    /// When the stream stored it, in nanoseconds since 1970.
    let time: UInt64
    /// The messages that follow it.
    let pending: UInt64

    /// - Parameter reply: `$JS.ACK.stream.consumer.deliveries.sequence.sequence.time.pending`, or with a domain and an account
    ///   before the stream.
    init?(_ reply: String?) {
      guard let reply, reply.hasPrefix("$JS.ACK.") else { return nil }
      let parts = reply.split(separator: ".", omittingEmptySubsequences: false)
      let first = parts.count >= 11 ? 4 : 2
      guard parts.count >= first + 7, let stream = UInt64(parts[first + 3]), let consumer = UInt64(parts[first + 4]),
        let time = UInt64(parts[first + 5]), let pending = UInt64(parts[first + 6])
      else { return nil }
      (self.stream, self.consumer, self.time, self.pending) = (stream, consumer, time, pending)
    }
  }
}

/// The state of a stream, as `STREAM.INFO` answers.
struct StreamState: Equatable, Sendable {
  /// The last message, and when the servers stored it.
  struct End: Equatable, Sendable {
    let sequence: UInt64
    let time: String
  }

  /// Asks for the messages too that are missing between the first and the last one.
  static let questionForGaps = "{\"deleted_details\":true}"

  var description: String
  var first: UInt64
  /// The first message from which on none is missing: the first one, or the one behind the last gap, if the servers were asked for
  /// gaps. An operator may remove a message, and servers skip one that their disk has damaged.
  var unbroken: UInt64
  var end: End
  var messages: Int
  var bytes: Int
  var replicas: Int
  /// The server that leads the stream; empty outside a cluster.
  var leader: String
  /// Whether the servers of a cluster know no leader. nats-server 2.9 tells the rest nevertheless, also one that is cut off from the
  /// others.
  var isLeaderless: Bool
  /// The version of that server; nil before 2.11, which does not tell.
  var version: String?

  init?(_ answer: JSONObject) {
    guard let config = answer.object("config"), let state = answer.object("state") else { return nil }
    description = config.string("description") ?? ""
    first = state.unsigned("first_seq") ?? 0
    unbroken = max(first, state.integers("deleted").compactMap { UInt64(exactly: $0) }.max().map { $0 &+ 1 } ?? 0)
    end = End(sequence: state.unsigned("last_seq") ?? 0, time: state.string("last_ts") ?? "")
    messages = state.int("messages") ?? 0
    bytes = state.int("bytes") ?? 0
    replicas = config.int("num_replicas") ?? 1
    leader = answer.object("cluster")?.string("leader") ?? ""
    isLeaderless = leader.isEmpty && answer.object("cluster") != nil
    version = config.object("metadata")?.string("_nats.ver")
  }

  var last: UInt64 { end.sequence }

  /// Whether the servers keep equal copies, and discard a repeated message on all of them or on none. Before 2.11, each copy decides
  /// for itself whether it discards a message, and counts those, so after crashes copies may have different ones under one number.
  var isSafeInCluster: Bool { replicas == 1 || version != nil }
}

/// A small JSON object, copied out of its text: what JetStream answers, and what members tell each other.
struct JSONObject {
  private indirect enum Value {
    case text(String)
    case number(Int)
    case bool(Bool)
    case object(JSONObject)
    case list([JSONObject])
    case numbers([Int])
  }

  private var values: [String: Value] = [:]

  /// Returns nil if the text is no JSON object.
  init?(_ text: UnsafeRawBufferPointer) {
    var scanner = JSONScanner(maxDepth: 32)
    guard let view = try? scanner.scan(text), view.kind == .object else { return nil }
    self.init(view)
  }

  init?(_ text: String) {
    var text = text
    guard let object = text.withUTF8({ JSONObject(UnsafeRawBufferPointer($0)) }) else { return nil }
    self = object
  }

  private init(_ view: JSONView) {
    for member in view.members {
      guard let key = member.key.string else { continue }
      switch member.value.kind {
      case .string: values[key] = member.value.string.map { .text($0) }
      case .number: values[key] = member.value.int.map { .number($0) }
      case .object: values[key] = .object(JSONObject(member.value))
      case .array:
        let numbers = member.value.elements.compactMap { $0.kind == .number ? $0.int : nil }
        values[key] =
          numbers.isEmpty
          ? .list(member.value.elements.filter { $0.kind == .object }.map { JSONObject($0) }) : .numbers(numbers)
      default: values[key] = member.value.bool.map { .bool($0) }
      }
    }
  }

  func string(_ name: String) -> String? { if case .text(let text) = values[name] { text } else { nil } }
  func int(_ name: String) -> Int? { if case .number(let number) = values[name] { number } else { nil } }
  func unsigned(_ name: String) -> UInt64? { int(name).flatMap { UInt64(exactly: $0) } }
  func bool(_ name: String) -> Bool? { if case .bool(let bool) = values[name] { bool } else { nil } }
  func object(_ name: String) -> JSONObject? { if case .object(let object) = values[name] { object } else { nil } }
  func objects(_ name: String) -> [JSONObject] { if case .list(let list) = values[name] { list } else { [] } }
  func integers(_ name: String) -> [Int] { if case .numbers(let numbers) = values[name] { numbers } else { [] } }

  func numbers(_ name: String) -> [String: Int] {
    object(name)?.values.compactMapValues { if case .number(let number) = $0 { number } else { nil } } ?? [:]
  }

  func checksums(_ name: String) -> [String: UInt32] { numbers(name).mapValues { UInt32(truncatingIfNeeded: $0) } }
}

extension Dictionary where Key == String, Value: FixedWidthInteger {
  /// The members of a JSON object, by name.
  var membersAsJSON: String {
    sorted { $0.key < $1.key }.map { "\($0.key.quotedAsJSON):\($0.value)" }.joined(separator: ",")
  }
}
