import Glibc

/// Who this process is.
public enum ProcessIdentity {
  public static var pid: Int32 { getpid() }
  public static var uid: UInt32 { geteuid() }
  public static var gid: UInt32 { getegid() }

  /// Ends the process.
  public static func exit(_ code: Int32) -> Never { Glibc.exit(code) }
}
