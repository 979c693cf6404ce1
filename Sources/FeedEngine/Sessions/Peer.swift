/// Who is at the other end of a connection, as the kernel says.
public struct Peer: Sendable, Hashable {
  public let uid: UInt32
  public let gid: UInt32
  public let pid: Int32
  /// Its supplementary groups.
  public let groups: [UInt32]

  public init(uid: UInt32, gid: UInt32, pid: Int32, groups: [UInt32] = []) {
    self.uid = uid
    self.gid = gid
    self.pid = pid
    self.groups = groups
  }
}
