import FaultySockets
import FeedModel
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedServer

private func moment(_ seconds: UInt64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

@Suite("The daemon's clock")
struct ServerClockTests {
  @Test("time goes on while the machine is suspended")
  func suspension() {
    var none = faulty_sockets()
    faulty_sockets_use(&none)
    defer { faulty_sockets_use(nil) }
    let clock = ServerClock(after: 0)
    let start = clock.now
    expectEqual(clock.milliseconds(until: start.adding(seconds: 60)), 60_000)
    faulty_sockets_advance(20_000_000_000)
    faulty_sockets_suspend(30_000_000_000)
    expectEqual(clock.now, start.adding(seconds: 50))
    expectEqual(clock.milliseconds(until: start.adding(seconds: 60)), 10_000)
    faulty_sockets_suspend(30_000_000_000)
    expectEqual(clock.milliseconds(until: start.adding(seconds: 60)), 0)
  }

  @Test("waits have their time if the time of day is earlier than the time since the boot")
  func earlyTimeOfDay() {
    var none = faulty_sockets()
    faulty_sockets_use(&none)
    defer { faulty_sockets_use(nil) }
    faulty_sockets_suspend(30_000_000_000)
    faulty_sockets_set_clock(1_000_000_000)
    let clock = ServerClock(after: 0)
    expectEqual(clock.now, moment(1))
    expectEqual(clock.milliseconds(until: moment(61)), 60_000)
    faulty_sockets_advance(20_000_000_000)
    expectEqual(clock.milliseconds(until: moment(61)), 40_000)
  }

  @Test("a stored time that is more than a minute later than the time of day is worth a warning")
  func laterThanTheTimeOfDay() {
    var none = faulty_sockets()
    faulty_sockets_use(&none)
    defer { faulty_sockets_use(nil) }
    let present: UInt64 = 1_767_225_600_000_000_000
    faulty_sockets_set_clock(present)
    for stored in [0, present, present + 60_000_000_000] { expectEqual(ServerClock.warning(after: stored), nil) }
    expectEqual(
      ServerClock.warning(after: present + 61_000_000_000),
      "the newest change was stored at 2026-01-01T00:01:01.000Z, which is later than the system's clock; "
        + "elements with \"until\" expire too early until it reaches that time")
    expectEqual(ServerClock(after: present + 61_000_000_000).now, Instant(nanoseconds: present + 61_000_000_001))
  }
}

@Suite("Shutting down")
struct ShutdownTests {
  @Test("draining begins once and ends when no connection is left or after the timeout")
  func drains() {
    var shutdown = Shutdown(drainTimeout: .seconds(5))
    expect(!shutdown.isDue(openConnections: 0, now: moment(1)))
    expectEqual(shutdown.deadline, nil)

    expectEqual(shutdown.request(now: moment(10)), true)
    expectEqual(shutdown.deadline, moment(15))
    expect(!shutdown.isDue(openConnections: 1, now: moment(14)))
    expect(shutdown.isDue(openConnections: 0, now: moment(14)))
    expect(shutdown.isDue(openConnections: 1, now: moment(15)))
    expect(!shutdown.isOver)

    shutdown.finish()
    expect(shutdown.isOver)
    expectEqual(shutdown.deadline, nil)
    expect(!shutdown.isDue(openConnections: 0, now: moment(20)))
    expectEqual(shutdown.request(now: moment(20)), false)
  }

  @Test("a second request ends the draining at once")
  func secondRequest() {
    var shutdown = Shutdown(drainTimeout: .seconds(3600))
    expectEqual(shutdown.request(now: moment(1)), true)
    expectEqual(shutdown.request(now: moment(2)), false)
    expect(shutdown.isDue(openConnections: 7, now: moment(2)))
  }
}

@Suite("Reports of the commit log's health")
struct LogHealthTests {
  @Test("the first failure and the first success after it are reported")
  func reports() {
    var health = LogHealth()
    expectEqual(health.note(failedBatches: 0, ""), nil)
    expectEqual(
      health.note(failedBatches: 1, "disk full"),
      LogHealth.Report(
        line: "disk full; changes are refused until storing works again", status: "cannot store: disk full"))
    expectEqual(health.note(failedBatches: 2, "disk full"), nil)
    expectEqual(health.note(failedBatches: 0, "disk full")?.line, "storing works again; 2 batches were refused")
    expectEqual(health.note(failedBatches: 0, "disk full"), nil)
    expect(health.note(failedBatches: 1, "disk full") != nil)
    expectEqual(health.note(failedBatches: 0, "disk full")?.line, "storing works again; 1 batch was refused")
  }
}

@Suite("Signals as requests")
struct SignalsTests {
  @Test("SIGHUP requests a reload, other signals request the end; the sender is named unless it is the kernel")
  func requests() {
    func arrival(_ signal: Int32, pid: Int32) -> SignalQueue.Arrival {
      SignalQueue.Arrival(signal: signal, pid: pid, uid: 7)
    }
    expectEqual(Signals.request(arrival(SIGHUP, pid: 12)), .reload(cause: "SIGHUP from pid 12 (uid 7)"))
    expectEqual(Signals.request(arrival(SIGTERM, pid: 12)), .end(cause: "SIGTERM from pid 12 (uid 7)"))
    expectEqual(Signals.request(arrival(SIGINT, pid: 0)), .end(cause: "SIGINT"))
  }
}

@Suite("The service manager")
struct ServiceManagerTests {
  private let directory: TemporaryDirectory
  private let receiver: NotifyReceiver

  init() throws {
    directory = try TemporaryDirectory()
    receiver = try NotifyReceiver(directory.file("n"))
  }

  @Test("keep-alive messages are sent twice in each interval of the watchdog")
  func watchdog() throws {
    let environment = Environment(["NOTIFY_SOCKET": receiver.socketName, "WATCHDOG_USEC": "10000000"])
    let log = Log(threshold: .error, style: .timestamps)
    var service = ServiceManager(Notify(environment, pid: 1), log, now: moment(100))
    expectEqual(service.deadline, moment(100))
    service.attend(now: moment(100))
    try expectEqual(receiver.next(), ["WATCHDOG=1"])
    expectEqual(service.deadline, moment(105))
    service.attend(now: moment(104))
    service.tell(.ready, .status("listening"))
    try expectEqual(receiver.next(), ["READY=1", "STATUS=listening"])
    service.attend(now: moment(105))
    try expectEqual(receiver.next(), ["WATCHDOG=1"])
    expectEqual(service.deadline, moment(110))
  }

  /// Sends notifications until the service manager has no room. Returns their number.
  private func fill(_ notify: Notify) -> Int {
    var count = 0
    while (try? notify.send(.status("of another service"))) != nil { count += 1 }
    return count
  }

  @Test("a notification for which the service manager has no room is sent again, and the next one behind it")
  func busy() throws {
    let notify = Notify(Environment(["NOTIFY_SOCKET": receiver.socketName]), pid: 1)
    let others = fill(notify)
    var service = ServiceManager(notify, Log(threshold: .error, style: .timestamps), now: moment(100))
    service.tell(.ready, .status("listening"))
    service.tell(.reloading)
    service.attend(now: moment(100))
    let next = try require(service.deadline)
    expect(next > moment(100))
    for _ in 0..<others { try expectEqual(receiver.next(), ["STATUS=of another service"]) }
    service.attend(now: moment(100))
    expectEqual(service.deadline, next)
    service.attend(now: next)
    expectEqual(service.deadline, nil)
    try expectEqual(receiver.next(), ["READY=1", "STATUS=listening"])
    try expectEqual(receiver.next().first, "RELOADING=1")
  }

  @Test("a keep-alive message for which there is no room is sent again before the watchdog's time is up")
  func busyWatchdog() throws {
    let environment = Environment(["NOTIFY_SOCKET": receiver.socketName, "WATCHDOG_USEC": "10000000"])
    let notify = Notify(environment, pid: 1)
    let others = fill(notify)
    var service = ServiceManager(notify, Log(threshold: .error, style: .timestamps), now: moment(100))
    service.attend(now: moment(100))
    expectEqual(service.deadline, moment(101))
    for _ in 0..<others { _ = try receiver.next() }
    service.attend(now: moment(101))
    try expectEqual(receiver.next(), ["WATCHDOG=1"])
    expectEqual(service.deadline, moment(106))
  }

  @Test("a service manager that stays busy is asked once a second, and loses statuses before the state")
  func alwaysBusy() throws {
    let notify = Notify(Environment(["NOTIFY_SOCKET": receiver.socketName]), pid: 1)
    let others = fill(notify)
    var service = ServiceManager(notify, Log(threshold: .error, style: .timestamps), now: moment(100))
    service.tell(.ready)
    for number in 0..<40 { service.tell(.status("\(number)")) }
    var now = moment(100)
    for _ in 0..<10 {
      service.attend(now: now)
      now = try require(service.deadline)
    }
    service.attend(now: now)
    expectEqual(service.deadline, now.adding(nanoseconds: 1_000_000_000))
    for _ in 0..<others { _ = try receiver.next() }
    service.attend(now: now.adding(nanoseconds: 1_000_000_000))
    try expectEqual(receiver.next(), ["READY=1"])
    try expectEqual(receiver.next(), ["STATUS=9"])
  }

  @Test("without a service manager nothing is due")
  func none() {
    let log = Log(threshold: .error, style: .timestamps)
    var service = ServiceManager(Notify(Environment([:]), pid: 1), log, now: moment(100))
    expectEqual(service.deadline, nil)
    service.attend(now: moment(1000))
    service.tell(.ready)
    expectEqual(service.deadline, nil)
  }
}
