import FeedEngine
import FeedModel
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedServer

private let now = Instant(nanoseconds: 1_000_000_000_000)

@Suite("Accepting connections")
struct AcceptorTests {
  let directory: TemporaryDirectory
  let path: String
  let listener: UnixListener
  let log = Log(threshold: .error, style: .timestamps, descriptor: -1)

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.file("s")
    listener = try UnixListener.bind(path: path)
  }

  /// Accepts all connections of a turn, closes them and returns their number.
  func take(_ acceptor: inout Acceptor, at time: Instant = now) -> Int {
    var count = 0
    while let connection = acceptor.next(now: time, openConnections: 0) {
      SocketIO.close(connection.descriptor)
      count += 1
    }
    return count
  }

  @Test("the peer's credentials come with the connection")
  func peer() throws {
    var acceptor = Acceptor(listener, log)
    acceptor.beginTurn()
    expectEqual(take(&acceptor), 0)
    let client = try UnixStream.connect(path: path)
    acceptor.beginTurn()
    let taken = acceptor.next(now: now, openConnections: 0)
    let connection = try require(taken)
    SocketIO.close(connection.descriptor)
    expectEqual(connection.peer.pid, getpid())
    expectEqual(connection.peer.uid, getuid())
    expectEqual(acceptor.accepted, 1)
    withExtendedLifetime(client) {}
  }

  @Test("a turn accepts a bounded number of connections, the next turn the rest")
  func budget() throws {
    let clients = try (0..<(Acceptor.perTurn + 6)).map { _ in try UnixStream.connect(path: path) }
    var acceptor = Acceptor(listener, log)
    expectEqual(take(&acceptor), 0)
    acceptor.beginTurn()
    expectEqual(take(&acceptor), Acceptor.perTurn)
    acceptor.beginTurn()
    expectEqual(take(&acceptor), 6)
    withExtendedLifetime(clients) {}
  }

  @Test("connections that wait when listening ends are still accepted")
  func end() throws {
    let clients = try (0..<(Acceptor.perTurn + 6)).map { _ in try UnixStream.connect(path: path) }
    var acceptor = Acceptor(listener, log)
    acceptor.endListening()
    expectEqual(acceptor.descriptor, listener.descriptor)
    expectEqual(take(&acceptor), Acceptor.perTurn + 6)
    expectEqual(acceptor.descriptor, nil)
    acceptor.endListening()
    acceptor.beginTurn()
    expectEqual(take(&acceptor), 0)
    withExtendedLifetime(clients) {}
  }

  @Test("accepting pauses after a failure and resumes on request")
  func pause() throws {
    let client = try UnixStream.connect(path: path)
    let failure = SystemError(code: EINVAL, operation: "accept a connection at", path: path)
    let outcomes = Outcomes([.failed(failure)])
    var acceptor = Acceptor(listener, log, accept: outcomes.next)
    acceptor.beginTurn()
    expectEqual(take(&acceptor), 0)
    expectEqual(acceptor.isPaused, true)
    expectEqual(acceptor.deadline, now.adding(nanoseconds: 200_000_000))
    acceptor.beginTurn()
    expectEqual(take(&acceptor), 0)
    acceptor.resume()
    expectEqual(acceptor.isPaused, false)
    expectEqual(acceptor.deadline, nil)
    acceptor.beginTurn()
    expectEqual(take(&acceptor), 1)
    withExtendedLifetime(client) {}
  }

  @Test("without free descriptors a client receives bye by means of the reserved descriptor")
  func reserve() throws {
    let client = try UnixStream.connect(path: path)
    let exhausted = UnixListener.Accepted.exhausted(SystemError(code: EMFILE, operation: "accept a connection at"))
    let outcomes = Outcomes([exhausted])
    var acceptor = Acceptor(listener, log, accept: outcomes.next)
    acceptor.beginTurn()
    expectEqual(take(&acceptor), 0)
    expectEqual(acceptor.isPaused, false)
    let farewell = try RawClient(client).receiveToEnd()
    expectEqual(farewell.count, 1)
    try expectEqual(JSONValue(farewell.first)["params"]["reason"].string, "descriptors")
  }

  @Test("accepting pauses if the reserved descriptor does not help, and listening can still end")
  func exhausted() throws {
    let exhausted = UnixListener.Accepted.exhausted(SystemError(code: ENFILE, operation: "accept a connection at"))
    let outcomes = Outcomes([exhausted, exhausted, exhausted, exhausted])
    var acceptor = Acceptor(listener, log, accept: outcomes.next)
    acceptor.beginTurn()
    expectEqual(take(&acceptor), 0)
    expectEqual(acceptor.isPaused, true)
    acceptor.endListening()
    expectEqual(acceptor.isPaused, false)
    expectEqual(take(&acceptor), 0)
    expectEqual(acceptor.descriptor, nil)
  }
}

/// Results of the first calls of `accept`; later calls reach the listener.
private final class Outcomes {
  private var left: [UnixListener.Accepted]
  init(_ outcomes: [UnixListener.Accepted]) { left = outcomes }
  func next(_ listener: UnixListener) -> UnixListener.Accepted {
    left.isEmpty ? listener.accept() : left.removeFirst()
  }
}
