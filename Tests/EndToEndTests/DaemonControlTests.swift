import FeedSystem
import Foundation
import TestSupport
import Testing

@Suite("what feedclient controls in a running daemon, and what the daemon reports") struct DaemonControlTests {
  @Test("log-level shows and changes the level of a running daemon") func logLevel() throws {
    let daemon = try DaemonProcess(["--log-level", "warning"])
    let client = ClientCommand(daemon)
    try expectEqual(client.run("log-level").output, "{\"level\":\"warning\"}\n")
    try client.succeed("ping")
    try expectEqual(client.run("log-level", "debug").output, "{\"level\":\"debug\"}\n")
    try client.succeed("ping")
    let unknown = try client.run("log-level", "debgu")
    expectEqual(unknown.code, 2)
    expectEqual(unknown.errors, "feedclient: log-level: unknown level 'debgu'; did you mean debug?\n")
    try expectEqual(client.run("call", "logLevel", "{\"level\":\"loud\"}").code, 1)
    try client.succeed("log-level", "error")
    try client.succeed("ping")
    try daemon.stop()
    let lines = daemon.log.split(separator: "\n")
    expect(lines.contains { $0.contains("changed the log level from warning to debug") })
    expectEqual(lines.count { $0.contains("feedclient/ping") && $0.contains(" closed after ") }, 1)
    expect(lines.contains { $0.contains(" opened") })
  }

  @Test("metrics are written to a file that every user can read") func metricsFile() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("feedd.prom")
    let daemon = try DaemonProcess(["--metrics-file", path], directory: directory)
    let client = ClientCommand(daemon)
    // The file is written in the first cycle, before the second one answers.
    try client.succeed("sync")
    try client.succeed("sync")
    let text = String(decoding: try SmallFile.read(path), as: UTF8.self)
    let printed = try client.run("stats", "--prometheus").output
    func names(_ text: String) -> [Substring] { text.split(separator: "\n").filter { $0.hasPrefix("# TYPE feedd_") } }
    expectEqual(names(text), names(printed))
    expect(names(text).contains("# TYPE feedd_memory_bytes gauge"))
    expect(text.hasPrefix("# HELP feedd_revision "))
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    expect(attributes[.posixPermissions] as? Int == 0o644)
    try expect(FileManager.default.contentsOfDirectory(atPath: directory.path).allSatisfy { !$0.hasSuffix(".new") })
    try daemon.stop()
  }

  @Test("a metrics file that cannot be written is an error in the log, and the daemon runs") func unwritable() throws {
    let daemon = try DaemonProcess(["--metrics-file", "/nonexistent/feedd.prom"])
    let client = ClientCommand(daemon)
    try client.succeed("sync")
    try client.succeed("sync")
    try daemon.stop()
    let error =
      "error: cannot write metrics: cannot write /nonexistent/feedd.prom: no such file or directory; "
      + "create the directory /nonexistent"
    expectEqual(daemon.log.split(separator: "\n").filter { $0.hasSuffix(error) }.count, 1)
  }

  @Test("a daemon without standard streams writes its log into no file of its own") func closedStreams() throws {
    let directory = try TemporaryDirectory()
    let notify = try NotifyReceiver(directory.file("notify"))
    let process = try ChildProcess(
      "sh",
      [
        "-c", "exec \"$0\" --socket \"$1/s\" --state \"$1/state\" <&- >&- 2>&-", BuildProducts.program("feedd"),
        directory.path,
      ],
      environment: ["NOTIFY_SOCKET": notify.socketName])
    while try !notify.next().contains("READY=1") {}
    for number in 0...2 {
      expectEqual(FilePath.resolved("/proc/\(process.pid)/fd/\(number)"), "/dev/null")
    }
    let client = ClientCommand(socket: directory.file("s"))
    try client.succeed("push", "f", "--define", "{\"id\":1}")
    for lock in ["s.lock", "state/feedd.lock"] {
      let text = String(decoding: try SmallFile.read(directory.file(lock)), as: UTF8.self)
      expectEqual(text.trimmingCharacters(in: .newlines), "\(process.pid)", "\(lock)")
    }
    process.signal(SIGTERM)
    try expectEqual(process.waitForExit(), 0)
  }

  @Test("reloading a process that does not exist or is not feedd is refused") func reloadOfOthers() throws {
    func errors(_ pid: Int32) throws -> String {
      let process = try ChildProcess(BuildProducts.program("feedd"), ["--check-reload", "\(pid)"])
      try expectEqual(process.waitForExit(), 1)
      return process.errors.text
    }
    let own = getpid()
    try expectEqual(errors(own), "feedd: cannot reload process \(own): it is not feedd\n")
    // The greatest process ID that Linux assigns is one less.
    try expectEqual(errors(4_194_304), "feedd: cannot reload process 4194304: there is no such process\n")
  }
}
