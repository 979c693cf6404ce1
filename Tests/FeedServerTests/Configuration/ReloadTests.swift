import FeedSystem
import Glibc
import TestSupport
import Testing

/// `feedd --reload`, which answers with what took effect.
@Suite("Reloading") struct ReloadTests {
  private func reload(_ set: ConfiguredDaemon, _ configuration: String, _ option: String = "--reload") throws -> (
    code: Int32, output: String, errors: String
  ) {
    try SmallFile.replace(set.directory.file("feedd.json"), with: Array(configuration.utf8))
    return try run(option, "\(set.daemon.process.pid)")
  }

  private func run(_ arguments: String...) throws -> (code: Int32, output: String, errors: String) {
    let process = try ChildProcess(BuildProducts.program("feedd"), arguments)
    let code = try process.waitForExit()
    try process.output.waitForEnd()
    try process.errors.waitForEnd()
    return (code, process.output.text, process.errors.text)
  }

  @Test("the answer says what took effect and what needs a restart", arguments: [false, true])
  func answer(isKept: Bool) throws {
    let set = try ConfiguredDaemon(
      #"{"feeds": [{"feed": "a"}, {"feed": "b"}, {"feed": "p", "kind": "managed", "database": "x", "query": "SELECT 1 AS id"}]}"#,
      isKept: isKept)
    let head = "feedd (pid \(set.daemon.process.pid)) read \(set.directory.file("feedd.json")): "
    expect(
      try reload(
        set,
        #"{"feeds": [{"feed": "a", "exclusive": true}, {"feed": "c"}], "limits": {"maxFeeds": 7}, "socketMode": "0666", "access": []}"#
      )
        == (
          0,
          head + "defined c; redefined a; undefined p; replaced the access rules; "
            + "kept b, which the file no longer defines; undefine what is not needed; "
            + "takes effect when feedd is started again: maxFeeds, socketMode\n", ""
        ))
    // The answer came after the change.
    try expect(set.ask("describe", #"{"feed":"c"}"#).has("result"))
    try expect(set.ask("describe", #"{"feed":"p"}"#).has("error"))
    let stats = try set.ask("stats", "{}")["result"]["configuration"]
    expect(stats["reads"].int == 2 && stats["status"].string == "applied" && stats["access"].bool == true)
    expect(
      stats["defined"].text == #"["c"]"# && stats["undefined"].text == #"["p"]"# && stats["kept"].text == #"["b"]"#)
    expectEqual(stats["restart"].text, #"["maxFeeds","socketMode"]"#)
    expect(
      try reload(set, #"{"feeds": [{"feed": "a", "exclusive": true}, {"feed": "c"}], "access": []}"#)
        == (0, head + "nothing changed\n", ""))
  }

  @Test("a configuration that only the daemon refuses changes nothing, and the answer says why")
  func refused() throws {
    let set = try ConfiguredDaemon(#"{"feeds": [{"feed": "a"}]}"#)
    let invalid = try reload(set, #"{"feeds": [{"feed": "a""#)
    expect(invalid.code == 1 && invalid.output.isEmpty)
    expect(invalid.errors.hasPrefix("feedd: \(set.directory.file("feedd.json")):1:24: not JSON: "))
    let other = try reload(set, #"{"feeds": [{"feed": "a", "kind": "array"}]}"#)
    expect(other.code == 1 && other.output.isEmpty)
    expect(other.errors.hasPrefix("feedd: \(set.directory.file("feedd.json")):1:12: feeds[0]: its kind is collection"))
    expect(other.errors.hasSuffix("; nothing was changed\n"))
    let stats = try set.ask("stats", "{}")["result"]["configuration"]
    expect(stats["reads"].int == 2 && stats["status"].string == "refused")
    try expect(reload(set, #"{"feeds": [{"feed": "a"}]}"#, "--check-reload") == (0, "", ""))
    try expectEqual(set.ask("stats", "{}")["result"]["configuration"]["reads"].int, 2)
  }

  @Test("a check before a reload leaves it to the daemon whether feeds fit those of clients")
  func checkedBesideFeedsOfClients() throws {
    let set = try ConfiguredDaemon(#"{"feeds": [{"feed": "a"}]}"#)
    try expect(set.ask("define", #"{"feed":"mine","kind":"array"}"#).has("result"))
    let home = #"{"feed": "home", "kind": "composed", "children": ["a", "mine"]}"#
    let top = #"{"feed": "top", "kind": "view", "of": "home", "limit": 3}"#
    let file = #"{"feeds": [\#(top), \#(home), {"feed": "a"}]}"#
    try expect(reload(set, file, "--check-reload") == (0, "", ""))
    try expect(reload(set, file).code == 0)
    // A feed that is nowhere is found.
    let misspelt = home.replacing("mine", with: "mien")
    let missing = try reload(set, #"{"feeds": [\#(misspelt), {"feed": "a"}]}"#, "--check-reload")
    expect(missing.code == 1 && missing.errors.contains("\"mien\""), "\(missing.errors)")
    // What it shows of the file is checked.
    let refused = try reload(
      set, #"{"feeds": [{"feed": "a"}, {"feed": "b", "kind": "view", "of": "a/no"}]}"#, "--check-reload")
    expect(refused.code == 1 && refused.errors.contains("feeds[1]"), "\(refused.errors)")
  }

  @Test("a daemon with relative paths is found, and errors name the path that it was given")
  func relativePaths() throws {
    let directory = try TemporaryDirectory()
    try SmallFile.replace(directory.file("c.json"), with: Array("{}".utf8))
    let notify = try NotifyReceiver(directory.file("notify"))
    let script =
      "cd \(directory.path) && exec \(try BuildProducts.program("feedd")) --socket s --durability memory --config c.json"
    let daemon = try ChildProcess("/bin/sh", ["-c", script], environment: ["NOTIFY_SOCKET": notify.socketName])
    try notify.wait(for: "READY=1", orEndOf: daemon)
    try expect(run("--reload", "\(daemon.pid)") == (0, "feedd (pid \(daemon.pid)) read c.json: nothing changed\n", ""))
    try SmallFile.replace(directory.file("c.json"), with: Array("[]".utf8))
    let refused = try run("--reload", "\(daemon.pid)")
    expect(refused.code == 1 && refused.errors.hasPrefix("feedd: c.json:1:1: must be an object"))
    expectEqual(unlink(directory.file("c.json")), 0)
    try expect(run("--reload", "\(daemon.pid)") == (1, "", "feedd: cannot open c.json: no such file or directory\n"))
  }

  @Test("a configuration that is read during a long request loses nothing of it", arguments: [false, true])
  func duringLongRequest(isKept: Bool) throws {
    let set = try ConfiguredDaemon(#"{"feeds": [{"feed": "a"}]}"#, isKept: isKept)
    let count = 60_000
    func update(to value: Int) -> String {
      let elements = (0..<count).map { #"{"id":\#($0),"v":\#(value)}"# }.joined(separator: ",")
      return #"{"feed":"a","elements":[\#(elements)],"result":"counts"}"#
    }
    try expect(set.ask("update", update(to: 0)).has("result"))
    try expect(set.ask("define", #"{"feed":"new","kind":"view","of":"a","filter":"@.v == 1"}"#).has("result"))
    let client = try set.daemon.connect()
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"update","params":\#(update(to: 1))}"#)
    // The request is under way when some of these are read.
    for number in 0..<5 { try set.reload(#"{"feeds": [{"feed": "a"}, {"feed": "b\#(number)"}]}"#) }
    try expect(client.receiveJSON().has("result"))
    for feed in ["a", "new"] {
      try expectEqual(set.ask("describe", #"{"feed":"\#(feed)"}"#)["result"]["count"].int, count, "\(feed)")
    }
    try expect(set.ask("describe", #"{"feed":"b4"}"#).has("result"))
  }

  @Test("SIGHUP tells the service manager what took effect")
  func status() throws {
    let set = try ConfiguredDaemon(#"{"feeds": [{"feed": "a"}]}"#)
    try SmallFile.replace(
      set.directory.file("feedd.json"), with: Array(#"{"feeds": [{"feed": "b"}], "limits": {"maxBins": 9}}"#.utf8))
    set.daemon.process.signal(SIGHUP)
    try set.daemon.notify.wait(
      for:
        "STATUS=listening; configuration read again: defined b; kept a, which the file no longer defines; undefine what "
        + "is not needed; takes effect when feedd is started again: maxBins", orEndOf: set.daemon.process)
  }
}

/// `--socket-mode` and `--socket-group`.
@Suite("Permissions of the socket") struct SocketSettingsTests {
  private func permissions(_ path: String) -> (mode: UInt32, group: UInt32) {
    var status = stat()
    expectEqual(lstat(path, &status), 0)
    return (status.st_mode & 0o7777, status.st_gid)
  }

  @Test(
    arguments: [
      ([], "{}", 0o660), (["--socket-mode", "0666"], "{}", 0o666), (["--socket-mode", "600"], "{}", 0o600),
      ([], #"{"socketMode": "0606"}"#, 0o606), (["--socket-mode", "0660"], #"{"socketMode": "666"}"#, 0o660),
    ] as [([String], String, UInt32)])
  func mode(arguments: [String], configuration: String, mode: UInt32) throws {
    let set = try ConfiguredDaemon(configuration, arguments: arguments)
    expectEqual(permissions(set.daemon.socketPath).mode, mode)
  }

  @Test("the socket has the group of the option, else of the configuration")
  func group() throws {
    // Root may give files to every group, other users to their own ones.
    let groups = getuid() == 0 ? [4321, 4322] : [Int(getgid()), Int(getgid())]
    let both = try ConfiguredDaemon(
      #"{"socketGroup": "\#(groups[0])", "socketMode": "0670"}"#, arguments: ["--socket-group", "\(groups[1])"])
    expect(permissions(both.daemon.socketPath) == (0o670, UInt32(groups[1])))
    let file = try ConfiguredDaemon(#"{"socketGroup": \#(groups[0])}"#)
    expect(permissions(file.daemon.socketPath) == (0o660, UInt32(groups[0])))
  }

  @Test(
    arguments: [
      (["--socket-mode", "rw"], "--socket-mode 'rw': expected an octal mode such as 0660"),
      (["--socket-mode", "1777"], "--socket-mode '1777': expected an octal mode such as 0660"),
      (["--socket-mode", "0668"], "--socket-mode '0668': expected an octal mode such as 0660"),
      (["--socket-group", "no such group"], "--socket-group 'no such group': there is no such group"),
    ])
  func wrongOptions(arguments: [String], message: String) throws {
    let process = try ChildProcess(BuildProducts.program("feedd"), arguments)
    try expectEqual(process.waitForExit(), 2)
    try process.errors.waitForEnd()
    expectEqual(process.errors.text, "feedd: \(message)\nTry 'feedd --help'.\n")
  }

  @Test(
    arguments: [
      (#"{"socketMode": 660}"#, #"1:16: socketMode: must be a string with an octal mode such as 0660"#),
      (#"{"socketMode": "rw"}"#, #"1:16: socketMode: must be a string with an octal mode such as 0660"#),
      (#"{"socketGroup": "no such group"}"#, #"1:17: socketGroup: there is no group "no such group""#),
      (#"{"socketGroup": -1}"#, "1:17: socketGroup: must be the name or number of a group"),
      (#"{"socketGroup": true}"#, "1:17: socketGroup: must be the name or number of a group"),
    ])
  func wrongMembers(text: String, message: String) throws {
    let directory = try TemporaryDirectory()
    try SmallFile.replace(directory.file("c.json"), with: Array(text.utf8))
    let process = try ChildProcess(BuildProducts.program("feedd"), ["--check-config", directory.file("c.json")])
    try expectEqual(process.waitForExit(), 1)
    try process.errors.waitForEnd()
    expectEqual(process.errors.text, "\(directory.file("c.json")):\(message)\n")
  }

  @Test("a group that the daemon is no member of is refused, and no socket is left")
  func foreignGroup() throws {
    guard getuid() == 0 else { return print("SKIPPED: only root can run a daemon as another user") }
    let directory = try TemporaryDirectory()
    expectEqual(chmod(directory.path, 0o777), 0)
    let process = try ChildProcess(
      "/usr/bin/setpriv",
      [
        "--reuid", "65534", "--regid", "65534", "--clear-groups", BuildProducts.program("feedd"), "--durability",
        "memory",
        "--socket", directory.file("s"), "--socket-group", "0",
      ])
    try expectEqual(process.waitForExit(), 1)
    try process.errors.waitForEnd()
    expect(
      process.errors.text.contains(
        "cannot give the socket to group 0: \(directory.file("s")): operation not permitted; run feedd as a member of the group"
      ))
    expect(access(directory.file("s"), F_OK) != 0)
  }
}
