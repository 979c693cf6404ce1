import Glibc

/// Parts of paths, and paths without detours.
public enum FilePath {
  /// The directory that holds `path`: `/` for what stands there, `.` for a bare name.
  public static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    let directory = path[..<slash]
    return directory.isEmpty ? "/" : String(directory)
  }

  /// The last part.
  public static func name(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
  }

  /// The path from the root; a relative one starts from the working directory. Symbolic links stay.
  public static func absolute(_ path: String) -> String {
    if path.hasPrefix("/") { return path }
    guard let directory = getcwd(nil, 0) else { return path }
    defer { free(directory) }
    let start = String(cString: directory)
    return start.hasSuffix("/") ? start + path : "\(start)/\(path)"
  }

  /// The path without symbolic links; nil when there is no such file.
  public static func resolved(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
  }
}

/// How large a file is.
public enum FileSize {
  /// Bytes of the file at `path`; nil when there is none or it cannot be looked at.
  public static func of(_ path: String) -> Int? {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : nil
  }
}

/// Where the daemon keeps its state when nobody says otherwise.
public enum StatePath {
  /// The directory without `--state`: `$STATE_DIRECTORY` as systemd sets it (the first of several), for root
  /// `/var/lib/feedd`, else `$XDG_STATE_HOME/feedd` or `$HOME/.local/state/feedd`. nil when none of them can be told.
  public static func standard(_ environment: Environment, uid: UInt32 = ProcessIdentity.uid) -> String? {
    if let first = environment.nonEmpty("STATE_DIRECTORY")?.split(separator: ":").first { return String(first) }
    if uid == 0 { return "/var/lib/feedd" }
    if let state = environment.nonEmpty("XDG_STATE_HOME"), state.hasPrefix("/") { return "\(state)/feedd" }
    return environment.nonEmpty("HOME").map { "\($0)/.local/state/feedd" }
  }
}

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
