import CLinux
import Glibc

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

/// The users and groups of this machine.
public enum Accounts {
  /// The number of a user; nil when there is no such user.
  public static func user(named name: String) -> UInt32? {
    guard let entry = getpwnam(name) else { return nil }
    return entry.pointee.pw_uid
  }

  /// The number of a group and the users listed as its members; nil when there is no such group. Users whose first group it
  /// is are not listed there.
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
