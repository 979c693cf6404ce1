import CLinux
import Glibc

public enum FilePath {
  /// Returns the directory of `path`; `.` for a name without a slash.
  public static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    let directory = path[..<slash]
    return directory.isEmpty ? "/" : String(directory)
  }

  /// Returns the part after the last slash.
  public static func name(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
  }

  /// Returns the path of a temporary file in `directory`, or in that of `path`: hidden, and with a name that nobody can guess.
  /// The name contains that of `path`, shortened if it is long, because a name has at most 255 bytes.
  public static func temporary(for path: String, in directory: String? = nil) throws(SystemError) -> String {
    let name = String(decoding: name(of: path).utf8.prefix(128), as: UTF8.self)
    return "\(directory ?? self.directory(of: path))/.\(name).\(try Random.hex128())"
  }

  /// Returns the absolute path; a relative one starts at the working directory. Symbolic links are not resolved.
  public static func absolute(_ path: String) -> String {
    if path.hasPrefix("/") { return path }
    guard let directory = getcwd(nil, 0) else { return path }
    defer { free(directory) }
    let start = String(cString: directory)
    return start.hasSuffix("/") ? start + path : "\(start)/\(path)"
  }

  /// Returns the path with symbolic links resolved; nil if there is no such file.
  public static func resolved(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  /// Returns the text of the symbolic link at `path`; nil if there is none.
  static func target(ofLink path: String) -> String? {
    var target = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &target, target.count)
    return count > 0 ? String(decoding: target[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
  }

  /// Returns the size of the file at `path` in bytes; nil if it cannot be examined.
  public static func size(of path: String) -> Int? {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : nil
  }

  /// Returns the number of names (hard links) of the file at `path`; nil if it cannot be examined.
  public static func nameCount(of path: String) -> Int? {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_nlink) : nil
  }

  /// Whether other machines can change the files of a directory, so that the kernel does not see all changes.
  public static func isRemote(_ directory: String) -> Bool { clinux_is_remote(directory) == 1 }
}

/// The state of a file at a moment. Equal stamps mean that the file was not written in between, except within the resolution of
/// the file system's clock.
public struct FileStamp: Equatable, Sendable {
  private let identity: FileIdentity
  private let size: Int
  private let seconds: Int
  private let nanoseconds: Int

  /// Examines the file at `path`; nil if there is none.
  public init?(at path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    identity = FileIdentity(status)
    size = Int(status.st_size)
    (seconds, nanoseconds) = (Int(status.st_mtim.tv_sec), Int(status.st_mtim.tv_nsec))
  }

  /// Whether the file was last written more than a second ago, so that a later write changes the stamp.
  public var isSettled: Bool { WallClock.now / 1_000_000_000 > UInt64(clamping: seconds + 1) }
}

/// Locks of fcntl(2) on a file, as SQLite uses them.
public enum RecordLocks {
  /// Whether a process has locked any part of the file at `path`. Locks nothing.
  /// - Precondition: this process holds no such locks on the file; closing any descriptor of it would release them.
  public static func areHeld(on path: String) -> Bool {
    let number = retryingInterrupts { clinux_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0) }
    guard number >= 0 else { return false }
    let file = Descriptor(owning: number)
    return clinux_is_locked(file.rawValue) == 1
  }
}

/// The identity of a file, independent of its name: device and inode.
public struct FileIdentity: Equatable, Sendable {
  let device: UInt
  let inode: UInt
  /// The type bits of the mode (`S_IFMT`).
  private let type: UInt32

  /// Identifies the file at `path` without following a symbolic link; nil if it cannot be examined.
  public init?(at path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    self.init(status)
  }

  /// Identifies the file at `path`. Symbolic links are followed.
  public init(following path: String) throws(SystemError) {
    var status = stat()
    guard stat(path, &status) == 0 else { throw .last("examine", path) }
    self.init(status)
  }

  /// Identifies the file of an open descriptor; nil if it is not open.
  public init?(of descriptor: Int32) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return nil }
    self.init(status)
  }

  fileprivate init(_ status: stat) {
    device = UInt(status.st_dev)
    inode = UInt(status.st_ino)
    type = status.st_mode & S_IFMT
  }

  func isFile(of status: stat) -> Bool { device == UInt(status.st_dev) && inode == UInt(status.st_ino) }
  public var isRegularFile: Bool { type == S_IFREG }
  public var isDirectory: Bool { type == S_IFDIR }
  public var isSocket: Bool { type == S_IFSOCK }
  public var isSymbolicLink: Bool { type == S_IFLNK }
}

/// The entries of directories that lead from the root to a file, through symbolic links.
///
/// The file that a path names changes exactly when one of these entries does: when a directory on the way is renamed, a
/// link gets another target, or the file itself is replaced. A mount changes it too, without any entry.
///
///     // /srv/live -> /srv/r2: visits (/, srv), (/srv, live), (/, srv), (/srv, r2), (/srv/r2, db)
///     DirectoryEntries.walk("/srv/live/db") { directory, name, isLast in … }
public enum DirectoryEntries {
  /// The maximum number of symbolic links on the way, as in Linux.
  private static let maxLinks = 40

  /// Calls `visit` for each entry before it is examined, so that what changes afterwards can be noticed. Stops at an entry
  /// that does not exist or cannot be examined.
  /// - Parameter visit: gets a directory without symbolic links, the name of the entry, and whether the path ends with it.
  public static func walk(_ path: String, _ visit: (_ directory: String, _ name: String, _ isLast: Bool) -> Void) {
    assert(path.hasPrefix("/"), "a relative path has no root")
    var directory = "/"
    // The next name is the last one.
    var names = Array(path.split(separator: "/").reversed())
    var links = 0
    while let name = names.popLast() {
      if name == "." { continue }
      if name == ".." {
        directory = FilePath.directory(of: directory)
        continue
      }
      visit(directory, String(name), names.isEmpty)
      let entry = directory == "/" ? "/\(name)" : "\(directory)/\(name)"
      guard let identity = FileIdentity(at: entry) else { return }
      if identity.isSymbolicLink {
        links += 1
        guard links <= maxLinks, let target = FilePath.target(ofLink: entry) else { return }
        if target.hasPrefix("/") { directory = "/" }
        names += target.split(separator: "/").reversed()
      } else {
        directory = entry
      }
    }
  }
}

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
    if let first = environment.nonEmpty("RUNTIME_DIRECTORY")?.split(separator: ":").first {
      return "\(first)/feedd.sock"
    }
    return sessionPath(environment) ?? system
  }

  /// The socket that a client connects to, and the reason in words.
  public struct Choice: Equatable, Sendable {
    public var path: String
    public var reason: String

    public init(path: String, reason: String) { (self.path, self.reason) = (path, reason) }
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
