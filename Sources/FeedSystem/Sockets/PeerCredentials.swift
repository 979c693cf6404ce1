import CLinux
import Glibc

/// The process and user at the other end of a Unix socket, as the kernel recorded them when the peer connected or listened.
public struct PeerCredentials: Equatable, Sendable {
  public var pid: Int32
  public var uid: UInt32
  public var gid: UInt32
  /// The supplementary groups, in the order of the kernel. `gid` may be one of them.
  public var groups: [UInt32]

  public init(pid: Int32, uid: UInt32, gid: UInt32, groups: [UInt32]) {
    self.pid = pid
    self.uid = uid
    self.gid = gid
    self.groups = groups
  }

  /// Reads the credentials of a connected socket (SO_PEERCRED, SO_PEERGROUPS). The pid is 0 if the peer is in a different
  /// pid namespace.
  public init(of descriptor: Int32) throws(SystemError) {
    var credentials = clinux_credentials()
    guard clinux_peer_credentials(descriptor, &credentials) == 0 else {
      throw .last("read the credentials of the peer")
    }
    self.init(pid: credentials.pid, uid: credentials.uid, gid: credentials.gid, groups: Self.groups(of: descriptor))
  }

  /// The supplementary groups; empty if the kernel does not report them.
  private static func groups(of descriptor: Int32) -> [UInt32] {
    let count = clinux_peer_groups(descriptor, nil, 0)
    guard count > 0 else { return [] }
    return [UInt32](unsafeUninitializedCapacity: Int(count)) { groups, written in
      written = clinux_peer_groups(descriptor, groups.baseAddress, count) == count ? Int(count) : 0
    }
  }
}

/// Looks up users and groups of this machine.
public enum Accounts {
  /// Returns the number of a user; nil if there is no such user.
  public static func user(named name: String) -> UInt32? {
    guard let entry = getpwnam(name) else { return nil }
    return entry.pointee.pw_uid
  }

  /// Returns the number of a group and its listed members; nil if there is no such group. Users whose primary group it is
  /// are usually not listed.
  public static func group(named name: String) -> (gid: UInt32, members: [UInt32])? {
    guard let entry = getgrnam(name) else { return nil }
    let gid = entry.pointee.gr_gid
    var names: [String] = []
    var next = entry.pointee.gr_mem
    while let member = next?.pointee {
      names.append(String(cString: member))
      next = next?.successor()
    }
    return (gid, names.compactMap(user(named:)))
  }
}
