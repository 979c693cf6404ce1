import FeedJSON
import FeedModel
import FeedSystem

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

/// A second in nanoseconds.
let second: UInt64 = 1_000_000_000

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
    "{\"feedd\":\(Self.format),\"rules\":\(rules),\"epoch\":\"\(epoch)\",\"limits\":{\(limits.membersAsJSON)}}"
  }
}

extension StreamIdentity {
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

/// What a member knows of its group, for people.
public struct GroupStatus: Sendable, Equatable {
  public struct Member: Sendable, Equatable {
    public var host: String
    public var member: String
    public var version: String
    public var pid: Int
    /// When its last message was stored, in nanoseconds since 1970.
    public var seen: UInt64
    public var isSelf: Bool
    /// Whether its digest at the last mark is the one of most members; nil if it did not take part.
    public var agrees: Bool?
  }

  public var name = ""
  public var epoch = ""
  /// The URL of the connected server; empty if there is none.
  public var server = ""
  /// Since when the log is unreachable, in nanoseconds since 1970, and why; nil if it is reachable.
  public var unreachable: (since: UInt64, reason: String)?
  /// Whether this member left the group until it is told to join again.
  public var hasLeft = false
  /// The last message that was read, the last one of the stream, and the bytes of batches that wait for their execution.
  public var position: UInt64 = 0
  public var last: UInt64 = 0
  public var waitingBytes = 0
  public var streamBytes = 0
  public var replicas = 0
  public var leader = ""
  public var members: [Member] = []
  /// The newest image: its position, bytes, moment and host.
  public var image: (position: UInt64, bytes: Int, moment: UInt64, host: String)?
  /// The newest mark whose digest is known, and the digest.
  public var digest: (mark: UInt64, value: String)?

  public init() {}
  public static func == (a: GroupStatus, b: GroupStatus) -> Bool { a.text == b.text }

  /// The messages that this member has not read.
  public var lag: UInt64 { last > position ? last - position : 0 }

  /// `connected`, or since when the log is unreachable.
  public func logText(_ time: (UInt64) -> String) -> String {
    if hasLeft { return "left" }
    return unreachable.map { "unreachable since \(time($0.since))" } ?? "connected"
  }

  private var text: String { ByteBuffer.text { append(to: &$0) { "\($0)" } } }

  /// Appends the status as members of a JSON object.
  /// - Parameter time: the text of a time in nanoseconds since 1970.
  public func append(to out: inout ByteBuffer, _ time: (UInt64) -> String) {
    out.append(string: "\"group\":\(name.quotedAsJSON),\"log\":\(logText(time).quotedAsJSON)")
    if let unreachable, !unreachable.reason.isEmpty { out.append(",\"reason\":", quoted: unreachable.reason) }
    out.append(
      string: ",\"server\":\(server.quotedAsJSON),\"position\":\(position),\"last\":\(max(last, position)),"
        + "\"lag\":\(lag),\"waitingBytes\":\(waitingBytes),\"streamBytes\":\(streamBytes),\"replicas\":\(replicas)")
    if !leader.isEmpty { out.append(",\"leader\":", quoted: leader) }
    out.append(string: ",\"members\":[\(members.map { $0.text(time) }.joined(separator: ","))]")
    if let image {
      out.append(
        string: ",\"image\":{\"position\":\(image.position),\"bytes\":\(image.bytes),"
          + "\"time\":\(time(image.moment).quotedAsJSON),\"host\":\(image.host.quotedAsJSON)}")
    }
    if let digest {
      out.append(string: ",\"digest\":{\"position\":\(digest.mark),\"value\":\(digest.value.quotedAsJSON)}")
    }
  }
}

extension GroupStatus.Member {
  fileprivate func text(_ time: (UInt64) -> String) -> String {
    "{\"host\":\(host.quotedAsJSON),\"member\":\(member.quotedAsJSON),\"version\":\(version.quotedAsJSON),\"pid\":\(pid),"
      + "\"seen\":\(time(seen).quotedAsJSON)\(agrees.map { ",\"agrees\":\($0)" } ?? "")\(isSelf ? ",\"self\":true" : "")}"
  }
}

/// An error of a group: what failed, and what the operator can do.
public enum GroupError: Error, Equatable, Sendable, CustomStringConvertible {
  case noLibrary(String)
  /// A server refused the connection, or the settings are wrong.
  case refused(servers: String, reason: String)
  /// No server answered, and there is no copy of the state on this host.
  case unreachable(servers: String, reason: String)
  case jetStream(what: String, reason: String, remedy: String? = nil)
  /// The stream has the name of the group's, but belongs to something else.
  case foreignStream(String, reason: String)
  /// The stream was written by another version of the format.
  case otherVersion(stream: String, found: String)
  /// The limits that decide over requests differ from those of the group.
  case otherLimits(group: String, differences: [String])
  /// Messages that are needed are missing in the stream.
  case gap(stream: String, from: UInt64, to: UInt64)
  /// The stream has no message any more, and an image was made of some.
  case emptied(stream: String, covered: UInt64)
  case badImage(String, reason: String)
  /// JetStream does not answer: the servers have no leader, or JetStream is not enabled.
  case silent(String)
  case badName(String)
  case system(String)
  /// The configuration cannot be used in a group.
  case configuration(String)

  /// Whether the servers do not answer, so that a member with an image begins cut off.
  var isAbsence: Bool {
    switch self {
    case .unreachable, .silent: true
    default: false
    }
  }

  /// The reason of a failed connection, without the remedy.
  var cause: String {
    switch self {
    case .noLibrary(let reason), .refused(_, let reason), .unreachable(_, let reason): reason
    default: description
    }
  }

  public var description: String {
    switch self {
    case .noLibrary(let reason): "cannot join a group: \(reason); install it with: apt-get install libnats3.4"
    case .refused(let servers, let reason):
      "cannot connect to \(servers): \(reason); check the URL of --log and the credentials in the configuration"
    case .unreachable(let servers, let reason):
      "cannot reach \(servers): \(reason), and this host has no copy of the group's state; start nats-server or correct "
        + "--log"
    case .jetStream(let what, let reason, let remedy): "\(what): \(reason); \(remedy ?? JetStream.Failure.access)"
    case .silent(let reason):
      "JetStream does not answer: \(reason); check that it is enabled (nats-server --jetstream), that the user may use it, and that a "
        + "majority of the servers runs"
    case .foreignStream(let name, let reason):
      "stream \(name) does not belong to this group: \(reason); choose another name with --group, or delete the stream"
    case .otherVersion(let stream, let found):
      "stream \(stream) was written by another version (\(found)); run the same version of feedd on all hosts"
    case .otherLimits(let group, let differences):
      "the limits of group \(group) are others: \(differences.joined(separator: ", ")); start feedd with the limits of the "
        + "group"
    case .gap(let stream, let first, let last):
      "messages \(first) to \(last) of stream \(stream) are missing and no image covers them; publish one with 'feedclient group "
        + "image' on a member that has the state, or remove the stream and begin anew"
    case .emptied(let stream, let covered):
      "stream \(stream) is empty, and an image covers its messages up to \(covered); restore the stream on the servers, or remove it "
        + "to begin anew: each host keeps its image"
    case .badImage(let name, let reason):
      "image \(name) does not verify: \(reason); publish another one with: feedclient group image"
    case .badName(let name): "group name '\(name)': expected 1 to 32 letters, digits, '-' or '_'"
    case .system(let reason): reason
    case .configuration(let reason): reason
    }
  }
}
