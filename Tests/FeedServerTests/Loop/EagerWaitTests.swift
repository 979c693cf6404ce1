import FeedSystem
import TestSupport
import Testing

@testable import FeedServer

/// What an ``EagerWait`` returns is what a plain wait returns, whether it looks or sleeps.
struct EagerWaitTests {
  @Test(arguments: [false, true]) func everyEventIsReturned(mayLook: Bool) throws {
    let poll = try EventPoll()
    let (request, answer) = (try WakeUp(), try WakeUp())
    try poll.add(answer.descriptor, .readable, token: 7)
    var wait = EagerWait()
    let rounds = 2000
    let peer = try Thread("peer") {
      for _ in 0..<rounds {
        request.wait()
        answer.signal()
      }
    }
    for _ in 0..<rounds {
      request.signal()
      try expectEqual(wait.wait(poll, milliseconds: -1, mayLook: mayLook), 1)
      expectEqual(poll.event(at: 0).token, 7)
      answer.clear()
    }
    peer.join()
    // Nothing comes any more: it sleeps until the timeout, and then, too.
    for _ in 0..<3 { try expectEqual(wait.wait(poll, milliseconds: 1, mayLook: mayLook), 0) }
    try expectEqual(wait.wait(poll, milliseconds: 0, mayLook: mayLook), 0)
    answer.signal()
    try expectEqual(wait.wait(poll, milliseconds: 0, mayLook: mayLook), 1)
    try expectEqual(wait.wait(poll, milliseconds: -1, mayLook: mayLook), 1)
  }
}
