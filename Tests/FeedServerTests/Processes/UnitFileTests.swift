import FeedSystem
import Foundation
import TestSupport
import Testing

/// The files that the service manager reads, judged by its own checker.
@Suite("Unit files")
struct UnitFileTests {
  static let folder = "\(BuildProducts.packageFolder)/scripts/systemd"
  static let hasChecker = FileManager.default.isExecutableFile(atPath: "/usr/bin/systemd-analyze")

  /// A copy of both units in which the program is the one that was built.
  func copy(into directory: TemporaryDirectory) throws -> [String] {
    let program = try BuildProducts.program("feedd")
    return try ["feedd.service", "feedd.socket"].map { name in
      let text = try String(contentsOfFile: "\(Self.folder)/\(name)", encoding: .utf8)
      let copy = text.replacingOccurrences(of: "=/usr/local/bin/feedd", with: "=\(program)")
      #expect(name == "feedd.socket" || copy != text)
      let path = directory.file(name)
      try SmallFile.replace(path, with: Array(copy.utf8))
      return path
    }
  }

  @Test(.enabled(if: hasChecker, "there is no systemd-analyze here")) func areFlawless() throws {
    let directory = try TemporaryDirectory()
    let process = try ChildProcess("systemd-analyze", ["verify"] + copy(into: directory))
    let code = try process.waitForExit()
    try process.output.waitForEnd()
    #expect(code == 0)
    #expect(process.errors.text + process.output.text == "")
  }

  /// What the daemon and its tests rely on, so that nobody takes it out unnoticed.
  @Test func sayWhatTheDaemonReliesOn() throws {
    let service = try String(contentsOfFile: "\(Self.folder)/feedd.service", encoding: .utf8).split(separator: "\n")
    let lines = [
      "Type=notify", "ExecReload=/usr/local/bin/feedd --reload $MAINPID", "# systemd 253: Type=notify-reload",
      "# systemd 253: ExecReload=/usr/local/bin/feedd --check-reload $MAINPID", "# systemd 254: RestartSteps=10",
      "# systemd 254: RestartMaxDelaySec=15s", "RuntimeDirectory=feedd", "StateDirectory=feedd", "MemoryMax=75%",
      "TasksMax=1024", "Restart=on-failure", "StartLimitIntervalSec=0", "Environment=FEEDD_BOOT_ID=%b",
      "NoNewPrivileges=yes",
      "ProtectSystem=strict", "RestrictAddressFamilies=AF_UNIX",
    ]
    for line in lines { #expect(service.contains(Substring(line))) }
    // With it the kernel would show every client's user as nobody.
    #expect(!service.contains { $0.hasPrefix("PrivateUsers=") })
    let socket = try String(contentsOfFile: "\(Self.folder)/feedd.socket", encoding: .utf8).split(separator: "\n")
    #expect(socket.contains("SocketMode=0660"))
    #expect(socket.contains("ListenStream=\(SocketPath.system)"))
  }
}
