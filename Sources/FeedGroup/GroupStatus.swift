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

  private var text: String { ByteBuffer.text { append(to: &$0) { "\($0)" } } }

  /// Appends the status as members of a JSON object.
  /// - Parameter time: the text of a time in nanoseconds since 1970.
  public func append(to out: inout ByteBuffer, _ time: (UInt64) -> String) {
    out.append("\"group\":", quoted: name)
    out.append(",\"log\":", quoted: logText(time))
    if let unreachable, !unreachable.reason.isEmpty { out.append(",\"reason\":", quoted: unreachable.reason) }
    out.append(",\"server\":", quoted: server)
    out.append(",\"position\":", integer: position)
    out.append(",\"last\":", integer: max(last, position))
    out.append(",\"lag\":", integer: lag)
    out.append(",\"waitingBytes\":", integer: waitingBytes)
    out.append(",\"streamBytes\":", integer: streamBytes)
    out.append(",\"replicas\":", integer: replicas)
    if !leader.isEmpty { out.append(",\"leader\":", quoted: leader) }
    out.append(",\"members\":[")
    for (place, member) in members.enumerated() {
      if place > 0 { out.append(UInt8(ascii: ",")) }
      append(member, to: &out, time)
    }
    out.append(UInt8(ascii: "]"))
    if let image {
      out.append(",\"image\":{\"position\":", integer: image.position)
      out.append(",\"bytes\":", integer: image.bytes)
      out.append(",\"time\":", quoted: time(image.moment))
      out.append(",\"host\":", quoted: image.host)
      out.append(UInt8(ascii: "}"))
    }
    if let digest {
      out.append(",\"digest\":{\"position\":", integer: digest.mark)
      out.append(",\"value\":", quoted: digest.value)
      out.append(UInt8(ascii: "}"))
    }
  }

  private func append(_ member: Member, to out: inout ByteBuffer, _ time: (UInt64) -> String) {
    out.append("{\"host\":", quoted: member.host)
    out.append(",\"member\":", quoted: member.member)
    out.append(",\"version\":", quoted: member.version)
    out.append(",\"pid\":", integer: member.pid)
    out.append(",\"seen\":", quoted: time(member.seen))
    if let agrees = member.agrees {
      out.append(",\"agrees\":")
      out.append(agrees ? "true" : "false")
    }
    out.append(member.isSelf ? ",\"self\":true}" : "}")
  }
}
