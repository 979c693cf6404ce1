import FeedSQLite
import FeedSystem
import Glibc
import TestSupport
import Testing

/// Managed feeds whose database cannot be read or watched for a while.
@Suite("Managed feeds heal") struct ManagedHealingTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private static func configuration(_ database: String) -> String {
    """
    {"feeds": [{"feed": "people", "kind": "managed", "database": "\(database)",
     "query": "SELECT id, name, circle FROM person ORDER BY id", "section": "circle"}]}
    """
  }

  private static func contacts(_ name: String) -> String {
    "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, circle); INSERT INTO person VALUES (1, '\(name)', 'a')"
  }

  private func make(_ path: String, _ name: String) throws {
    try Database(path: path, access: .create, busyTimeout: 5000).execute(Self.contacts(name))
  }

  private func source(_ set: ConfiguredDaemon) throws -> JSONValue {
    try set.ask("describe", #"{"feed":"people"}"#)["result"]["source"]
  }

  @Test("a directory or a link above the database is exchanged", arguments: ["live", "app/data"])
  func exchange(path: String) throws {
    for name in ["r1", "r2", "app", "app/data", "app/next"] { expectEqual(mkdir(directory.file(name), 0o755), 0) }
    expectEqual(symlink("r1", directory.file("live")), 0)
    for (folder, name) in [("r1", "old"), ("r2", "new"), ("app/data", "old"), ("app/next", "new")] {
      try make(directory.file("\(folder)/db"), name)
    }
    let set = try ConfiguredDaemon(Self.configuration(directory.file("\(path)/db")))
    let client = try set.watch("people")
    _ = try client.receive(having: "old")
    if path == "live" {
      expectEqual(symlink("r2", directory.file("next")), 0)
      expectEqual(rename(directory.file("next"), directory.file("live")), 0)
    } else {
      expectEqual(rename(directory.file("app/data"), directory.file("app/former")), 0)
      expectEqual(rename(directory.file("app/next"), directory.file("app/data")), 0)
    }
    _ = try client.receive(having: #""name":"new""#)
    try Database(path: directory.file("\(path)/db"), access: .readWrite, busyTimeout: 5000).execute(
      "UPDATE person SET name = 'newer'")
    _ = try client.receive(having: #""name":"newer""#)
    try expectEqual(source(set)["status"].string, "ok")
  }

  @Test("rows without a value and with infinity are in one section")
  func infinity() throws {
    let set = try ConfiguredDaemon(
      Self.configuration("contacts.sqlite"),
      contacts: Self.contacts("x") + ", (2, 'up', 9e999), (3, 'down', -9e999), (4, 'none', NULL), (5, 'text', 'null')")
    let client = try set.watch("people")
    _ = try client.receive(having: "text")
    let sections = try set.ask("snapshot", #"{"feed":"people"}"#)["result"]["sections"].elements
    expectEqual(sections.map { $0["name"].string }, ["people/a", "people", "people/null"])
    expectEqual(sections.map { $0["count"].int }, [1, 3, 1])
    try expectEqual(set.ask("get", #"{"feed":"people","id":3}"#)["result"]["element"]["circle"].text, "null")
  }

  /// The arguments of unshare(1) before a script that is root in namespaces of its own, and whose processes end with it.
  private static let namespaces = ["-Urmpf", "--kill-child", "--mount-proc", "sh", "-c"]

  /// A daemon in namespaces of its own, in which it has the limits and mounts that `script` makes: it runs as root there,
  /// starts the daemon as `start`, and reads a line of standard input for each step.
  private func isolated(_ set: TemporaryDirectory, _ script: String) throws -> (
    process: ChildProcess, notify: NotifyReceiver
  )? {
    let probe = try ChildProcess("/usr/bin/unshare", Self.namespaces + ["echo 0 > /proc/sys/user/max_inotify_watches"])
    guard try probe.waitForExit() == 0 else {
      print("SKIPPED: this system makes no user namespaces (unshare -Urm): \(probe.errors.text)")
      return nil
    }
    let notify = try NotifyReceiver(set.file("notify"))
    let daemon =
      "\(try BuildProducts.program("feedd")) --socket \(set.file("s")) --durability memory --config \(set.file("feedd.json"))"
    let process = try ChildProcess(
      "/usr/bin/unshare", Self.namespaces + [script.replacing("START", with: daemon)],
      environment: ["NOTIFY_SOCKET": notify.socketName])
    try notify.wait(for: "READY=1", orEndOf: process)
    return (process, notify)
  }

  private func ask(_ directory: TemporaryDirectory, _ method: String, _ params: String) throws -> JSONValue {
    let client = try RawClient(path: directory.file("s"))
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#)
    return try client.receiveJSON()["result"]
  }

  @Test(
    "without inotify the database is polled, and describe says so, until there is inotify again",
    arguments: ["max_inotify_instances", "max_inotify_watches"])
  func noInotify(limit: String) throws {
    try make(directory.file("db"), "old")
    try SmallFile.replace(directory.file("feedd.json"), with: Array(Self.configuration("db").utf8))
    let script = """
      echo 0 > /proc/sys/user/\(limit); START & read line; echo 1000 > /proc/sys/user/\(limit); read line; kill $!; wait
      """
    guard let (process, _) = try isolated(directory, script) else { return }
    try process.errors.wait(for: "the database is looked at every few seconds")
    let polling = try ask(directory, "describe", #"{"feed":"people"}"#)["source"]
    expectEqual(polling["status"].string, "polling")
    expectEqual(
      polling["reason"].string?.contains(
        limit == "max_inotify_watches" ? "no inotify watches are left" : "too many open files"), true)
    expectEqual(polling["since"].string?.hasPrefix("20"), true)
    let client = try RawClient(path: directory.file("s"))
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"watch","params":{"feed":"people"}}"#)
    _ = try client.receive(having: "old")
    try Database(path: directory.file("db"), access: .readWrite, busyTimeout: 5000).execute(
      "UPDATE person SET name = 'new'")
    _ = try client.receive(having: #""name":"new""#)
    try process.write("\n")
    try process.errors.wait(for: "managed feed people: 1 row")
    let ok = try ask(directory, "describe", #"{"feed":"people"}"#)["source"]
    expect(ok["status"].string == "ok" && !ok.has("reason"))
    try process.write("\n")
    try expectEqual(process.waitForExit(), 0)
  }

  @Test("a mount over the directory is noticed at SIGHUP at the latest")
  func mount() throws {
    for name in ["data", "other"] {
      expectEqual(mkdir(directory.file(name), 0o755), 0)
      try make(directory.file("\(name)/db"), name)
    }
    try SmallFile.replace(directory.file("feedd.json"), with: Array(Self.configuration("data/db").utf8))
    let script = """
      START & read line; mount --bind \(directory.file("other")) \(directory.file("data")) && kill -HUP $!; read line; kill $!; wait
      """
    guard let (process, _) = try isolated(directory, script) else { return }
    let client = try RawClient(path: directory.file("s"))
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"watch","params":{"feed":"people"}}"#)
    _ = try client.receive(having: #""name":"data""#)
    try process.write("\n")
    _ = try client.receive(having: #""name":"other""#)
    try process.write("\n")
    try expectEqual(process.waitForExit(), 0)
  }

  @Test("permission is lost and regained")
  func permission() throws {
    for (name, mode) in [("", 0o755), ("data", 0o755)] as [(String, mode_t)] {
      if !name.isEmpty { expectEqual(mkdir(directory.file(name), mode), 0) }
      expectEqual(chmod(name.isEmpty ? directory.path : directory.file(name), mode), 0)
    }
    try make(directory.file("data/db"), "old")
    expectEqual(chmod(directory.file("data/db"), 0o644), 0)
    try SmallFile.replace(directory.file("feedd.json"), with: Array(Self.configuration("data/db").utf8), isPublic: true)
    let arguments = [
      try BuildProducts.program("feedd"), "--socket", directory.file("run/s"), "--durability", "memory", "--config",
      directory.file("feedd.json"),
    ]
    expect(mkdir(directory.file("run"), 0o777) == 0 && chmod(directory.file("run"), 0o777) == 0)
    let isRoot = getuid() == 0
    // Root may read every file.
    let words =
      isRoot
      ? ["--reuid", "65534", "--regid", "65534", "--clear-groups"] + arguments : arguments.dropFirst().map { $0 }
    let process = try ChildProcess(isRoot ? "/usr/bin/setpriv" : arguments[0], words)
    try process.errors.wait(for: "listens at")
    let client = try RawClient(path: directory.file("run/s"))
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"watch","params":{"feed":"people"}}"#)
    _ = try client.receive(having: "old")
    expectEqual(chmod(directory.file("data"), 0), 0)
    try process.errors.wait(for: "managed feed people: cannot examine \(directory.file("data/db")): permission denied")
    if isRoot {
      try Database(path: directory.file("data/db"), access: .readWrite, busyTimeout: 5000).execute(
        "UPDATE person SET name = 'new'")
    }
    expectEqual(chmod(directory.file("data"), 0o755), 0)
    if isRoot { _ = try client.receive(having: #""name":"new""#) }
    try process.errors.wait(for: "managed feed people: 1 row")
    process.signal(SIGTERM)
    try expectEqual(process.waitForExit(), 0)
  }

  @Test("a query that fails works once the schema has what it names, and one that never ends is ended at SIGHUP")
  func queries() throws {
    let set = try ConfiguredDaemon(Self.configuration("contacts.sqlite"), contacts: "CREATE TABLE other (id)")
    try set.daemon.process.errors.wait(for: "managed feed people: \(set.database): no such table: person")
    let client = try set.watch("people")
    try set.open().execute(Self.contacts("here"))
    _ = try client.receive(having: #""name":"here""#)
    let endless = "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT max(id) AS id FROM n"
    func configuration(_ query: String) -> String {
      #"{"feeds": [{"feed": "people", "kind": "managed", "database": "contacts.sqlite", "query": "\#(query)"}]}"#
    }
    try set.reload(configuration(endless))
    try set.reload(configuration("SELECT id, 'there' AS name FROM person"))
    _ = try client.receive(having: #""name":"there""#)
  }
}
