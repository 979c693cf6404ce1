import Glibc

/// Where the daemon's socket is when nobody says otherwise (protocol, "Frames").
public enum SocketPath {
  /// The last resort of both sides.
  public static let system = "/run/feedd/feedd.sock"

  /// The most bytes a path may have: `sun_path` less its final zero.
  public static let maximumLength = 107

  /// The daemon's path without `--socket`: `$FEEDD_SOCKET`, `$RUNTIME_DIRECTORY/feedd.sock`,
  /// `$XDG_RUNTIME_DIR/feedd.sock`, else ``system``. A variable set to nothing counts as not set; of several runtime
  /// directories, which systemd separates by colons, the first is taken.
  public static func daemonDefault(_ environment: Environment) -> String {
    if let path = environment.nonEmpty("FEEDD_SOCKET") { return path }
    if let directories = environment.nonEmpty("RUNTIME_DIRECTORY"),
      let first = directories.split(separator: ":").first
    {
      return "\(first)/feedd.sock"
    }
    return sessionPath(environment) ?? system
  }

  /// A client's path without `--socket`: `$FEEDD_SOCKET`, `$XDG_RUNTIME_DIR/feedd.sock` if there is something at that
  /// path, else ``system``.
  public static func clientDefault(_ environment: Environment) -> String {
    if let path = environment.nonEmpty("FEEDD_SOCKET") { return path }
    if let path = sessionPath(environment), access(path, F_OK) == 0 { return path }
    return system
  }

  private static func sessionPath(_ environment: Environment) -> String? {
    environment.nonEmpty("XDG_RUNTIME_DIR").map { "\($0)/feedd.sock" }
  }
}
