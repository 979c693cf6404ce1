import CLinux
import Glibc

/// A program that this process started and whose end it awaits.
public struct ChildProgram: Sendable {
  /// How a program ended.
  public enum End: Equatable, Sendable {
    case exit(Int32)
    case signal(Int32)
  }

  public let pid: Int32

  /// Starts a program with the standard output and error of this process, no blocked signals, and `input` as its standard
  /// input, in a file, so that it need not read it.
  /// - Parameters:
  ///   - words: the name of the program, which is sought in `PATH`, and its arguments.
  ///   - variables: variables added to the environment.
  ///   - inherited: a descriptor that the program inherits with the same number; nil for none.
  public init(
    _ words: [String], input: [UInt8], variables: [(name: String, value: String)], inherited: Int32?
  ) throws(SystemError) {
    let file = try Descriptor("create the input of", words[0]) { clinux_create_memory_file("input") }
    try Descriptor.writeAll(input[...], to: file.rawValue, "write the input of", words[0])
    guard lseek(file.rawValue, 0, SEEK_SET) == 0 else { throw .last("rewind the input of", words[0]) }

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, file.rawValue, StandardStreams.input)
    // A descriptor that is duplicated to itself is not closed on exec.
    if let inherited { posix_spawn_file_actions_adddup2(&actions, inherited, inherited) }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var set = sigset_t()
    sigemptyset(&set)
    posix_spawnattr_setsigmask(&attributes, &set)
    // A program that inherits an ignored SIGCHLD cannot wait for its own children.
    for signal in [SIGPIPE, SIGCHLD] { sigaddset(&set, signal) }
    posix_spawnattr_setsigdefault(&attributes, &set)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    let names = Set(variables.map { "\($0.name)=" })
    var environment: [UnsafeMutablePointer<CChar>?] = []
    var entry = environ
    while let text = entry.pointee {
      if !names.contains(where: { strncmp(text, $0, $0.utf8.count) == 0 }) { environment.append(strdup(text)) }
      entry += 1
    }
    environment += variables.map { strdup("\($0.name)=\($0.value)") } + [nil]
    let arguments = words.map { strdup($0) } + [nil]
    defer { for pointer in environment + arguments { free(pointer) } }
    var pid: Int32 = 0
    let code = posix_spawnp(&pid, words[0], &actions, &attributes, arguments, environment)
    _ = consume file
    guard code == 0 else { throw SystemError(code: code, operation: "run", path: words[0]) }
    self.pid = pid
  }

  /// Throws if there is no program of this name that this process may run: a path, or a name that is sought in `PATH`.
  public static func check(_ name: String) throws(SystemError) {
    let folders = name.contains("/") ? [""] : (getenv("PATH").map { String(cString: $0) } ?? "/bin:/usr/bin").paths
    var code = ENOENT
    for folder in folders {
      let path = folder.isEmpty ? name : "\(folder)/\(name)"
      guard access(path, X_OK) == 0 else {
        if errno != ENOENT, errno != ENOTDIR { code = errno }
        continue
      }
      if (try? FileIdentity(following: path))?.isDirectory != true { return }
      code = EACCES
    }
    throw SystemError(code: code, operation: "run", path: name)
  }

  /// Lets this process wait for its programs, also if it was started with SIGCHLD ignored, as some supervisors do: the
  /// kernel would discard how they ended.
  public static func awaitsEnds() { signal(SIGCHLD, SIG_DFL) }

  /// Returns how the program ended; nil if it has not. Never blocks.
  public func end() -> End? {
    var status: Int32 = 0
    guard retryingInterrupts({ waitpid(pid, &status, WNOHANG) }) == pid else { return nil }
    let signal = status & 0x7F
    return signal == 0 ? .exit((status >> 8) & 0xFF) : .signal(signal)
  }
}

extension String {
  /// The folders of a list such as `PATH`; an empty one is the current folder.
  fileprivate var paths: [String] {
    split(separator: ":", omittingEmptySubsequences: false).map { $0.isEmpty ? "." : String($0) }
  }
}

extension SystemError {
  /// Whether the system has no room for another process now, but may have later.
  public var isShortage: Bool { code == EAGAIN || code == ENOMEM || code == EMFILE || code == ENFILE }
}
