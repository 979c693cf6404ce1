import FeedServer
import TestSupport
import Testing

struct SlicedWorkTests {
  @Test func workContinuesWhereItWasSuspended() {
    let runner = SlicedWork("slices")
    var done: [Int] = []
    var hasEnded = runner.run {
      for step in 1...3 {
        done.append(step)
        runner.suspend()
      }
    }
    for step in 1...3 {
      expectEqual(done.count, step)
      expect(!hasEnded)
      hasEnded = runner.resume()
    }
    expect(hasEnded)
    runner.end()
  }

  /// If no thread can be started, the work is done by its caller, which cannot wait for itself.
  @Test func workWithoutAThreadIsNotSuspended() {
    let runner = SlicedWork("slices")
    runner.suspend()
    runner.end()
  }
}
