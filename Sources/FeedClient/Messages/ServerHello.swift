import FeedJSON

/// The result of `hello`: who answers.
public struct ServerHello: Equatable, Sendable {
  public var protocolVersion: Int
  /// The daemon's name and version as it calls itself; empty when it does not say.
  public var server: String
  public var epoch: String
  public var revision: UInt64
  /// The largest frame that the daemon takes, in bytes of JSON.
  public var maxFrame: Int

  /// The limit of a daemon that was not configured otherwise.
  public static let defaultMaxFrame = 16 << 20

  public init(
    protocolVersion: Int = 1, server: String = "", epoch: String, revision: UInt64,
    maxFrame: Int = ServerHello.defaultMaxFrame
  ) {
    self.protocolVersion = protocolVersion
    self.server = server
    self.epoch = epoch
    self.revision = revision
    self.maxFrame = maxFrame
  }

  /// Reads the `result` of a response.
  public init(_ result: JSONView) throws(MalformedMessage) {
    let reader = MemberReader(object: result, place: "hello")
    guard let version = result.member("protocol")?.int else {
      throw MalformedMessage("hello: \"protocol\" is not a number")
    }
    protocolVersion = version
    epoch = try reader.string("epoch")
    revision = try reader.revision("revision")
    let name = result.member("server")
    server = name?.string ?? Self.join(name?.member("name")?.string, name?.member("version")?.string)
    let limit = result.member("limits")?.member("maxFrame")?.int
    maxFrame = limit.flatMap { $0 > 0 ? $0 : nil } ?? Self.defaultMaxFrame
  }

  private static func join(_ name: String?, _ version: String?) -> String {
    [name, version].compactMap { $0 }.joined(separator: " ")
  }
}
