import FeedSystem
import Testing

/// The daemon is killed at random moments under load, with a ledger outside: nothing acknowledged is lost, no transaction is
/// half there, order and bins are right, and watchers that come back are told what they missed.
///
/// `FEEDD_KILLS` is how often, all runs together.
@Suite(.serialized) struct KillTests {
  private static let runs = 4
  private static var kills: Int { Environment.current["FEEDD_KILLS"].flatMap { Int($0) } ?? 200 }

  @Test(arguments: 0..<runs) func nothingAcknowledgedIsLost(_ run: Int) throws {
    let killer = try Killer(seed: UInt64(run), durability: run == 3 ? "disk" : "process")
    try killer.define()
    for _ in 0..<(Self.kills / Self.runs) { try killer.liveAndDie() }
    try killer.live { _ in }
    let returns = killer.watchers.reduce(0) { $0 + $1.returns }
    let resumptions = killer.watchers.reduce(0) { $0 + $1.resumptions }
    #expect(returns >= Self.kills / Self.runs)
    #expect(resumptions * 10 >= returns * 9, "seed \(run): \(resumptions) of \(returns) resumed by delta")
  }
}
