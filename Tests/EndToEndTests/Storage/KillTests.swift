import FeedSystem
import TestSupport
import Testing

/// Kills the daemon at random moments under load and checks every life against a record kept outside: nothing acknowledged
/// is lost, no transaction is applied in part, order and bins are right, and returning watchers are sent what they missed.
///
/// 120 kills over all runs, 2,000 with `scripts/test --long`, or `FEEDD_KILLS`. The runs are independent and run side by side.
@Suite struct KillTests {
  private static let runs = 4
  private static var killsOfARun: Int { TestEffort.count(120, long: 2_000, variable: "FEEDD_KILLS") / runs }

  @Test(arguments: 0..<runs) func acknowledgedRequestsSurviveKills(_ run: Int) throws {
    let killer = try Killer(seed: UInt64(run), durability: run == 3 ? "disk" : "process")
    try killer.define()
    for _ in 0..<Self.killsOfARun { try killer.liveAndDie() }
    try killer.live { _ in }
    let returns = killer.watchers.reduce(0) { $0 + $1.returns }
    let resumptions = killer.watchers.reduce(0) { $0 + $1.resumptions }
    #expect(returns >= Self.killsOfARun)
    #expect(resumptions * 10 >= returns * 9, "seed \(run): \(resumptions) of \(returns) resumed by delta")
  }
}
