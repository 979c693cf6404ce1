import FeedChange
import FeedClient
import TestSupport
import Testing

@testable import FeedCommands

struct VerificationTests {
  /// A mirror of one section at `revision` with a single element.
  private func mirror(_ revision: UInt64, _ element: String = "1") throws -> Mirror {
    var mirror = Mirror(
      WatchStart(
        feed: "f", epoch: "e", revision: revision, resumed: false, sections: [SectionSummary(name: "s", count: 1)]))
    try mirror.apply(
      SnapshotPart(
        feed: "f", revision: revision, at: IndexPath(section: 0, row: 0), elements: [utf8(element)], isLast: true))
    return mirror
  }

  private func answer(_ mirror: Mirror) -> Verification.Answer {
    .init(revision: mirror.progress.revision, counts: mirror.counts, digest: mirror.digest)
  }

  @Test func verificationWaitsUntilTheFeedIsQuiet() throws {
    var verification = Verification()
    expect(verification.isComplete)
    expect(!verification.mustAsk(now: 5, atOnce: true))
    verification.changed(now: 1000)
    expect(!verification.isComplete)
    expect(!verification.mustAsk(now: 1001, atOnce: false))
    expect(verification.mustAsk(now: 1001, atOnce: true))
    expectEqual(verification.deadline, 1000 + Verification.quiet)
    expect(verification.mustAsk(now: 1000 + Verification.quiet, atOnce: false))
    verification.asked(7)
    expect(verification.expects(7))
    expect(!verification.mustAsk(now: .max, atOnce: true))
  }

  @Test func equalRowsAgree() throws {
    var verification = Verification()
    let mirror = try mirror(4)
    verification.changed(now: 0)
    verification.asked(1)
    verification.answered(answer(mirror))
    try verification.check(mirror, now: 1)
    expect(verification.isComplete)
    expectEqual(verification.verified?.revision, 4)
  }

  @Test func differentRowsAreAFault() throws {
    var verification = Verification()
    let mirror = try mirror(4)
    verification.changed(now: 0)
    verification.answered(answer(try self.mirror(4, "2")))
    #expect(throws: FeedFault.self) { try verification.check(mirror, now: 1) }
  }

  @Test func answerAheadOfTheMirrorWaitsForIt() throws {
    var verification = Verification()
    var mirror = try mirror(4)
    let change = Change(updated: [IndexPath(section: 0, row: 0)])
    var later = mirror
    let delta = Delta(feed: "f", from: 4, revision: 6, change: change, elements: [utf8("2")])
    try later.apply(delta)
    verification.changed(now: 0)
    verification.asked(1)
    verification.answered(answer(later))
    try verification.check(mirror, now: 1)
    expect(!verification.isComplete)
    expect(!verification.mustAsk(now: .max, atOnce: true))
    try mirror.apply(delta)
    try verification.check(mirror, now: 2)
    expectEqual(verification.verified?.revision, 6)
  }

  @Test func answerBehindTheMirrorIsRequestedAgain() throws {
    var verification = Verification()
    verification.changed(now: 0)
    verification.asked(1)
    verification.answered(answer(try mirror(3)))
    try verification.check(try mirror(4), now: 9)
    expectEqual(verification.verified, nil)
    expect(verification.mustAsk(now: 9 + Verification.quiet, atOnce: false))
  }

  @Test func answerLostWithItsConnectionIsRequestedAgain() throws {
    var verification = Verification()
    verification.changed(now: 0)
    verification.asked(1)
    verification.lost()
    expect(!verification.expects(1))
    expect(verification.mustAsk(now: 1, atOnce: true))
  }
}
