import FeedSystem
import TestSupport
import Testing

@Suite("Service manager's notifications")
struct NotifyTests {
  @Test(arguments: [false, true]) func sendsOneDatagramAMessage(isAbstract: Bool) throws {
    let directory = try TemporaryDirectory()
    let receiver = try NotifyReceiver(isAbstract ? "@\(directory.path)" : directory.file("n"))
    let notify = Notify(Environment(["NOTIFY_SOCKET": receiver.socketName]), pid: 1)
    try notify.send(.ready, .status("ready at\n/x"), .mainPID(77))
    #expect(try receiver.next() == ["READY=1", "STATUS=ready at /x", "MAINPID=77"])
    try notify.send(.stopping)
    #expect(try receiver.next() == ["STOPPING=1"])
    try notify.send(.reloading)
    let reloading = try receiver.next()
    #expect(reloading.first == "RELOADING=1")
    #expect(reloading.last?.hasPrefix("MONOTONIC_USEC=") == true)
    try notify.send(.watchdog)
    #expect(try receiver.next() == ["WATCHDOG=1"])
  }

  @Test func withoutAManagerNothingIsSent() throws {
    try Notify(Environment([:]), pid: 1).send(.ready)
    try Notify(Environment(["NOTIFY_SOCKET": "relative"]), pid: 1).send(.ready)
    #expect(throws: SystemError.self) {
      try Notify(Environment(["NOTIFY_SOCKET": "/tmp/no/such/socket"]), pid: 1).send(.ready)
    }
  }

  @Test(
    arguments: [
      ([:], nil), (["WATCHDOG_USEC": "3000000"], .seconds(3)), (["WATCHDOG_USEC": "0"], nil),
      (["WATCHDOG_USEC": "x"], nil), (["WATCHDOG_USEC": "5", "WATCHDOG_PID": "7"], .microseconds(5)),
      (["WATCHDOG_USEC": "5", "WATCHDOG_PID": "8"], nil),
    ] as [([String: String], Duration?)])
  func watchdog(variables: [String: String], interval: Duration?) {
    #expect(Notify(Environment(variables), pid: 7).watchdogInterval == interval)
  }
}
