import FeedSystem
import Glibc
import Testing

@Suite("Queued signals")
struct SignalQueueTests {
  /// The signals are sent to this thread alone, which blocks them: no other test sees them.
  @Test func comeInOneByOne() throws {
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

  @Test func haveNames() {
    #expect([SIGTERM, SIGINT, SIGHUP, 63].map(SignalQueue.name) == ["SIGTERM", "SIGINT", "SIGHUP", "signal 63"])
  }
}
