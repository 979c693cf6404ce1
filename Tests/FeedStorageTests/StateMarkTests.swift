import TestSupport
import Testing

@testable import FeedStorage

/// The mark of older schemas tells whether rows of the journal are missing.
struct StateMarkTests {
  @Test func markIsReadAsWritten() {
    for (isSynced, isClean) in [(false, false), (false, true), (true, false), (true, true)] {
      let text = """
        feedd-mark 1
        epoch e
        boot b
        synced \(isSynced)
        clean \(isClean)
        sequence 00000000000000000042

        """
      var mark = StateMark(epoch: "e", boot: "b", isSynced: isSynced, sequence: 42)
      mark.isClean = isClean
      expectEqual(StateMark(text), mark)
    }
    for text in ["", "feedd-mark 1", "feedd-mark 2\n\n\n\n\n\n", String(repeating: "\n", count: 9)] {
      expectEqual(StateMark(text), nil)
    }
  }

  @Test(arguments: [true, false], [true, false]) func verdicts(isSynced: Bool, isClean: Bool) {
    var mark = StateMark(epoch: "e", boot: "b", isSynced: isSynced, sequence: 7)
    mark.isClean = isClean
    func verdict(_ sequence: Int64, _ boot: String = "b", _ epoch: String = "e") -> StateMark.Verdict {
      StateMark.verdict(mark, epoch: epoch, sequence: sequence, boot: boot)
    }
    expect(verdict(7) == .whole && verdict(8) == .whole && verdict(4) == .lost(3))
    expectEqual(verdict(9, "b", "other"), .cut)
    let vouched = isSynced || isClean
    expectEqual(verdict(7, "later"), (vouched ? .whole : .cut))
    expectEqual(verdict(6, "later"), (vouched ? .lost(1) : .cut))
    mark.boot = ""
    expectEqual(verdict(7, ""), (vouched ? .whole : .cut))
    expectEqual(StateMark.verdict(nil, epoch: "e", sequence: 0, boot: "b"), .cut)
  }
}
