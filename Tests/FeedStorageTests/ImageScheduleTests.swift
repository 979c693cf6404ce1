import FeedSystem
import TestSupport
import Testing

@testable import FeedStorage

@Suite("Schedule of images")
struct ImageScheduleTests {
  private static let second: UInt64 = 1_000_000_000

  private func schedule(idle seconds: UInt64 = 1) -> ImageSchedule {
    var policy = ImagePolicy()
    policy.journalBytes = 10_000
    policy.interval = 60
    policy.idle = seconds * Self.second
    policy.idleBytes = 1_000
    return ImageSchedule(policy, now: 0)
  }

  @Test("without a journal no image is due, however much time passes")
  func nothingToCover() {
    let schedule = schedule()
    expect(!schedule.wantsImage(now: 1_000 * Self.second))
    expectEqual(schedule.pause(now: 0), nil)
    expect(!schedule.needsImage && !schedule.isOverdue)
  }

  @Test("an image is due at once for a long journal, and after an idle period for a short one")
  func lengthAndIdleness() {
    var schedule = schedule()
    schedule.didAppend(bytes: 100, now: 5 * Self.second)
    expect(!schedule.wantsImage(now: 5 * Self.second))
    expectEqual(schedule.pause(now: 5 * Self.second), Self.second)
    expect(schedule.wantsImage(now: 6 * Self.second))
    schedule.didAppend(bytes: 20_000, now: 5 * Self.second)
    expect(schedule.wantsImage(now: 5 * Self.second))
    expectEqual(schedule.pause(now: 5 * Self.second), 0)
  }

  @Test("an image is due at once if replay of a short log would take many steps")
  func steps() {
    var schedule = schedule(idle: 30)
    schedule.didAppend(bytes: 100, now: 0)
    schedule.didExecute(steps: 200_000_000, stateBytes: 0)
    expect(!schedule.wantsImage(now: 0))
    schedule.didExecute(steps: 200_000_001, stateBytes: 0)
    expect(schedule.wantsImage(now: 0) && schedule.pause(now: 0) == 0)
    schedule.didBegin()
    schedule.didAppend(bytes: 100, now: 0)
    schedule.didExecute(steps: 300_000_000, stateBytes: 0)
    _ = schedule.didComplete(bytes: 500, now: 0)
    expect(!schedule.wantsImage(now: 0), "the image covers the steps before it")
    schedule.didExecute(steps: 400_000_002, stateBytes: 0)
    expect(schedule.wantsImage(now: 0))
  }

  @Test("a large image waits for the interval while the log is short")
  func largeImage() {
    var schedule = schedule()
    schedule.didAppend(bytes: 20_000, now: 0)
    schedule.didBegin()
    expect(schedule.isWriting)
    let isFirstNews = schedule.didComplete(bytes: 1_000_000, now: Self.second)
    expect(!isFirstNews)
    schedule.didAppend(bytes: 100, now: 2 * Self.second)
    expect(!schedule.wantsImage(now: 10 * Self.second))
    expect(schedule.wantsImage(now: 61 * Self.second))
  }

  @Test("batches stored while an image is written are left for the next image")
  func laterBatches() {
    var schedule = schedule()
    schedule.didAppend(bytes: 20_000, now: 0)
    schedule.didBegin()
    schedule.didAppend(bytes: 50, now: 0)
    _ = schedule.didComplete(bytes: 500, now: 0)
    expect(schedule.journalBytes < 200 && schedule.needsImage)
    expect(schedule.wantsImage(now: 9 * Self.second))
  }

  @Test("a failed image is retried after ten seconds; only the first failure and the first success are reported")
  func failures() {
    var schedule = schedule()
    schedule.didAppend(bytes: 20_000, now: 0)
    schedule.didBegin()
    let isSecondNews = schedule.didFail(free: 1 << 30, now: 0)
    expect(isSecondNews)
    expect(!schedule.wantsImage(now: 9 * Self.second))
    expectEqual(schedule.pause(now: 9 * Self.second), Self.second)
    expect(schedule.wantsImage(now: 10 * Self.second))
    schedule.didBegin()
    let isThirdNews = schedule.didFail(free: 1 << 30, now: 10 * Self.second)
    expect(!isThirdNews)
    schedule.didBegin()
    let isFourthNews = schedule.didComplete(bytes: 10, now: 30 * Self.second)
    expect(isFourthNews)
    expectEqual(schedule.journalBytes, 0)
  }

