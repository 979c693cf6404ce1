import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Signal queue")
struct SignalQueueTests {
  /// The signal is sent to this thread only, which blocks it, so that other tests do not receive it.
  @Test func signalHasItsSender() throws {
    let queue = try SignalQueue([SIGUSR1, SIGUSR2])
    try expectEqual(queue.next(), nil)
    pthread_kill(pthread_self(), SIGUSR2)
    try expect(!Readiness.readable.wait(on: queue.descriptor, timeout: .seconds(10)).isEmpty)
    let arrival = try queue.next()
    expectEqual(arrival?.signal, SIGUSR2)
    expectEqual(arrival?.pid, getpid())
    expectEqual(arrival?.uid, getuid())
    try expectEqual(queue.next(), nil)
  }

  @Test func signalsHaveNames() {
    expectEqual([SIGTERM, SIGINT, SIGHUP, 63].map(SignalQueue.name), ["SIGTERM", "SIGINT", "SIGHUP", "signal 63"])
  }
}

@Suite("Child processes of tests")
struct ChildProcessTests {
  /// SIGPIPE would end the process of all tests.
  @Test func writeToEndedProcessThrows() throws {
    let process = try ChildProcess("true")
    try expectEqual(process.waitForExit(), 0)
    let error = #expect(throws: SystemError.self) { try process.write("unread input\n") }
    expectEqual(error?.code, EPIPE)
  }

  @Test func childHasTheDefaultActionOfSIGPIPE() throws {
    let process = try ChildProcess("sh", ["-c", "kill -PIPE $$"])
    try expectEqual(process.waitForExit(), 128 + SIGPIPE)
  }
}
