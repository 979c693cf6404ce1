import CLinux
import Glibc

/// Who this process is.
public enum ProcessIdentity {
  public static var pid: Int32 { getpid() }
  public static var uid: UInt32 { geteuid() }
  public static var gid: UInt32 { getegid() }

  /// Sends a signal to a process.
  public static func send(_ signal: Int32, to pid: Int32) throws(SystemError) {
    guard kill(pid, signal) == 0 else { throw .last("send \(SignalQueue.name(signal)) to process \(pid)") }
  }

  /// Ends the process.
  public static func exit(_ code: Int32) -> Never { Glibc.exit(code) }
}

/// The version of the programs of this package, as `--version`, `hello` and the log say it.
public enum ProgramVersion {
  public static let text = "0.1.0"
}

/// Environment variables, taken once, so that what depends on them can be tested with others.
public struct Environment: Sendable {
  private var values: [String: String]

  /// An environment of exactly these variables.
  public init(_ values: [String: String]) { self.values = values }

  /// The value of a variable; nil when it is not set. An empty value is a value.
  public subscript(name: String) -> String? { values[name] }

  /// The value of a variable that counts as not set when it is empty, as XDG and systemd have it.
  public func nonEmpty(_ name: String) -> String? {
    guard let value = values[name], !value.isEmpty else { return nil }
    return value
  }

  /// The variables of this process now. Not to be called while another thread changes them.
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

/// Which boot of the system this is.
public enum BootIdentity {
  /// The variable by which a service manager tells the identity to a service that cannot see `/proc/sys`, with or without
  /// dashes (`%b` in a unit file).
  public static let variable = "FEEDD_BOOT_ID"

  /// A random text that changes with each boot: a UUID in lower case with dashes. Empty when nothing tells it.
  public static var current: String { of(.current) }

  /// The kernel's identity, else that of the environment.
  static func of(_ environment: Environment, file: String = "/proc/sys/kernel/random/boot_id") -> String {
    if let bytes = try? SmallFile.read(file, limit: 256), let identity = uuid(String(decoding: bytes, as: UTF8.self)) {
      return identity
    }
    return environment[variable].flatMap(uuid) ?? ""
  }

  /// The text as a UUID with dashes; nil when it is none.
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

/// How many descriptors this process may have open.
public enum OpenFileLimit {
  /// Raises the soft limit as far as the hard one allows, up to `wanted`; it is never lowered.
  /// - Returns: what holds now.
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

/// Numbers and text that no one can guess and that never come twice.
public enum Random {
  /// 128 random bits of the kernel as 32 hexadecimal digits.
  public static func hex128() throws(SystemError) -> String { digits(try number()) + digits(try number()) }

  /// 64 random bits of the kernel.
  public static func number() throws(SystemError) -> UInt64 {
    var bits: UInt64 = 0
    let count = retryingInterrupts { getrandom(&bits, MemoryLayout<UInt64>.size, 0) }
    guard count == MemoryLayout<UInt64>.size else { throw .last("get random bytes") }
    return bits
  }

  private static func digits(_ value: UInt64) -> String {
    let text = String(value, radix: 16)
    return String(repeating: "0", count: 16 - text.count) + text
  }
}
