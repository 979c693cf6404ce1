import FeedSystem
import Foundation
import Glibc
import TestSupport
import Testing

/// State directories: restarts, locks, checks, backups and full disks.
struct StateTests {
  private let directory: TemporaryDirectory
  private var state: String { directory.file("state") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func daemon(_ more: [String] = [], state: String? = nil) throws -> DaemonProcess {
    try DaemonProcess(["--state", state ?? self.state] + more, directory: directory)
  }

  private func ask(_ daemon: DaemonProcess, _ method: String, _ params: String) throws -> JSONValue {
    let client = try daemon.connect()
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#)
    return try JSONValue(client.receive())
  }

  private func fill(_ daemon: DaemonProcess) throws {
    try expect(ask(daemon, "define", #"{"feed":"f","kind":"collection"}"#).has("result"))
    try expect(ask(daemon, "update", #"{"feed":"f","elements":[{"id":1},{"id":2}]}"#)["result"].has("added"))
  }

  private func run(_ program: String, _ arguments: [String]) throws -> (code: Int32, output: String, errors: String) {
    let process = try ChildProcess(BuildProducts.program(program), arguments)
    let code = try process.waitForExit()
    try process.output.waitForEnd()
    return (code, process.output.text, process.errors.text)
  }

  @Test(arguments: [SIGTERM, SIGKILL]) func restartRestoresTheState(_ signal: Int32) throws {
    var verified: JSONValue = "null"
    do {
      let daemon = try daemon()
      try fill(daemon)
      verified = try ask(daemon, "verify", #"{"feed":"f"}"#)
      try daemon.stop(signal: signal)
    }
    let daemon = try daemon(["--durability", "disk"])
    try expectEqual(ask(daemon, "verify", #"{"feed":"f"}"#), verified)
    try expectEqual(ask(daemon, "hello", #"{"protocol":1}"#)["result"]["capabilities"]["durability"].string, "disk")
  }

  /// Watches `$feeds` from a revision. Returns the answer, and the notifications up to the answer to `sync`.
  private func watchList(
    _ client: RawClient, since epoch: String, _ revision: Int
  ) throws -> (result: JSONValue, notifications: [JSONValue]) {
    let since = #"{"epoch":"\#(epoch)","revision":\#(revision)}"#
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"watch","params":{"feed":"$feeds","since":\#(since)}}"#)
    try client.send(#"{"jsonrpc":"2.0","id":2,"method":"sync"}"#)
    let answer = try client.receiveJSON()
    var notifications: [JSONValue] = []
    while true {
      let frame = try client.receiveJSON()
      if frame["id"].int == 2 { return (answer["result"], notifications) }
      notifications.append(frame)
    }
  }

  @Test("a watch of $feeds resumes over a restart, and ends with another state", arguments: [SIGTERM, SIGKILL])
  func listOfFeedsResumes(_ signal: Int32) throws {
    var (epoch, seen, last) = ("", 0, 0)
    do {
      // Images are written all the time, so a killed daemon leaves an image and a journal.
      let daemon = try daemon(["--image-journal", "16K"])
      try fill(daemon)
      try expect(ask(daemon, "define", #"{"feed":"b","kind":"array"}"#).has("result"))
      epoch = try require(ask(daemon, "hello", #"{"protocol":1}"#)["result"]["epoch"].string)
      seen = try require(ask(daemon, "snapshot", #"{"feed":"$feeds"}"#)["result"]["revision"].int)
      // Changes of other feeds are not changes of the list.
      let text = String(repeating: "x", count: 2000)
      for id in 0..<20 {
        try expect(ask(daemon, "update", #"{"feed":"f","element":{"id":\#(id),"text":"\#(text)"}}"#).has("result"))
      }
      try expectEqual(ask(daemon, "describe", #"{"feed":"$feeds"}"#)["result"]["revision"].int, seen)
      try expect(ask(daemon, "define", #"{"feed":"a","kind":"single"}"#).has("result"))
      try expect(ask(daemon, "undefine", #"{"feed":"b"}"#).has("result"))
      let changed = #"{"feed":"f","kind":"collection","multiple":false,"replace":true}"#
      last = try require(ask(daemon, "define", changed)["result"]["revision"].int)
      try daemon.stop(signal: signal)
    }
    do {
      let daemon = try daemon()
      try expectEqual(ask(daemon, "describe", #"{"feed":"$feeds"}"#)["result"]["revision"].int, last)
      // One delta contains what was missed: "b" is deleted, "a" is added, "f" is updated.
      let watcher = try daemon.connect()
      let (result, missed) = try watchList(watcher, since: epoch, seen)
      expectEqual(result["resumed"], "true")
      try require(missed.count == 1)
      let delta = missed[0]["params"]
      expect(delta["from"].int == seen && delta["revision"].int == last)
      expect(delta["deleted"] == "[[0,0]]" && delta["added"] == "[[0,0]]" && delta["updated"] == "[[0,1]]")
      expectEqual(delta["elements"].elements.map { $0["feed"].string }, ["a", "f"])
      expectEqual(delta["elements"].elements.last?["definition"]["multiple"], "false")
      // A watch that is up to date gets no delta before the next change.
      let current = try daemon.connect()
      let (same, nothing) = try watchList(current, since: epoch, last)
      expect(same["resumed"] == "true" && same["revision"].int == last && nothing.isEmpty)
      let next = try require(ask(daemon, "undefine", #"{"feed":"a"}"#)["result"]["revision"].int)
      expectEqual(next, last + 1)
      for client in [watcher, current] {
        let delta = try client.receiveJSON()["params"]
        expect(delta["from"].int == last && delta["revision"].int == next && delta["deleted"] == "[[0,0]]")
      }
      try daemon.stop(signal: signal)
    }
    // Another state has another epoch: the watch starts with a snapshot.
    let other = try self.daemon(state: directory.file("other"))
    let (result, parts) = try watchList(other.connect(), since: epoch, last)
    expect(result["resumed"] == "false" && result["epoch"].string != epoch)
    expectEqual(parts.map { $0["method"].string }, ["snapshot"])
    expectEqual(parts.first?["params"]["elements"], "[]")
  }

  @Test func secondDaemonReportsTheOwnerOfTheState() throws {
    let first = try daemon()
    let second = try run("feedd", ["--socket", directory.file("other.sock"), "--state", state])
    expectEqual(second.code, 1)
    expect(second.errors.contains("another feedd (pid \(first.process.pid)) uses \(state)"))
    // The lock is on the directory, so it holds without the file.
    expectEqual(unlink("\(state)/feedd.lock"), 0)
    let third = try run("feedd", ["--socket", directory.file("other.sock"), "--state", state])
    expectEqual(third.code, 1)
    expect(third.errors.contains("another feedd (pid unknown) uses \(state)"))
    try fill(first)
  }

  /// SQLite writes images, and opens no file with a longer path.
  @Test("a state directory with a path that is too long is refused", arguments: [487, 488])
  func longPath(bytes: Int) throws {
    var state = try require(FilePath.resolved(directory.path))
    while bytes - state.utf8.count > 201 { state += "/" + String(repeating: "d", count: 100) }
    state += "/" + String(repeating: "e", count: bytes - state.utf8.count - 1)
    if bytes == 487 { return try expectEqual(imagesOfDaemonThatStopped(in: state), ["feedd.sqlite"]) }
    let refused = try run("feedd", ["--socket", directory.file("other.sock"), "--state", state])
    expectEqual(refused.code, 1)
    expect(
      refused.errors.contains(
        "cannot use state directory \(state): its path has 488 bytes, more than 487; name another directory"),
      "\(refused.errors)")
  }

  /// Starts and stops a daemon. Returns the names of the files of images.
  private func imagesOfDaemonThatStopped(in state: String) throws -> [String] {
    let daemon = try daemon(state: state)
    try fill(daemon)
    try daemon.stop()
    return try FileManager.default.contentsOfDirectory(atPath: state).filter { $0.hasPrefix("feedd.sqlite") }
  }

  @Test("files with a second name in another directory are used by no second daemon") func linkedFiles() throws {
    let first = try daemon()
    try fill(first)
    let other = directory.file("other")
    expectEqual(mkdir(other, 0o700), 0)
    for (name, what) in [("feedd.sqlite", "the database file"), ("log-000001", "the segment")] {
      for file in ["feedd.sqlite", "log-000001"] where file != name {
        try SmallFile.replace("\(other)/\(file)", with: try SmallFile.read("\(state)/\(file)"))
      }
      expectEqual(link("\(state)/\(name)", "\(other)/\(name)"), 0)
      let second = try run("feedd", ["--socket", directory.file("other.sock"), "--state", other])
      expectEqual(second.code, 1)
      expect(
        second.errors.contains("\(other)/\(name): \(what) has 2 names; nothing was changed; remove its other names"),
        "\(second.errors)")
      for file in ["feedd.sqlite", "log-000001"] { expectEqual(unlink("\(other)/\(file)"), 0) }
    }
    try expect(ask(first, "update", #"{"feed":"f","element":{"id":3}}"#).has("result"))
  }

  @Test("symbolic links to the files of a database give no second daemon access") func symbolicLinks() throws {
    let first = try daemon()
    try fill(first)
    let other = directory.file("other")
    expectEqual(mkdir(other, 0o700), 0)
    for name in ["feedd.sqlite", "log-000001"] { expectEqual(symlink("\(state)/\(name)", "\(other)/\(name)"), 0) }
    let second = try run("feedd", ["--socket", directory.file("other.sock"), "--state", other])
    expectEqual(second.code, 1)
    expect(
      second.errors.contains(
        "\(other)/feedd.sqlite: the database file is a symbolic link; nothing was changed; give --state the directory"))
    try expect(ask(first, "update", #"{"feed":"f","element":{"id":3}}"#).has("result"))
  }

  @Test func checkReportsTheState() throws {
    do {
      let daemon = try daemon()
      try fill(daemon)
      let during = try run("feedd", ["--check", "--state", state])
      expect(during.code == 0 && during.output.contains("f: collection, 2 rows, revision 2"))
      try daemon.stop()
    }
    let after = try run("feedd", ["--check", "--state", state])
    expect(after.code == 0 && after.output.contains("image of revision 2 with 2 elements, 0 batches"))
    let nowhere = try run("feedd", ["--check", "--state", directory.file("nowhere")])
    expect(nowhere.code == 1 && nowhere.errors.contains("nowhere"))
  }

  /// The files of the state directory: names, bytes and times.
  private func files() throws -> [String: (stamp: FileStamp?, bytes: [UInt8])] {
    var found: [String: (stamp: FileStamp?, bytes: [UInt8])] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: state) {
      found[name] = (FileStamp(at: "\(state)/\(name)"), try SmallFile.read("\(state)/\(name)"))
    }
    return found
  }

  @Test("--check writes nothing after the daemon was killed") func checkWritesNothing() throws {
    let daemon = try daemon()
    try fill(daemon)
    try daemon.stop(signal: SIGKILL)
    let before = try files()
    expect(before.keys.contains("feedd.sqlite") && before.keys.contains("log-000001"))
    let check = try run("feedd", ["--check", "--state", state])
    expect(check.code == 0 && check.output.contains("f: collection, 2 rows, revision 2"), "\(check.errors)")
    expect(check.output.contains("log-000001: 2,097,152 bytes, from batch 1 on"), "\(check.output)")
    let after = try files()
    expectEqual(after.keys.sorted(), before.keys.sorted())
    for (name, file) in before {
      expect(after[name]?.stamp == file.stamp && after[name]?.bytes == file.bytes, "\(name)")
    }
  }

  @Test func skipBatchOmitsABatch() throws {
    var epoch: String?
    do {
      let daemon = try daemon()
      try fill(daemon)
      epoch = try ask(daemon, "hello", #"{"protocol":1}"#)["result"]["epoch"].string
      try daemon.stop(signal: SIGKILL)
    }
    let wrong = try run("feedd", ["--socket", directory.file("s"), "--state", state, "--skip-batch", "9"])
    expect(wrong.code == 1 && wrong.errors.contains("there is no batch 9 of the log to execute"))
    do {
      let daemon = try daemon(["--skip-batch", "2"])
      try expectEqual(ask(daemon, "verify", #"{"feed":"f"}"#)["result"]["counts"], "[0]")
      try expect(ask(daemon, "hello", #"{"protocol":1}"#)["result"]["epoch"].string != epoch)
      try daemon.stop(signal: SIGKILL)
    }
    let check = try run("feedd", ["--check", "--state", state])
    expect(check.code == 0 && check.output.contains("f: collection, 0 rows"))
  }

  @Test func daemonRefusesADamagedState() throws {
    do {
      let daemon = try daemon()
      try fill(daemon)
      try daemon.stop()
    }
    let file = try require(fopen("\(state)/feedd.sqlite", "r+"))
    fseek(file, 8192 * 3, SEEK_SET)
    fwrite([UInt8](repeating: 0x5a, count: 8192 * 4), 1, 8192 * 4, file)
    fclose(file)
    let start = try run("feedd", ["--socket", directory.file("s"), "--state", state])
    expect(start.code == 1 && start.errors.contains("restore a backup"))
    try expectEqual(run("feedd", ["--check", "--state", state]).code, 1)
  }

  @Test func backupOfARunningDaemonCanBeRestored() throws {
    let file = directory.file("backup.sqlite")
    var epoch: String?
    var verified: JSONValue = "null"
    do {
      let daemon = try daemon()
      try fill(daemon)
      let made = try run("feedclient", ["backup", file, "--state", state])
      expectEqual(made.code, 0, "\(made.errors)")
      verified = try ask(daemon, "verify", #"{"feed":"f"}"#)
      epoch = try ask(daemon, "hello", #"{"protocol":1}"#)["result"]["epoch"].string
      try expect(ask(daemon, "update", #"{"feed":"f","element":{"id":3}}"#)["result"].has("added"))
      let again = try run("feedclient", ["backup", file, "--state", state])
      expect(again.code == 2 && again.errors.contains("choose another name"))
      try daemon.stop()
    }
    expectEqual(mkdir(directory.file("other"), 0o700), 0)
    expectEqual(rename(file, directory.file("other/feedd.sqlite")), 0)
    let daemon = try daemon(state: directory.file("other"))
    try expectEqual(ask(daemon, "verify", #"{"feed":"f"}"#), verified)
    try expect(ask(daemon, "hello", #"{"protocol":1}"#)["result"]["epoch"].string != epoch)
  }

  /// Without `--state` the daemon reports its state directory.
  @Test func backupWithoutStateAsksTheDaemon() throws {
    let daemon = try daemon()
    try fill(daemon)
    let file = directory.file("backup.sqlite")
    let made = try run("feedclient", ["--socket", daemon.socketPath, "backup", file])
    expectEqual(made.code, 0, "\(made.output)\(made.errors)")
    try expectEqual(JSONValue(made.output)["state"].string, state, "\(made.output)")
    var status = stat()
    expect(stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600)
    expectEqual(mkdir(directory.file("other"), 0o700), 0)
    expectEqual(rename(file, directory.file("other/feedd.sqlite")), 0)
    let check = try run("feedd", ["--check", "--state", directory.file("other")])
    expect(check.code == 0 && check.output.contains("f: collection, 2 rows"))
    let nobody = try run("feedclient", ["--socket", directory.file("nobody.sock"), "backup", file])
    expectEqual(nobody.code, 3)
  }

  /// Stops a backup while its temporary file exists. Returns false if the backup was complete before.
  private func stop(_ backup: ChildProcess, in folder: String) throws -> Bool {
    var state = siginfo_t()
    while try !FileManager.default.contentsOfDirectory(atPath: folder).contains(where: { $0.hasPrefix(".") }) {
      if access("\(folder)/backup", F_OK) == 0 { return false }
      try require(waitid(P_PID, id_t(backup.pid), &state, WEXITED | WNOHANG | WNOWAIT) == 0)
      try require(
        state.si_signo == 0 || access("\(folder)/backup", F_OK) == 0, "the backup failed: \(backup.errors.text)")
    }
    backup.signal(SIGSTOP)
    try require(waitid(P_PID, id_t(backup.pid), &state, WSTOPPED | WEXITED | WNOWAIT) == 0)
    return state.si_code == CLD_STOPPED && access("\(folder)/backup", F_OK) != 0
  }

  @Test("a backup that a signal ends removes its files", arguments: [SIGINT, SIGTERM, SIGHUP])
  func interruptedBackup(_ signal: Int32) throws {
    let daemon = try daemon()
    try fill(daemon)
    let text = String(repeating: "x", count: 200)
    for batch in 0..<20 {
      let elements = (0..<1000).map { #"{"id":\#(batch * 1000 + $0),"t":"\#(text)"}"# }.joined(separator: ",")
      try expect(ask(daemon, "update", #"{"feed":"f","elements":[\#(elements)]}"#).has("result"))
    }
    let folder = directory.file("copies")
    expectEqual(mkdir(folder, 0o700), 0)
    var wasStopped = false
    while !wasStopped {
      let backup = try ChildProcess(
        BuildProducts.program("feedclient"), ["backup", "\(folder)/backup", "--state", state])
      wasStopped = try stop(backup, in: folder)
      backup.signal(signal)
      backup.signal(SIGCONT)
      let code = try backup.waitForExit()
      unlink("\(folder)/backup")
      try expect(FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
      if wasStopped { expect(code == 128 + signal && backup.errors.text == "") }
    }
  }

  @Test func daemonWithoutStateCannotBeBackedUp() throws {
    let daemon = try DaemonProcess(["--durability", "memory"], directory: directory)
    let made = try run("feedclient", ["--socket", daemon.socketPath, "backup", directory.file("b")])
    expect(made.code == 2 && made.errors.contains("keeps nothing"))
  }

  /// The bytes of the files in the state directory whose names begin so.
  private func bytes(of prefix: String) throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: state).filter { $0.hasPrefix(prefix) }.reduce(0) { sum, name in
      var status = stat()
      expectEqual(stat("\(state)/\(name)", &status), 0)
      return sum + Int(status.st_size)
    }
  }

  /// An image is written a second after the last change; then nothing changes the files.
  @Test func sizesOfImageAndLogAreInStats() throws {
    let started = Int(WallClock.now / 1_000_000_000)
    let daemon = try daemon()
    try fill(daemon)
    var stats = try ask(daemon, "stats", "{}")["result"]
    expectEqual(stats["logBytes"].int, (stats["imageBytes"].int ?? -1) + (stats["segmentBytes"].int ?? -1))
    while try stats["imagedAt"].int == 0 || bytes(of: "log-") != stats["segmentBytes"].int {
      stats = try ask(daemon, "stats", "{}")["result"]
    }
    try expectEqual(stats["imageBytes"].int, bytes(of: "feedd.sqlite"))
    let imaged = try require(stats["imagedAt"].int)
    expect((started...Int(WallClock.now / 1_000_000_000)).contains(imaged))
    let metrics = try run("feedclient", ["--socket", daemon.socketPath, "stats", "--prometheus"])
    for line in [
      "feedd_image_bytes \(try bytes(of: "feedd.sqlite"))", "feedd_segment_bytes \(try bytes(of: "log-"))",
      "feedd_image_timestamp_seconds \(imaged)",
    ] {
      expect(metrics.output.split(separator: "\n").contains(Substring(line)), "\(metrics.output)")
    }
  }

  private func limitFiles(of daemon: DaemonProcess, _ size: String) throws {
    let process = try ChildProcess("/usr/bin/prlimit", ["--pid", "\(daemon.process.pid)", "--fsize=\(size):unlimited"])
    try expectEqual(process.waitForExit(), 0)
  }

  /// A limit on the size of files acts like a full disk: mutations fail, reads succeed, and both recover.
  @Test func fileSizeLimitActsLikeAFullDisk() throws {
    let daemon = try daemon()
    try fill(daemon)
    try limitFiles(of: daemon, "\(1 << 20)")
    let text = String(repeating: "x", count: 100_000)
    var answers: [JSONValue] = []
    repeat {
      answers.append(try ask(daemon, "update", #"{"feed":"f","element":{"id":\#(answers.count),"t":"\#(text)"}}"#))
    } while answers.count < 40 && answers.last?["result"].has("added") == true
    let error = answers.last?["error"]
    expect(error?["code"].int == -32008 && error?["message"].string?.contains("quotas and limits") == true)
    try expectEqual(ask(daemon, "get", #"{"feed":"f","id":1}"#)["result"]["element"]["id"].int, 1)
    try limitFiles(of: daemon, "unlimited")
    try expect(ask(daemon, "update", #"{"feed":"f","element":{"id":1000}}"#)["result"].has("added"))
    let verified = try ask(daemon, "verify", #"{"feed":"f"}"#)
    try daemon.stop(signal: SIGKILL)
    try expectEqual(ask(try self.daemon(), "verify", #"{"feed":"f"}"#), verified)
  }
}
