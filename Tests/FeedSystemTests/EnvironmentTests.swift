import TestSupport
import Testing

@testable import FeedSystem

@Suite("Environment variables and random numbers")
struct EnvironmentTests {
  @Test func emptyVariablesDifferFromUnsetOnes() {
    expect(Environment.current["PATH"] != nil)
    expectEqual(Environment.current["A_NAME_THAT_NOBODY_SETS"], nil)
    expectEqual(Environment(["A": ""])["A"], "")
    expectEqual(Environment(["A": ""]).nonEmpty("A"), nil)
  }

  @Test func randomTextsHaveFullLengthAndDiffer() throws {
    let texts = try (0..<100).map { _ in try Random.hex128() }
    expectEqual(Set(texts).count, 100)
    expect(texts.allSatisfy { $0.count == 32 && $0.allSatisfy(\.isHexDigit) })
  }
}

@Suite("Default socket paths")
struct SocketPathTests {
  @Test(arguments: [
    ([:], "/run/feedd/feedd.sock"),
    (["XDG_RUNTIME_DIR": "/run/user/7"], "/run/user/7/feedd.sock"),
    (["XDG_RUNTIME_DIR": "/run/user/7", "RUNTIME_DIRECTORY": "/run/x"], "/run/x/feedd.sock"),
    (["RUNTIME_DIRECTORY": "/run/x:/run/y"], "/run/x/feedd.sock"),
    (["FEEDD_SOCKET": "/a", "RUNTIME_DIRECTORY": "/run/x", "XDG_RUNTIME_DIR": "/run/user/7"], "/a"),
    (["FEEDD_SOCKET": "", "RUNTIME_DIRECTORY": "", "XDG_RUNTIME_DIR": ""], "/run/feedd/feedd.sock"),
  ])
  func ofTheDaemon(variables: [String: String], path: String) {
    expectEqual(SocketPath.daemonDefault(Environment(variables)), path)
  }

  @Test func ofAClient() throws {
    let directory = try TemporaryDirectory()
    let session = Environment(["XDG_RUNTIME_DIR": directory.path, "RUNTIME_DIRECTORY": "/run/x"])
    expectEqual(SocketPath.clientDefault(session), "/run/feedd/feedd.sock")
    let listener = try UnixListener.bind(path: directory.file("feedd.sock"))
    expectEqual(SocketPath.clientDefault(session), listener.path)
    expectEqual(SocketPath.clientDefault(Environment(["FEEDD_SOCKET": "/a", "XDG_RUNTIME_DIR": directory.path])), "/a")
    expectEqual(SocketPath.clientDefault(Environment([:])), "/run/feedd/feedd.sock")
  }

  @Test("a stopped daemon of one's own is not replaced by the system's") func ofAClientWithoutItsDaemon() throws {
    let (runtime, home) = (try TemporaryDirectory(), try TemporaryDirectory())
    let environment = Environment(["XDG_RUNTIME_DIR": runtime.path, "HOME": home.path])
    let (own, system) = (runtime.file("feedd.sock"), "/run/feedd/feedd.sock")
    expectEqual(
      SocketPath.clientChoice(environment),
      .init(path: system, reason: "it is the system's; no daemon of this user was ever started at \(own)"))
    // Another socket leaves no mark.
    SocketPath.leaveMark(ofListenerAt: home.file("feedd.sock"), environment)
    expectEqual(SocketPath.clientDefault(environment), system)
    SocketPath.leaveMark(ofListenerAt: own, environment)
    let found = SocketPath.clientChoice(environment)
    expectEqual(
      found, .init(path: own, reason: "it is that of this user's own daemon; \(own).own shows that it was there"))
    // Without the mark, the state shows it.
    let (otherRuntime, state) = (try TemporaryDirectory(), "\(home.path)/.local/state/feedd")
    let later = Environment(["XDG_RUNTIME_DIR": otherRuntime.path, "HOME": home.path])
    expectEqual(SocketPath.clientDefault(later), system)
    try PrivateDirectory.make(state)
    expectEqual(
      SocketPath.clientChoice(later),
      .init(
        path: otherRuntime.file("feedd.sock"),
        reason: "it is that of this user's own daemon; \(state) shows that it was there"))
    expectEqual(SocketPath.clientChoice(Environment(["HOME": home.path])).path, system)
    expectEqual(
      SocketPath.clientChoice(Environment(["FEEDD_SOCKET": "/a"])), .init(path: "/a", reason: "FEEDD_SOCKET names it"))
  }
}

