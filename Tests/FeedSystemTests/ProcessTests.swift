import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Signal queue")
struct SignalQueueTests {
  /// The signal is sent to this thread only, which blocks it, so that other tests do not receive it.
  @Test func signalHasItsSender() throws {
    let queue = try SignalQueue([SIGUSR1, SIGUSR2])
    #expect(try queue.next() == nil)
    pthread_kill(pthread_self(), SIGUSR2)
    #expect(try !Readiness.readable.wait(on: queue.descriptor, timeout: .seconds(10)).isEmpty)
    let arrival = try queue.next()
    #expect(arrival?.signal == SIGUSR2)
    #expect(arrival?.pid == getpid())
    #expect(arrival?.uid == getuid())
    #expect(try queue.next() == nil)
  }

  @Test func signalsHaveNames() {
    #expect([SIGTERM, SIGINT, SIGHUP, 63].map(SignalQueue.name) == ["SIGTERM", "SIGINT", "SIGHUP", "signal 63"])
  }
}

@Suite("Child processes of tests")
struct ChildProcessTests {
  /// SIGPIPE would end the process of all tests.
  @Test func writeToEndedProcessThrows() throws {
    let process = try ChildProcess("true")
    #expect(try process.waitForExit() == 0)
    let error = #expect(throws: SystemError.self) { try process.write("unread input\n") }
    #expect(error?.code == EPIPE)
  }

  @Test func childHasTheDefaultActionOfSIGPIPE() throws {
    let process = try ChildProcess("sh", ["-c", "kill -PIPE $$"])
    #expect(try process.waitForExit() == 128 + SIGPIPE)
  }
}
