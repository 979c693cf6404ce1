/// The member `group` of a configuration (Protocol/groups.md): the group of hosts that the daemon joins.
public struct GroupFacts: Sendable, Equatable {
  public var name: String?
  /// The URLs of NATS servers.
  public var log: [String] = []
  public var host: String?
  public var user: String?
  public var password: String?
  public var token: String?
  /// Paths of files.
  public var credentials: String?
  public var authority: String?
  public var certificate: String?
  public var key: String?
  /// Copies of the stream that the servers keep.
  public var replicas: Int?

  public init() {}
}
