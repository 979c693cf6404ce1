import Glibc

/// The default state directory of the daemon.
public enum StatePath {
  /// Returns the directory to use without `--state`: the first one in `$STATE_DIRECTORY`, which systemd sets; otherwise
  /// `$XDG_STATE_HOME/feedd` or `$HOME/.local/state/feedd`, also for root. Nil if no variable is set.
  public static func standard(_ environment: Environment) -> String? {
    if let first = environment.nonEmpty("STATE_DIRECTORY")?.split(separator: ":").first { return String(first) }
    return ofUser(environment)
  }

  /// The state directory of a user's own daemon; nil if no variable names it.
  static func ofUser(_ environment: Environment) -> String? {
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

  /// The socket that a client connects to, and the reason in words.
  public struct Choice: Equatable, Sendable {
    public var path: String
    public var reason: String

    public init(path: String, reason: String) {
      self.path = path
      self.reason = reason
    }
  }

  /// Returns the path that a client uses without `--socket`; see ``clientChoice(_:)``.
  public static func clientDefault(_ environment: Environment) -> String { clientChoice(environment).path }

  /// Returns the socket that a client uses without `--socket`: `$FEEDD_SOCKET`, else `$XDG_RUNTIME_DIR/feedd.sock` if a daemon
  /// ever listened there, else ``system``.
  ///
  /// A client must not turn to the daemon of the system because the user's own one is stopped. The daemon's mark beside the
  /// socket, or its state directory, shows that there was one.
  public static func clientChoice(_ environment: Environment) -> Choice {
    if let path = environment.nonEmpty("FEEDD_SOCKET") { return Choice(path: path, reason: "FEEDD_SOCKET names it") }
    guard let own = sessionPath(environment) else {
      return Choice(path: system, reason: "it is the system's; XDG_RUNTIME_DIR is not set")
    }
    let traces = [own, markPath(own), StatePath.ofUser(environment)].compactMap { $0 }
    guard let trace = traces.first(where: { access($0, F_OK) == 0 }) else {
      return Choice(path: system, reason: "it is the system's; no daemon of this user was ever started at \(own)")
    }
    let proof = trace == own ? "it exists" : "\(trace) shows that it was there"
    return Choice(path: own, reason: "it is that of this user's own daemon; \(proof)")
  }

  /// Leaves a mark for ``clientChoice(_:)`` if `path` is the one in `$XDG_RUNTIME_DIR`. The system removes that directory when
  /// the user has logged out.
  public static func leaveMark(ofListenerAt path: String, _ environment: Environment) {
    guard path == sessionPath(environment) else { return }
    // Without the mark, clients look for the socket and the state, so that a failure is not an error.
    _ = try? RecordFile(markPath(path))
  }

  private static func markPath(_ path: String) -> String { "\(path).own" }

  private static func sessionPath(_ environment: Environment) -> String? {
    environment.nonEmpty("XDG_RUNTIME_DIR").map { "\($0)/feedd.sock" }
  }
}
