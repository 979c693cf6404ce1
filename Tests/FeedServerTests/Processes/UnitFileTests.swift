import FeedSystem
import Foundation
import TestSupport
import Testing

/// The unit files, verified by `systemd-analyze`.
@Suite("Unit files")
struct UnitFileTests {
  static let folder = "\(BuildProducts.packageFolder)/scripts/systemd"
  static let hasChecker = FileManager.default.isExecutableFile(atPath: "/usr/bin/systemd-analyze")

  /// Copies both units and replaces the program by the built one.
  func copy(into directory: TemporaryDirectory) throws -> [String] {
    let program = try BuildProducts.program("feedd")
    return try ["feedd.service", "feedd.socket"].map { name in
      let text = try String(contentsOfFile: "\(Self.folder)/\(name)", encoding: .utf8)
      let copy = text.replacingOccurrences(of: "=/usr/local/bin/feedd", with: "=\(program)")
      expect(name == "feedd.socket" || copy != text)
      let path = directory.file(name)
      try SmallFile.replace(path, with: Array(copy.utf8))
      return path
    }
  }

  @Test(.enabled(if: hasChecker, "there is no systemd-analyze here")) func unitsPassSystemdAnalyze() throws {
    let directory = try TemporaryDirectory()
    let process = try ChildProcess("systemd-analyze", ["verify"] + copy(into: directory))
    let code = try process.waitForExit()
    try process.output.waitForEnd()
    expectEqual(code, 0)
    expectEqual(process.errors.text + process.output.text, "")
  }

  /// The settings that the daemon and its tests rely on.
  @Test func unitsContainTheSettingsThatTheDaemonNeeds() throws {
    let service = try String(contentsOfFile: "\(Self.folder)/feedd.service", encoding: .utf8).split(separator: "\n")
    let lines = [
      "Type=notify", "ExecReload=/usr/local/bin/feedd --reload $MAINPID", "# systemd 253: Type=notify-reload",
      "# systemd 253: ExecReload=/usr/local/bin/feedd --check-reload $MAINPID", "# systemd 254: RestartSteps=10",
      "# systemd 254: RestartMaxDelaySec=15s", "RuntimeDirectory=feedd", "StateDirectory=feedd", "MemoryMax=75%",
      "TasksMax=1024", "Restart=on-failure", "StartLimitIntervalSec=0", "Environment=FEEDD_BOOT_ID=%b",
      "NoNewPrivileges=yes",
      "ProtectSystem=strict", "RestrictAddressFamilies=AF_UNIX",
    ]
    for line in lines { expect(service.contains(Substring(line))) }
    // With PrivateUsers the kernel would report the user of every client as nobody.
    expect(!service.contains { $0.hasPrefix("PrivateUsers=") })
    let socket = try String(contentsOfFile: "\(Self.folder)/feedd.socket", encoding: .utf8).split(separator: "\n")
    expect(socket.contains("SocketMode=0660"))
    expect(socket.contains("ListenStream=\(SocketPath.system)"))
  }
}
