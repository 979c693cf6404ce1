import FeedJSON

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

  private var text: String {
    var out = ByteBuffer()
    append(to: &out) { "\($0)" }
    return String(decoding: out.bytes, as: UTF8.self)
  }

  /// Appends the status as members of a JSON object.
  /// - Parameter time: the text of a time in nanoseconds since 1970.
  public func append(to out: inout ByteBuffer, _ time: (UInt64) -> String) {
    func member(_ name: StaticString) {
      out.append(",\"")
      out.append(name)
      out.append("\":")
    }
    out.append("\"group\":")
    out.appendJSONString(name)
    member("log")
    out.appendJSONString(logText(time))
    if let unreachable, !unreachable.reason.isEmpty {
      member("reason")
      out.appendJSONString(unreachable.reason)
    }
    member("server")
    out.appendJSONString(server)
    member("position")
    out.append(integer: position)
    member("last")
    out.append(integer: max(last, position))
    member("lag")
    out.append(integer: lag)
    member("waitingBytes")
    out.append(integer: waitingBytes)
    member("streamBytes")
    out.append(integer: streamBytes)
    member("replicas")
    out.append(integer: replicas)
    if !leader.isEmpty {
      member("leader")
      out.appendJSONString(leader)
    }
    member("members")
    out.append(UInt8(ascii: "["))
    for (place, member) in members.enumerated() {
      if place > 0 { out.append(UInt8(ascii: ",")) }
      append(member, to: &out, time)
    }
    out.append(UInt8(ascii: "]"))
    if let image {
      member("image")
      out.append("{\"position\":")
      out.append(integer: image.position)
      out.append(",\"bytes\":")
      out.append(integer: image.bytes)
      out.append(",\"time\":")
      out.appendJSONString(time(image.moment))
      out.append(",\"host\":")
      out.appendJSONString(image.host)
      out.append(UInt8(ascii: "}"))
    }
    if let digest {
      member("digest")
      out.append("{\"position\":")
      out.append(integer: digest.mark)
      out.append(",\"value\":")
      out.appendJSONString(digest.value)
      out.append(UInt8(ascii: "}"))
    }
  }

  private func append(_ member: Member, to out: inout ByteBuffer, _ time: (UInt64) -> String) {
    out.append("{\"host\":")
    out.appendJSONString(member.host)
    out.append(",\"member\":")
    out.appendJSONString(member.member)
    out.append(",\"version\":")
    out.appendJSONString(member.version)
    out.append(",\"pid\":")
    out.append(integer: member.pid)
    out.append(",\"seen\":")
    out.appendJSONString(time(member.seen))
    if let agrees = member.agrees {
      out.append(",\"agrees\":")
      out.append(agrees ? "true" : "false")
    }
    out.append(member.isSelf ? ",\"self\":true}" : "}")
  }
}
