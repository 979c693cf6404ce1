import TestSupport
import Testing

@Suite("a program that uses the Swift library") struct SwiftProgramTests {
  @Test("the program of the README draws rows with the drawer of their type") func notices() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    try client.succeed("define", "inbox", "--type", "$.kind")
    try client.succeed("push", "inbox", "{\"id\":7,\"kind\":\"alarm\",\"text\":\"Smoke\"}")
    let terminal = try PseudoTerminal(columns: 80, rows: 24)
    let screen = TerminalReader(terminal)
    let program = try ChildProcess(
      "sh", ["-c", "exec \"$0\" <&3 >&3", BuildProducts.program("notices")],
      environment: ["FEEDD_SOCKET": daemon.socketPath], passing: [terminal.terminal])
    try screen.wait(for: "! Smoke\r\nDoor open\r\n")
    let change = "{\"id\":8,\"kind\":\"alarm\",\"text\":\"Fire\"}"
    try client.succeed("push", "inbox", "--animation", "fade", change)
    try screen.wait(for: "! Smoke (fade)\r\nDoor open\r\n! Fire (fade)\r\n")
    program.signal(9)
    _ = try program.waitForExit()
  }
}
