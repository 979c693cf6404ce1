import CLinux

/// Who is at the other end of a Unix socket, as the kernel recorded it when the peer connected (or listened).
public struct PeerCredentials: Equatable, Sendable {
  public var pid: Int32
  public var uid: UInt32
  public var gid: UInt32
  /// The supplementary groups, in the kernel's order; `gid` may be among them.
  public var groups: [UInt32]

  public init(pid: Int32, uid: UInt32, gid: UInt32, groups: [UInt32]) {
    self.pid = pid
    self.uid = uid
    self.gid = gid
    self.groups = groups
  }

  /// Asks the kernel (SO_PEERCRED, SO_PEERGROUPS). The pid is 0 when the peer lives in another pid namespace.
  public init(of descriptor: Int32) throws(SystemError) {
    var credentials = clinux_credentials()
    guard clinux_peer_credentials(descriptor, &credentials) == 0 else {
      throw .last("read the credentials of the peer")
    }
    self.init(pid: credentials.pid, uid: credentials.uid, gid: credentials.gid, groups: Self.groups(of: descriptor))
  }

  /// None when the kernel does not tell them.
  private static func groups(of descriptor: Int32) -> [UInt32] {
    let count = clinux_peer_groups(descriptor, nil, 0)
    guard count > 0 else { return [] }
    return [UInt32](unsafeUninitializedCapacity: Int(count)) { groups, written in
      written = clinux_peer_groups(descriptor, groups.baseAddress, count) == count ? Int(count) : 0
    }
  }
}
