import FeedSystem
import Glibc
import TestSupport
import Testing

/// Whether clients can run as other users.
private let canChangeUser = geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0

/// What one user does, seen by another one. They need root, to run clients as other users.
@Suite("Two users", .enabled(if: canChangeUser))
struct TwoUsersTests {
  private static let user = "65534"

  /// A daemon that every user can connect to.
  private func daemon(_ arguments: String...) throws -> DaemonProcess {
    let directory = try TemporaryDirectory()
    expectEqual(chmod(directory.path, 0o755), 0)
    let daemon = try DaemonProcess(arguments, directory: directory)
    expectEqual(chmod(daemon.socketPath, 0o666), 0)
    return daemon
  }

  /// Runs `feedclient` as another user.
  private func run(_ daemon: DaemonProcess, _ arguments: String...) throws -> ClientCommand.Outcome {
    let process = try ChildProcess(
      "/usr/bin/setpriv",
      ["--reuid", Self.user, "--regid", Self.user, "--clear-groups", BuildProducts.program("feedclient")] + arguments,
      environment: ["FEEDD_SOCKET": daemon.socketPath])
    return try ClientCommand.finish(process, input: "")
  }

  @Test("what one user stores leaves room for others")
  func totals() throws {
    let daemon = try daemon("--max-elements-per-user", "2", "--max-feeds-per-user", "2")
    let root = try daemon.connect()
    for feed in ["a", "b"] { try expectEqual(run(daemon, "define", feed, "--kind", "array").code, 0) }
    let refused = try run(daemon, "define", "c", "--kind", "array")
    expect(refused.code == 1 && refused.errors.contains("maxFeedsPerUser"))
    try expectEqual(run(daemon, "insert", "a", "1", "2").code, 0)
    try expect(run(daemon, "insert", "b", "3").errors.contains("maxElementsPerUser"))
    _ = try HostileTests.ask(root, "define", #"{"feed":"mine","kind":"array"}"#)
    try expect(HostileTests.ask(root, "insert", #"{"feed":"mine","elements":[1,2]}"#).has("result"))
    let users = try HostileTests.ask(root, "quotas")["result"]["users"].elements
    expectEqual(users.compactMap { $0["uid"].int }, [0, 65534])
    expectEqual(users.compactMap { $0["elements"].int }, [2, 2])
  }

  @Test("only administrators kick, and a kicked client is told why")
  func kick() throws {
    let daemon = try daemon()
    let root = try daemon.connect()
    try expect(run(daemon, "kick", "1").errors.contains("no administrator"))
    try expectEqual(run(daemon, "quotas").code, 1)
    _ = try HostileTests.ask(root, "define", #"{"feed":"a","kind":"array"}"#)
    let watcher = try ChildProcess(
      "/usr/bin/setpriv",
      [
        "--reuid", Self.user, "--regid", Self.user, "--clear-groups", BuildProducts.program("feedclient"), "watch", "a",
      ],
      environment: ["FEEDD_SOCKET": daemon.socketPath])
    try expect(HostileTests.waitForConnections(2, root))
    let clients = try HostileTests.ask(root, "clients")["result"]["clients"].elements
    let number = try require(clients.first { $0["uid"].int == 65534 }?["connection"].int)
    let outcome = try ClientCommand(daemon).run("kick", "\(number)")
    expectEqual(outcome.code, 0)
    try expectEqual(JSONValue(outcome.output)["uid"].int, 65534)
    try expect(watcher.waitForExit() != 0)
    expect(watcher.errors.text.contains("administrator"))
  }

  @Test("the list of feeds needs an access rule of its own, also through views and watch --wait")
  func listOfFeeds() throws {
    let rule = #"{"allow":["read","write","define"]}"#
    let directory = try TemporaryDirectory()
    let file = directory.file("feedd.json")
    try SmallFile.replace(file, with: Array(#"{"access":[\#(rule)]}"#.utf8))
    expectEqual(chmod(directory.path, 0o755), 0)
    let daemon = try DaemonProcess(["--config", file], directory: directory)
    expectEqual(chmod(daemon.socketPath, 0o666), 0)
    let root = try daemon.connect()
    _ = try HostileTests.ask(root, "define", #"{"feed":"list","kind":"array"}"#)
    let definitions = [
      "names": #""kind":"view","of":"$feeds""#, "home": #""kind":"composed","children":["list","names"]"#,
      "slots": #""kind":"slots","contents":{"A":"home"},"pattern":["A"]"#,
    ]
    for name in ["names", "home", "slots"] {
      let defined = try HostileTests.ask(root, "define", #"{"feed":"\#(name)",\#(definitions[name] ?? "")}"#)
      expect(defined.has("result"))
    }

    let other = try OtherUser.connect(daemon.socketPath)
    let readers = ["watch", "snapshot", "describe", "verify", "selected"]
    func codes() throws -> [Int?] {
      try ["$feeds", "names", "home", "slots"].flatMap { feed in
        try readers.map { method in
          try HostileTests.answer(other, method, #"{"feed":"\#(feed)"}"#)["error"]["code"].int
        }
      }
    }
    func others() throws -> [Int?] {
      try [
        ("get", #"{"feed":"$feeds","id":"list"}"#), ("range", #"{"feed":"$feeds","section":0,"from":0,"count":1}"#),
        ("query", #"{"feed":"$feeds","path":"$[*]"}"#),
        ("insert", #"{"feed":"list","elements":[1],"if":{"feed":"names","revision":99}}"#),
        ("define", #"{"feed":"mine","kind":"view","of":"$feeds"}"#),
        ("define", #"{"feed":"mine","kind":"composed","children":["slots"]}"#),
      ].map { try HostileTests.answer(other, $0, $1)["error"]["code"].int }
    }
    try expect(codes().allSatisfy { $0 == -32006 })
    try expectEqual(others(), [-32006, -32006, -32006, -32006, -32006, -32006])
    // The feed itself may be read, but waiting for it needs the list.
    try expectEqual(run(daemon, "watch", "list", "--wait", "--snapshot-only").code, 0)
    let refused = try run(daemon, "watch", "later", "--wait", "--snapshot-only")
    expectEqual(refused.code, 1)
    expect(refused.errors.contains("$feeds"), "\(refused.errors)")

    func reload(_ rules: String) throws {
      try SmallFile.replace(file, with: Array(#"{"access":[\#(rules)]}"#.utf8))
      daemon.process.signal(SIGHUP)
      try daemon.notify.wait(for: "RELOADING=1", orEndOf: daemon.process)
      try daemon.notify.wait(for: "READY=1", orEndOf: daemon.process)
    }
    try reload(rule + #",{"feeds":"$feeds","allow":"read"}"#)
    let watcher = try ChildProcess(
      "/usr/bin/setpriv",
      [
        "--reuid", Self.user, "--regid", Self.user, "--clear-groups", BuildProducts.program("feedclient"), "watch",
        "later", "--wait", "--snapshot-only",
      ],
      environment: ["FEEDD_SOCKET": daemon.socketPath])
    try watcher.errors.wait(for: "waiting for the feed later")
    try expect(codes().allSatisfy { $0 == nil })
    try expectEqual(others(), [nil, nil, nil, -32009, nil, -32001])
    _ = try HostileTests.ask(root, "define", #"{"feed":"later","kind":"array"}"#)
    try expectEqual(ClientCommand.finish(watcher).code, 0)
    _ = try other.receive(having: #""delta""#, #""feed":"names""#, #"{"feed":"later""#)

    // Whoever watches a feed above the list is disconnected when the rule goes.
    try reload(rule)
    try expectEqual(other.receiveToEnd().last?.contains(#""reason":"access""#), true)
  }

  @Test("root connects while another user has all connections")
  func reserve() throws {
    let daemon = try daemon("--max-connections", "2")
    let others = try (0..<2).map { _ in try OtherUser.connect(daemon.socketPath) }
    for other in others { try expect(HostileTests.ask(other, "ping").has("result")) }
    try withExtendedLifetime(others) {
      let root = try daemon.connect()
      let uids = try HostileTests.ask(root, "clients")["result"]["clients"].elements.compactMap { $0["uid"].int }
      expectEqual(uids.sorted(), [0, OtherUser.uid, OtherUser.uid])
      try expect(run(daemon, "ping").code != 0)
      try expect(ClientCommand(daemon).run("kick", "1").code != 4)
    }
  }

  @Test(
    "root connects, and the store works, while another user has all connections that the limit of open files allows")
  func descriptors() throws {
    let directory = try TemporaryDirectory()
    expectEqual(chmod(directory.path, 0o755), 0)
    let path = directory.file("s")
    let process = try ChildProcess(
      "sh",
      [
        "-c", "ulimit -n 48; exec \"$@\"", "sh", try BuildProducts.program("feedd"), "--socket", path, "--state",
        directory.file("state"), "--reserved-connections", "4",
      ])
    try process.errors.wait(for: "listens at")
    expectEqual(chmod(path, 0o666), 0)
    // 48 descriptors without 32 for the daemon and 4 in reserve.
    let others = try (0..<12).map { _ in try OtherUser.connect(path) }
    for other in others { try expect(HostileTests.ask(other, "ping").has("result")) }
    try withExtendedLifetime(others) {
      let refused = try OtherUser.connect(path).receiveToEnd()
      try expectEqual(refused.map { try JSONValue($0)["params"]["reason"].string }, ["limit"])
      let roots = try (0..<4).map { _ in try RawClient(path: path) }
      for (number, root) in roots.enumerated() {
        try expect(HostileTests.ask(root, "define", #"{"feed":"f\#(number)","kind":"array"}"#).has("result"))
      }
    }
    process.signal(SIGTERM)
    try expectEqual(process.waitForExit(), 0)
  }
}
