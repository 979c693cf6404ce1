import CLinux

/// Who is at the other end of a Unix socket, as the kernel recorded it when the peer connected (or listened).
public struct PeerCredentials: Equatable, Sendable {
  public var pid: Int32
  public var uid: UInt32
  public var gid: UInt32

  public init(pid: Int32, uid: UInt32, gid: UInt32) {
    self.pid = pid
    self.uid = uid
    self.gid = gid
  }

  /// Asks the kernel (SO_PEERCRED). The pid is 0 when the peer lives in another pid namespace.
  public init(of descriptor: Int32) throws(SystemError) {
    var credentials = clinux_credentials()
    guard clinux_peer_credentials(descriptor, &credentials) == 0 else {
      throw .last("read the credentials of the peer")
    }
    self.init(pid: credentials.pid, uid: credentials.uid, gid: credentials.gid)
  }
}
