import FeedSystem
import TestSupport
import Testing

@Suite("Sockets passed by the service manager")
struct ListenFDsTests {
  @Test(
    arguments: [
      ([:], []),
      (["LISTEN_PID": "7", "LISTEN_FDS": "1"], ["3 unknown"]),
      (["LISTEN_PID": "7", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a:b"], ["3 a", "4 b"]),
      (["LISTEN_PID": "7", "LISTEN_FDS": "2", "LISTEN_FDNAMES": ":b"], ["3 unknown", "4 b"]),
      (["LISTEN_PID": "7", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a"], ["3 a", "4 unknown"]),
      (["LISTEN_PID": "8", "LISTEN_FDS": "1"], []),
      (["LISTEN_PID": "7", "LISTEN_FDS": "0"], []),
      (["LISTEN_PID": "7", "LISTEN_FDS": "-1"], []),
      (["LISTEN_PID": "7", "LISTEN_FDS": "2000000000"], []),
      (["LISTEN_PID": "7", "LISTEN_FDS": "one"], []),
      (["LISTEN_FDS": "1"], []),
    ] as [([String: String], [String])])
  func socketsOfVariables(variables: [String: String], sockets: [String]) {
    let passed = ListenFDs(Environment(variables), pid: 7)
    expectEqual(passed.sockets.map { "\($0.descriptor) \($0.name)" }, sockets)
  }
}

@Suite("Notifications to the service manager")
struct NotifyTests {
  @Test(arguments: [false, true]) func eachSendIsOneDatagram(isAbstract: Bool) throws {
    let directory = try TemporaryDirectory()
    let receiver = try NotifyReceiver(isAbstract ? "@\(directory.path)" : directory.file("n"))
    let notify = Notify(Environment(["NOTIFY_SOCKET": receiver.socketName]), pid: 1)
    try notify.send(.ready, .status("ready at\n/x"), .mainPID(77))
    try expectEqual(receiver.next(), ["READY=1", "STATUS=ready at /x", "MAINPID=77"])
    try notify.send(.stopping)
    try expectEqual(receiver.next(), ["STOPPING=1"])
    try notify.send(.reloading)
    let reloading = try receiver.next()
    expectEqual(reloading.first, "RELOADING=1")
    expectEqual(reloading.last?.hasPrefix("MONOTONIC_USEC="), true)
    try notify.send(.watchdog)
    try expectEqual(receiver.next(), ["WATCHDOG=1"])
  }

  @Test func sendWithoutManagerDoesNothing() throws {
    try Notify(Environment([:]), pid: 1).send(.ready)
    try Notify(Environment(["NOTIFY_SOCKET": "relative"]), pid: 1).send(.ready)
    #expect(throws: SystemError.self) {
      try Notify(Environment(["NOTIFY_SOCKET": "/tmp/no/such/socket"]), pid: 1).send(.ready)
    }
  }

  @Test(
    arguments: [
      ([:], nil), (["WATCHDOG_USEC": "3000000"], .seconds(3)), (["WATCHDOG_USEC": "0"], nil),
      (["WATCHDOG_USEC": "7200000000"], .seconds(7200)), (["WATCHDOG_USEC": "x"], nil),
      (["WATCHDOG_USEC": "5", "WATCHDOG_PID": "7"], .microseconds(5)),
      (["WATCHDOG_USEC": "5", "WATCHDOG_PID": "8"], nil),
    ] as [([String: String], Duration?)])
  func watchdogIntervalOfVariables(variables: [String: String], interval: Duration?) {
    expectEqual(Notify(Environment(variables), pid: 7).watchdogInterval, interval)
  }
}
