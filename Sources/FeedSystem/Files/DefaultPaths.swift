import Glibc

/// The default state directory of the daemon.
public enum StatePath {
  /// Returns the directory to use without `--state`: the first one in `$STATE_DIRECTORY`, which systemd sets; otherwise
  /// `$XDG_STATE_HOME/feedd` or `$HOME/.local/state/feedd`, also for root. Nil if no variable is set.
  public static func standard(_ environment: Environment) -> String? {
    if let first = environment.nonEmpty("STATE_DIRECTORY")?.split(separator: ":").first { return String(first) }
    if let state = environment.nonEmpty("XDG_STATE_HOME"), state.hasPrefix("/") { return "\(state)/feedd" }
    return environment.nonEmpty("HOME").map { "\($0)/.local/state/feedd" }
  }
}

/// The default paths of the socket ("Connecting and framing" in `Protocol/README.md`).
public enum SocketPath {
  /// The default without any environment variable.
  public static let system = "/run/feedd/feedd.sock"

  /// The maximum length of a path in bytes: that of `sun_path` without the final zero.
  public static let maximumLength = 107

  /// Returns the path that the daemon uses without `--socket`: `$FEEDD_SOCKET`, else `$RUNTIME_DIRECTORY/feedd.sock`, else
  /// `$XDG_RUNTIME_DIR/feedd.sock`, else ``system``. An empty variable counts as not set. `$RUNTIME_DIRECTORY` can list
  /// several directories, separated by colons; the first one counts.
  public static func daemonDefault(_ environment: Environment) -> String {
    if let path = environment.nonEmpty("FEEDD_SOCKET") { return path }
    if let directories = environment.nonEmpty("RUNTIME_DIRECTORY"),
      let first = directories.split(separator: ":").first
    {
      return "\(first)/feedd.sock"
    }
    return sessionPath(environment) ?? system
  }

  /// Returns the path that a client uses without `--socket`: `$FEEDD_SOCKET`, else `$XDG_RUNTIME_DIR/feedd.sock` if that
  /// file exists, else ``system``.
  public static func clientDefault(_ environment: Environment) -> String {
    if let path = environment.nonEmpty("FEEDD_SOCKET") { return path }
    if let path = sessionPath(environment), access(path, F_OK) == 0 { return path }
    return system
  }

  private static func sessionPath(_ environment: Environment) -> String? {
    environment.nonEmpty("XDG_RUNTIME_DIR").map { "\($0)/feedd.sock" }
  }
}
