import CLinux
import FeedJSON
import Glibc

/// The identity of this process, and the signals and exit status that it sends.
public enum ProcessIdentity {
  public static var pid: Int32 { getpid() }
  public static var uid: UInt32 { geteuid() }
  public static var gid: UInt32 { getegid() }

  /// The arguments of the program without its name.
  ///
  /// Swift reads them from /proc and finds none where that is not mounted, and replaces bytes that are not UTF-8. A program must not
  /// run as if it had other arguments, so this ends the process instead.
  public static var arguments: [String] {
    let words = CommandLine.arguments
    if words.isEmpty { end(EX_OSERR, "cannot read the arguments: there is no /proc/self/cmdline; mount /proc") }
    for place in words.indices.dropFirst() {
      if let word = CommandLine.unsafeArgv[place], String(validatingCString: word) == nil {
        end(UsageError.exitStatus, "\(program): argument \(place) is not UTF-8: '\(words[place])'".inLine)
      }
    }
    return Array(words.dropFirst())
  }

  /// The environment variables of the program.
  ///
  /// A path whose bytes are replaced is another path, so this ends the process if a variable that names a file is not UTF-8.
  public static var environment: Environment {
    for name in Environment.namesOfPaths {
      guard let value = getenv(name), String(validatingCString: value) == nil else { continue }
      end(UsageError.exitStatus, "\(program): variable \(name) is not UTF-8: '\(String(cString: value))'".inLine)
    }
    return .current
  }

  private static var program: Substring { CommandLine.arguments.first?.split(separator: "/").last ?? "" }

  private static func end(_ status: Int32, _ reason: String) -> Never {
    try? StandardStreams.writeAll(reason + "\n", to: StandardStreams.error)
    exit(status)
  }

