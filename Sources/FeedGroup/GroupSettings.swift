import FeedModel

/// A group, and this host as a member of it.
public struct GroupSettings: Sendable, Equatable {
  /// The name of the group: 1 to 32 letters, digits, `-` or `_`.
  public var name: String
  public var nats: NatsSettings
  /// The name of this host for people.
  public var host: String
  /// The random name of this member, which its state directory keeps.
  public var member: String
  /// The version of the program, and its process.
  public var version: String
  public var pid: Int
  /// Copies of the stream that the servers keep, used when the stream is created; nil for 3 in a cluster and 1 otherwise.
  public var replicas: Int?
  /// Nanoseconds after which a change that is not stored is refused.
  public var timeout: UInt64
  /// Batches between two comparisons of the digests of all members.
  public var markBatches = 4096
  /// Bytes of log after which a member publishes an image.
  public var imageBytes = 16 << 20

  public init(
    name: String, nats: NatsSettings, host: String, member: String, version: String, pid: Int, timeout: UInt64
  ) throws(GroupError) {
    let isValid = name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
    guard isValid, (1...32).contains(name.utf8.count) else { throw .badName(name) }
    (self.name, self.nats, self.host, self.member) = (name, nats, host, member)
    (self.version, self.pid, self.timeout) = (version, pid, timeout)
  }

  /// The stream with the log, and the subject of its messages.
  var stream: String { "feedd_\(name)" }
  var subject: String { "feedd.\(name).log" }
  /// The bucket with the images, and the stream that JetStream's object store keeps it in.
  public var bucket: String { "feedd_\(name)" }
  var bucketStream: String { "OBJ_\(bucket)" }
}

/// What the description of a group's stream says: who may follow it.
struct StreamIdentity: Equatable {
  /// The version of the messages.
  static let format = 1
  /// The versions of the rules by which members can execute requests. The first groups had rules 2.
  private static let knownRules = 2...ExecutionRules.current

  /// A random name of the history.
  let epoch: String
  /// The limits that decide over requests.
  let limits: [String: Int]
  /// The version of the rules by which all members execute requests: that of the daemon which created the stream.
  var rules = ExecutionRules.current

  var text: String {
    let limits = limits.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",")
    return "{\"feedd\":\(Self.format),\"rules\":\(rules),\"epoch\":\"\(epoch)\",\"limits\":{\(limits)}}"
  }
}

extension StreamIdentity {
  /// - Parameter text: the description of the stream.
  init(_ text: String, stream: String) throws(GroupError) {
    guard let facts = JSONObject(text), let format = facts.int("feedd"), let epoch = facts.string("epoch") else {
      throw .foreignStream(stream, reason: "its description is not that of a group")
    }
    guard format == Self.format else { throw .otherVersion(stream: stream, found: "format \(format)") }
    let rules = facts.int("rules") ?? 0
    guard Self.knownRules.contains(rules) else { throw .otherVersion(stream: stream, found: "rules \(rules)") }
    self.init(epoch: epoch, limits: facts.numbers("limits"), rules: rules)
  }

  /// The limits that decide over requests, and that two members must therefore have in common.
  static func deciding(_ all: [(name: String, value: Int)]) -> [String: Int] {
    let local: Set<String> = [
      "maxConnections", "maxConnectionsPerUser", "reservedConnections", "maxWatches", "maxWatchesPerUser",
      "maxQueue", "maxQueuePerUser", "historyBytes", "maxHistoryBytes", "historySeconds", "frameTimeout",
      "bookmarkInterval", "maxQueryBytes",
    ]
    return Dictionary(uniqueKeysWithValues: all.filter { !local.contains($0.name) }.map { ($0.name, $0.value) })
  }

  /// The limits of this member that differ, as `name 10 here, 20 in the group`.
  func differences(from own: [String: Int]) -> [String] {
    limits.keys.sorted().filter { own[$0] != limits[$0] }.map { name in
      "\(name) is \(own[name].map { "\($0)" } ?? "unknown") here and \(limits[name] ?? 0) in the group"
    }
  }
}
