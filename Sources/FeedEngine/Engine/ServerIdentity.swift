/// What the daemon says of itself in the answer to `hello`.
public struct ServerIdentity: Sendable {
  public let version: String
  /// A random string naming one unbroken history of revisions.
  public let epoch: String
  public let pid: Int32
  /// The user the daemon runs as: it and root may use the reserved connections.
  public let uid: UInt32
  public let durability: String
  /// The directory of the state; nil when nothing is kept.
  public let state: String?

  public init(version: String, epoch: String, pid: Int32, uid: UInt32, durability: String, state: String? = nil) {
    self.version = version
    self.epoch = epoch
    self.pid = pid
    self.uid = uid
    self.durability = durability
    self.state = state
  }
}