@Suite("Default state directory")
struct StatePathTests {
  @Test(
    "it is below the home directory, also for root, unless systemd names another one",
    arguments: [
      (["HOME": "/root"], "/root/.local/state/feedd"),
      (["HOME": "/root", "XDG_STATE_HOME": "/s"], "/s/feedd"),
      (["HOME": "/root", "XDG_STATE_HOME": "relative"], "/root/.local/state/feedd"),
      (["HOME": "/root", "STATE_DIRECTORY": "/var/lib/feedd:/x"], "/var/lib/feedd"),
      (["HOME": ""], nil),
    ] as [([String: String], String?)])
  func path(variables: [String: String], expected: String?) {
    expectEqual(StatePath.standard(Environment(variables)), expected)
  }
}

@Suite("Boot identity")
struct BootIdentityTests {
  static let dashed = "793e733f-5541-4bda-8f2d-079cb1819bfb"
  static let plain = "793e733f55414bda8f2d079cb1819bfb"

  @Test("the kernel takes precedence over the environment; both give a UUID with dashes")
  func sources() throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("boot_id")
    let environment = Environment([BootIdentity.variable: Self.plain])
    expectEqual(BootIdentity.of(environment, file: file), Self.dashed)
    expectEqual(BootIdentity.of(Environment([BootIdentity.variable: Self.dashed]), file: file), Self.dashed)
    try SmallFile.replace(file, with: Array("0\(Self.dashed.dropFirst())\n".utf8))
    expectEqual(BootIdentity.of(environment, file: file), "0\(Self.dashed.dropFirst())")
  }

  @Test(
    "malformed identities are ignored", arguments: ["", "x", "%b", "793e733f55414bda8f2d079cb1819bf", dashed + "0"])
  func malformed(text: String) {
    expectEqual(BootIdentity.of(Environment([BootIdentity.variable: text]), file: "/nonexistent"), "")
    expectEqual(BootIdentity.of(Environment([:]), file: "/nonexistent"), "")
  }

  @Test("this system has an identity")
  func current() { expectEqual(BootIdentity.current.utf8.count, 36) }
}

@Suite("Terminal properties")
struct TerminalTests {
  @Test func pipeIsNotATerminal() throws {
    let pipe = try Pipe()
    let properties = Terminal(descriptor: pipe.writingNumber, environment: Environment(["TERM": "xterm"]))
    expect(!properties.isTerminal)
    expect(!properties.allowsColor)
    expectEqual(properties.columns, 80)
    expectEqual(properties.rows, nil)
    expectEqual(Terminal(descriptor: -1, environment: Environment(["COLUMNS": "33"])).columns, 33)
  }

  @Test func terminalReportsSizeAndAbilities() throws {
    let pseudo = try PseudoTerminal(columns: 101, rows: 20)
    func properties(_ variables: [String: String]) -> Terminal {
      Terminal(descriptor: pseudo.terminal, environment: Environment(variables))
    }
    expect(properties(["TERM": "xterm"]).isTerminal)
    expectEqual(properties(["TERM": "xterm"]).columns, 101)
    expectEqual(properties(["TERM": "xterm"]).rows, 20)
    expectEqual(properties(["TERM": "xterm", "COLUMNS": "60"]).columns, 60)
    expectEqual(properties(["TERM": "xterm", "COLUMNS": "-3"]).columns, 101)
    expectEqual(properties(["TERM": "xterm", "COLUMNS": "\(Int.max)"]).columns, 10_000)
    expect(properties(["TERM": "xterm"]).allowsColor)
    expect(properties(["TERM": "xterm", "NO_COLOR": ""]).allowsColor)
    expect(!properties(["TERM": "xterm", "NO_COLOR": "1"]).allowsColor)
    expect(!properties(["TERM": "dumb"]).allowsColor)
    expect(!properties(["TERM": "dumb"]).canRedraw)
    expect(properties(["TERM": "xterm", "NO_COLOR": "1"]).canRedraw)
  }
}
