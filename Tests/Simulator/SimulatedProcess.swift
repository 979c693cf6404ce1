import FeedEngine
import FeedModel
import FeedServer
import FeedSystem

/// What runs the turns of a simulated daemon until it crashes, with its network.
protocol SimulatedProcess: AnyObject {
  var network: any SimulatedNetwork { get }

  /// Whether the daemon would wake up, other than for its log.
  func isDue(at now: Instant) -> Bool
  /// Runs one turn.
  func run(at now: Instant) throws(SimulationFailure)

  /// Begins the end of the daemon.
  func drain()
  var isDrained: Bool { get }

  /// After the last turn.
  var status: TurnStatus { get }
}

/// What a turn says of itself.
struct TurnStatus {
  let isExecuting: Bool
  let isWithinBatch: Bool
  let isExclusive: Bool
  let executed: UInt64?
  let hadInput: Bool
  let lossReason: String?

  init(_ turn: borrowing Turn) {
    isExecuting = turn.isExecuting
    isWithinBatch = turn.isWithinBatch
    isExclusive = turn.isExclusive
    executed = turn.executed
    hadInput = turn.hadInput
    lossReason = turn.lossReason
  }
}

/// The shipped turn on a network in memory.
///
/// A turn runs only when the daemon's event loop would run one: when the link or the log has an event, or when the turn said
/// that it is due. So work that the turn forgets stays undone, as it would for a user.
final class TurnProcess: SimulatedProcess {
  private var turn: Turn
  private var link = FaultyLink()

  /// - Parameter makeRunner: makes what runs long work in slices.
  init(_ engine: Engine, _ log: any SimulatedLog, now: Instant, makeRunner: (String) -> (any SliceRunner)?) {
    turn = Turn(
      engine, log: log, slices: makeRunner("slices"), queries: makeRunner("queries"), deltas: makeRunner("deltas"),
      now: now)
  }

  var network: any SimulatedNetwork { link }

  func isDue(at now: Instant) -> Bool {
    if link.hasEvents { return true }
    switch turn.next(after: now) {
    case .now: return true
    case .at(let moment): return moment <= now
    case .whenReadable: return false
    }
  }

  func run(at now: Instant) { turn.run(&link, now: now) }

  func drain() { turn.drain(reason: "shutdown", message: "The daemon is stopping.") }
  var isDrained: Bool { turn.isDrained }

  var status: TurnStatus { TurnStatus(turn) }
}

/// The shipped event loop, with its sockets and its epoll, on system calls that transfer less than they could, are delayed or
/// interrupted. Belongs to the thread that made it.
final class LoopProcess: SimulatedProcess {
  private var loop: EventLoop
  private let sockets: SocketNetwork
  /// The time of the last turn.
  private var lastRun: Instant?

  /// - Parameter makeRunner: makes what runs long work in slices.
  init(
    _ engine: Engine, _ log: any SimulatedLog, now: Instant, makeRunner: (String) -> (any SliceRunner)?
  ) throws {
    let sockets = try SocketNetwork(now: now)
    self.sockets = sockets
    loop = try sockets.keepingSignals {
      try EventLoop(
        engine, commitLog: log, listener: sockets.makeListener(), log: SocketNetwork.makeLog(), makeRunner: makeRunner)
    }
  }

  var network: any SimulatedNetwork { sockets }

  func isDue(at now: Instant) -> Bool {
    !loop.isOver && (sockets.isDisturbed || now != lastRun || !SocketNetwork.wouldBlock)
  }

  func run(at now: Instant) throws(SimulationFailure) {
    if loop.isOver { return }
    lastRun = now
    sockets.beginTurn(at: now)
    do throws(SystemError) { try loop.cycle() } catch { throw SimulationFailure("\(error)") }
    sockets.endTurn()
    loop.checkInvariants()
  }

  func drain() { loop.end("SIGTERM") }
  var isDrained: Bool { loop.isOver }

  var status: TurnStatus { TurnStatus(loop.turn) }
}
