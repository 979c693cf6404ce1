import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Starting feedd")
struct StartTests {
  func mode(_ path: String) -> mode_t? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o777 : nil
  }

  @Test func startReportsSocketDurabilityAndUser() throws {
    let daemon = try DaemonProcess()
    try daemon.process.errors.wait(lines: 1)
    let line =
      "feedd \(ProgramVersion.text) listens at \(daemon.socketPath), "
      + "durability memory (nothing is kept when it ends), pid \(daemon.process.pid)\n"
    expect(daemon.log.hasSuffix(line), "\(daemon.log)")
    let listening = try daemon.connect().stream.peerCredentials()
    expectEqual(listening.pid, daemon.process.pid)
  }

  @Test func socketModeDoesNotDependOnTheUmask() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("s")
    for mask in ["000", "077", "777"] {
      let process = try ChildProcess(
        "sh",
        [
          "-c", "umask \(mask); exec \"$@\"", "sh", try BuildProducts.program("feedd"), "--socket", path,
          "--durability", "memory",
        ])
      try process.errors.wait(for: "listens at")
      expectEqual(mode(path), 0o660, "umask \(mask)")
      process.signal(SIGTERM)
      try expectEqual(process.waitForExit(), 0)
      expectEqual(mode(path), nil)
      expectEqual(mode("\(path).lock"), nil)
    }
  }

  @Test("a state directory that other users may write to or own is refused, without a change to it")
  func exposedStateDirectory() throws {
    let directory = try TemporaryDirectory()
    let state = directory.file("state")
    expectEqual(mkdir(state, 0o700), 0)
    func refusal() throws -> String {
      let process = try ChildProcess(
        BuildProducts.program("feedd"), ["--socket", directory.file("s"), "--state", state])
      try expectEqual(process.waitForExit(), 1)
      return String(process.errors.text.split(separator: "\n").first?.split(separator: "error: ").last ?? "")
    }
    for allowed in ["720", "702", "1777"] {
      expectEqual(chmod(state, mode_t(allowed, radix: 8) ?? 0), 0)
      try expectEqual(
        refusal(),
        "cannot use state directory \(state): its mode \(allowed) lets other users write to it; run chmod go-w, "
          + "or name another directory with --state")
    }
    expectEqual(chmod(state, 0o755), 0)
    if getuid() == 0 {
      expectEqual(chown(state, 12345, 0), 0)
      try expectEqual(
        refusal(),
        "cannot use state directory \(state): it belongs to uid 12345; change its owner to root or uid 0, "
          + "or name another directory with --state")
      expectEqual(chown(state, 0, 0), 0)
    }
    expectEqual(rmdir(state), 0, "the directory is still empty")
    expectEqual(mkdir(state, 0o755), 0)
    let daemon = try DaemonProcess(["--state", state])
    try daemon.connect().ping(1)
    try expectEqual(daemon.stop(), 0)
  }

  @Test func secondDaemonIsRefused() throws {
    let daemon = try DaemonProcess()
    let second = try ChildProcess(BuildProducts.program("feedd"), ["--socket", daemon.socketPath])
    try expectEqual(second.waitForExit(), 1)
    expect(
      second.errors.text.contains(
        "error: cannot listen on \(daemon.socketPath): another feedd is running (pid \(daemon.process.pid)); stop it"))
    try daemon.connect().ping(1)
  }

  @Test func socketOfAKilledDaemonIsReplaced() throws {
    let directory = try TemporaryDirectory()
    let first = try DaemonProcess(directory: directory)
    first.process.signal(SIGKILL)
    try expectEqual(first.process.waitForExit(), 128 + SIGKILL)
    expectEqual(mode(first.socketPath), 0o660)
    let second = try DaemonProcess(directory: directory)
    try second.connect().ping(1)
  }

  /// Of many daemons that start at the same moment after one was killed, exactly one serves.
  @Test func exactlyOneOfManyConcurrentStartsServes() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("s")
    let old = try ChildProcess(BuildProducts.program("feedd"), ["--socket", path, "--durability", "memory"])
    try old.errors.wait(for: "listens at")
    old.signal(SIGKILL)
    _ = try old.waitForExit()
    let starters = try (0..<8).map { _ in
      try ChildProcess(BuildProducts.program("feedd"), ["--socket", path, "--durability", "memory"])
    }
    for starter in starters { try starter.errors.wait(lines: 1) }
    let serving = starters.filter { $0.errors.text.contains("listens at") }
    expectEqual(serving.count, 1)
    for starter in starters where !serving.contains(where: { $0 === starter }) {
      try expectEqual(starter.waitForExit(), 1)
      expect(starter.errors.text.contains("another feedd is running"))
    }
    try withExtendedLifetime(starters) { try RawClient(path: path).ping(1) }
  }

  @Test(
    arguments: [
      (["--no-such"], 2, "feedd: unknown option --no-such\nTry 'feedd --help'.\n"),
      (["--durability", "paper"], 2, "expected one of memory, process, disk"),
      (["--socket", "/tmp/feedd-unused.sock", "--state", "/dev/null"], 1, "name another with --state"),
      (["--config", "/nonexistent/c.json"], 1, "cannot open /nonexistent/c.json"),
      (["--socket", "/nonexistent/directory/s"], 1, "create directory /nonexistent/directory"),
      (["--socket", "/dev/null"], 1, "the file is not a socket"),
      (["--socket", "/tmp/" + String(repeating: "x", count: 120)], 1, "pass a path of at most 107 bytes"),
    ] as [([String], Int32, String)])
  func failedStartsNameTheNextStep(arguments: [String], code: Int32, words: String) throws {
    let process = try ChildProcess(BuildProducts.program("feedd"), arguments)
    try expectEqual(process.waitForExit(), code)
    expect(process.errors.text.contains(words), "\(process.errors.text)")
  }

  @Test func helpAndVersionGoToStandardOutput() throws {
    for (flag, words) in [("--help", "Usage: feedd [OPTION]..."), ("-V", "feedd \(ProgramVersion.text)\n")] {
      let process = try ChildProcess(BuildProducts.program("feedd"), [flag])
      try expectEqual(process.waitForExit(), 0)
      try process.output.waitForEnd()
      expect(process.output.text.hasPrefix(words))
      expectEqual(process.errors.text, "")
    }
  }

  @Test func stateDirectoryWithoutDurabilityIsReported() throws {
    let daemon = try DaemonProcess(["--state", "/var/lib/feedd", "--durability", "memory"])
    try daemon.process.errors.wait(for: "--state /var/lib/feedd is not used")
  }

  @Test func journalLinesHavePriorities() throws {
    let directory = try TemporaryDirectory()
    let script = "JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec \"$@\""
    let process = try ChildProcess(
      "sh",
      [
        "-c", script, "sh", try BuildProducts.program("feedd"), "--socket", directory.file("s"), "--durability",
        "memory",
      ])
    try process.errors.wait(lines: 1)
    expect(process.errors.text.hasPrefix("<5>feedd \(ProgramVersion.text) listens at"))
  }
}