  /// Bytes of memory in use, the resident set; 0 when it cannot be read.
  public static var memoryBytes: Int {
    guard let bytes = try? SmallFile.read("/proc/self/statm", limit: 256) else { return 0 }
    let pages = String(decoding: bytes, as: UTF8.self).split(separator: " ").dropFirst().first.flatMap { Int($0) }
    return (pages ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

  /// Returns large freed blocks to the system at once, for the rest of the process. Call it once, before other threads start.
  ///
  /// Otherwise malloc allocates large blocks on the heap after the first one was freed. There they are copied when they
  /// grow, and smaller blocks behind them keep the memory in use. Small blocks are merged with their neighbours when they
  /// are freed. Otherwise malloc collects them, and merges all of them at once when it next needs or frees a larger one,
  /// which takes 20 ms after many elements were freed.
  public static func returnLargeBlocks() { clinux_return_large_blocks(1 << 20, 16 << 20) }

  /// Returns all free pages that malloc keeps to the system. About 0.1 ms for each MiB; other threads that need the same heap wait
  /// meanwhile.
  public static func returnFreePages() { clinux_return_free_pages() }

  public static func send(_ signal: Int32, to pid: Int32) throws(SystemError) {
    guard kill(pid, signal) == 0 else { throw .last("send \(SignalQueue.name(signal)) to process \(pid)") }
  }

  /// Ends the process with an exit status.
  public static func exit(_ code: Int32) -> Never { Glibc.exit(code) }

  /// Ends the process with an exit status while other threads run. Executes no exit handlers.
  public static func exitAtOnce(_ code: Int32) -> Never { _exit(code) }
}

public enum ProgramVersion {
  public static let text = "0.1.0"
}

/// A copy of environment variables. Functions take it as an argument, so that tests can pass other variables.
public struct Environment: Sendable {
  private var values: [String: String]

  /// The variables whose values are paths that the programs use.
  static let namesOfPaths = [
    "FEEDD_SOCKET", "XDG_RUNTIME_DIR", "RUNTIME_DIRECTORY", "XDG_STATE_HOME", "STATE_DIRECTORY", "HOME", "TMPDIR",
    "NOTIFY_SOCKET",
  ]

  public init(_ values: [String: String]) { self.values = values }

  /// Reads the variables from `/proc/PID/environ`: `NAME=VALUE`, each with a final zero.
  public init(parsing bytes: [UInt8]) {
    values = [:]
    for entry in bytes.split(separator: 0) {
      let pair = entry.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      if pair.count == 2 { values[String(decoding: pair[0], as: UTF8.self)] = String(decoding: pair[1], as: UTF8.self) }
    }
  }

  /// The value of a variable, possibly empty; nil if it is not set.
  public subscript(name: String) -> String? { values[name] }

  /// The value of a variable; nil if it is not set or empty. XDG and systemd treat both cases alike.
  public func nonEmpty(_ name: String) -> String? {
    guard let value = values[name], !value.isEmpty else { return nil }
    return value
  }

  /// The variables of this process.
  /// - Precondition: no other thread changes them during the call.
  public static var current: Environment {
    var values: [String: String] = [:]
    var entry = environ
    while let text = entry.pointee {
      let pair = String(cString: text)
      if let equals = pair.firstIndex(of: "=") {
        values[String(pair[..<equals])] = String(pair[pair.index(after: equals)...])
      }
      entry += 1
    }
    return Environment(values)
  }
}

public enum BootIdentity {
  /// The variable that passes the identity (`%b` in a unit file) to a service that cannot read `/proc/sys`.
  public static let variable = "FEEDD_BOOT_ID"

  /// A UUID in lower case with dashes that differs for each boot; empty if it is unknown.
  public static var current: String { of(.current) }

  /// Returns the identity from the kernel or, if it is not readable, from the environment.
  static func of(_ environment: Environment, file: String = "/proc/sys/kernel/random/boot_id") -> String {
    if let bytes = try? SmallFile.read(file, limit: 256), let identity = uuid(String(decoding: bytes, as: UTF8.self)) {
      return identity
    }
    return environment[variable].flatMap(uuid) ?? ""
  }

  /// Returns the text as a UUID with dashes; nil if it is not a UUID with or without dashes.
  private static func uuid(_ text: String) -> String? {
    let digits = text.lowercased().filter { $0 != "-" && !$0.isWhitespace }
    guard digits.utf8.count == 32, digits.allSatisfy(\.isHexDigit) else { return nil }
    var rest = digits[...]
    return [8, 4, 4, 4, 12].map { count in
      defer { rest = rest.dropFirst(count) }
      return String(rest.prefix(count))
    }.joined(separator: "-")
  }
}

/// The maximum number of open descriptors of this process.
public enum OpenFileLimit {
  /// Raises the soft limit to `wanted`, at most to the hard limit. Never lowers it.
  /// - Returns: the resulting limit.
  public static func raise(to wanted: Int) -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
    let target = min(rlim_t(max(wanted, 0)), limit.rlim_max)
    if target > limit.rlim_cur {
      var raised = limit
      raised.rlim_cur = target
      if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 { limit = raised }
    }
    return Int(clamping: limit.rlim_cur)
  }
}

/// Unpredictable random numbers from the kernel, which do not repeat.
public enum Random {
  /// Returns 128 random bits as 32 hexadecimal digits.
  public static func hex128() throws(SystemError) -> String {
    padded(try number(), to: 16, radix: 16) + padded(try number(), to: 16, radix: 16)
  }

  /// Returns 64 random bits.
  public static func number() throws(SystemError) -> UInt64 {
    var bits: UInt64 = 0
    let count = retryingInterrupts { getrandom(&bits, MemoryLayout<UInt64>.size, 0) }
    guard count == MemoryLayout<UInt64>.size else { throw .last("get random bytes") }
    return bits
  }
}

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
    for signal in [SIGPIPE, SIGXFSZ, SIGCHLD] { sigaddset(&set, signal) }
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
  /// Whether the system has no room for another process or message now, but may have later.
  public var isShortage: Bool { code == EAGAIN || code == ENOMEM || code == EMFILE || code == ENFILE }
}
