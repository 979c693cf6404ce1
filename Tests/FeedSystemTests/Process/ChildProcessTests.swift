import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Programs started by tests")
struct ChildProcessTests {
  /// A write that nobody will read is an error of one test; the signal would end them all.
  @Test func aWriteToAProgramThatHasEndedIsAnError() throws {
    let process = try ChildProcess("true")
    #expect(try process.waitForExit() == 0)
    let error = #expect(throws: SystemError.self) { try process.write("nobody reads this\n") }
    #expect(error?.code == EPIPE)
  }

  @Test func aProgramHasTheSignalAsItIsByDefault() throws {
    let process = try ChildProcess("sh", ["-c", "kill -PIPE $$"])
    #expect(try process.waitForExit() == 128 + SIGPIPE)
  }
}
