import Glibc

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
