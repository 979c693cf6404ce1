import FeedSystem
import Glibc

/// posix_spawn with exactly the descriptors and variables asked for, and no blocked signals.
struct Spawner {
  private let program: String
  private let arguments: [String]
  private let environment: [String: String]

  init(_ program: String, _ arguments: [String], _ environment: [String: String]) {
    self.program = program
    self.arguments = arguments
    var all = environment
    if all["PATH"] == nil { all["PATH"] = Environment.current["PATH"] ?? "/usr/bin:/bin" }
    self.environment = all
  }

  /// Starts the program with `descriptors` as 0, 1, 2, …
  func spawn(_ descriptors: [Int32]) throws -> Int32 {
    // Far from the numbers they get, so that none is overwritten before it is copied.
    let sources = try descriptors.map { number in
      let copy = fcntl(number, F_DUPFD_CLOEXEC, 200)
      guard copy >= 0 else { throw TestFailure("fcntl: errno \(errno)") }
      return copy
    }
    defer { for number in sources { close(number) } }

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (target, source) in sources.enumerated() { posix_spawn_file_actions_adddup2(&actions, source, Int32(target)) }
    // What the test runner itself was started with; closing a number that is not open does no harm.
    for number in sources.count..<64 { posix_spawn_file_actions_addclose(&actions, Int32(number)) }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var defaults = sigset_t()
    sigemptyset(&defaults)
    for signal in [SIGPIPE, SIGTERM, SIGINT, SIGHUP] { sigaddset(&defaults, signal) }
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    let argv = ([program] + arguments).map { strdup($0) } + [nil]
    let envp = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for pointer in argv + envp { free(pointer) } }
    var pid: Int32 = 0
    let code = posix_spawnp(&pid, program, &actions, &attributes, argv, envp)
    guard code == 0 else { throw TestFailure("cannot start \(program): errno \(code)") }
    return pid
  }
}