  @Test("a requested image is written once, also if the first attempt fails")
  func requested() {
    var schedule = schedule(idle: 30)
    schedule.request()
    expect(!schedule.wantsImage(now: 0), "there is no log to cover")
    schedule.didAppend(bytes: 100, now: 0)
    expect(schedule.wantsImage(now: 0))
    schedule.didBegin()
    _ = schedule.didFail(free: 1 << 30, now: 0)
    expectEqual(schedule.pause(now: 0), 10 * Self.second)
    expect(schedule.wantsImage(now: 10 * Self.second))
    schedule.didBegin()
    _ = schedule.didComplete(bytes: 500, now: 10 * Self.second)
    schedule.didAppend(bytes: 100, now: 10 * Self.second)
    expect(!schedule.wantsImage(now: 10 * Self.second))
  }

  @Test("little free space lets an image be written early, if that gains some")
  func littleSpace() {
    var schedule = ImageSchedule(ImagePolicy(), now: 0)
    schedule.didExecute(steps: 0, stateBytes: 8 << 20)
    expect(schedule.nextImageBytes > 8 << 20)
    schedule.didAppend(bytes: 5000, now: 0)
    schedule.didMeasure(free: 1 << 20)
    expect(!schedule.wantsImage(now: 0), "the log is too short")
    schedule.didAppend(bytes: 2 << 20, now: 0)
    expect(schedule.wantsImage(now: 0))
    schedule.didMeasure(free: 1 << 30)
    expect(!schedule.wantsImage(now: 0))
  }

  @Test("a batch without room waits for an image, unless none helps")
  func noRoom() {
    var schedule = schedule(idle: 30)
    func waits(_ seconds: UInt64) -> Bool { schedule.awaitRoom(free: 1 << 30, now: seconds * Self.second) }
    expect(!waits(0), "there is no log to cover")
    schedule.didAppend(bytes: 100, now: 0)
    expect(waits(0))
    expect(schedule.wantsImage(now: 0))
    schedule.didBegin()
    expect(waits(0), "the image is being written")
    _ = schedule.didFail(free: 1 << 30, now: 0)
    expect(!waits(1))
    expect(!schedule.wantsImage(now: Self.second))
    expect(waits(10))
  }

  @Test("after a failure for want of room, a batch waits for an image as soon as there is room for it")
  func roomAgain() {
    var schedule = schedule(idle: 30)
    schedule.didAppend(bytes: 100, now: 0)
    schedule.didExecute(steps: 0, stateBytes: 8 << 20)
    let needed = schedule.nextImageBytes
    schedule.didBegin()
    _ = schedule.didFail(free: needed - 1, now: 0)
    expect(!schedule.hasRoomAgain(free: needed - 1))
    expect(!schedule.awaitRoom(free: needed - 1, now: Self.second))
    expect(schedule.hasRoomAgain(free: needed) && schedule.awaitRoom(free: needed, now: Self.second))
    expect(schedule.wantsImage(now: Self.second))
    schedule.didBegin()
    // It was not the room.
    _ = schedule.didFail(free: needed, now: Self.second)
    expect(!schedule.hasRoomAgain(free: needed) && !schedule.awaitRoom(free: needed, now: 2 * Self.second))
  }

  @Test("no image is begun while no segment would continue it")
  func held() {
    var schedule = schedule()
    func waits() -> Bool { schedule.awaitRoom(free: 1 << 30, now: Self.second) }
    var progress = RecoveryProgress()
    progress.batchBytes = 20_000
    schedule.didRecover(progress, imageBytes: 0, needsImage: true)
    expect(schedule.wantsImage(now: Self.second) && schedule.needsImage)
    schedule.hold()
    expect(!schedule.wantsImage(now: Self.second) && !schedule.needsImage && schedule.pause(now: 0) == nil)
    expect(!waits())
    schedule.didAppend(bytes: 100, now: Self.second)
    expect(schedule.wantsImage(now: Self.second) && schedule.needsImage)
    expect(waits())
  }

  @Test("an image is overdue if the log is twice the limit or must not be replayed")
  func overdue() {
    func recovered(_ bytes: Int, needsImage: Bool = false) -> ImageSchedule {
      var schedule = schedule()
      var progress = RecoveryProgress()
      progress.batchBytes = bytes
      schedule.didRecover(progress, imageBytes: 0, needsImage: needsImage)
      return schedule
    }
    expect(!recovered(15_000).isOverdue)
    expect(recovered(25_000).isOverdue)
    expect(recovered(0, needsImage: true).isOverdue && recovered(0, needsImage: true).needsImage)
  }
}
