import FeedServer
import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Log lines")
struct LogTests {
  /// The text written into a pipe so far.
  func contents(_ pipe: borrowing Pipe) throws -> String {
    var space = [UInt8](repeating: 0, count: 1 << 20)
    guard try !Readiness.readable.wait(on: pipe.readingNumber, timeout: .zero).isEmpty else { return "" }
    let count = read(pipe.readingNumber, &space, space.count)
    return String(decoding: space[..<max(count, 0)], as: UTF8.self)
  }

  @Test func journalLinesBeginWithAPriority() throws {
    let pipe = try Pipe()
    let log = Log(threshold: .info, style: .journal, descriptor: pipe.writingNumber)
    log.write(.error, "bad")
    log.write(.info, "good")
    log.write(.debug, "too much")
    let text = try contents(pipe)
    expectEqual(text, "<3>bad\n<6>good\n")
  }

  @Test("a terminal that nobody reads holds no line up") func terminalWithoutReader() throws {
    let terminal = try PseudoTerminal(columns: 80, rows: 24)
    let log = Log(threshold: .debug, style: .journal, descriptor: terminal.terminal)
    let text = String(repeating: "x", count: 999)
    for _ in 0..<200 { log.write(.debug, text) }
    expectEqual(fcntl(terminal.terminal, F_GETFL) & O_NONBLOCK, 0)
    var space = [UInt8](repeating: 0, count: 100)
    expectEqual(read(terminal.master, &space, space.count), space.count)
    expectEqual(String(decoding: space, as: UTF8.self), "<7>" + text.prefix(97))
  }

  @Test("a line about a client is sent to the journal's socket with fields, or to standard error if there is no socket")
  func fields() throws {
    let directory = try TemporaryDirectory()
    let pipe = try Pipe()
    let fields = [JournalSocket.Field("FEEDD_CLIENT_UID", "7"), JournalSocket.Field("FEEDD_FEED", "a\nPRIORITY=0")]
    do {
      let receiver = try NotifyReceiver(directory.file("journal"))
      let log = Log(
        threshold: .info, style: .journal, descriptor: pipe.writingNumber,
        journal: try JournalSocket(directory.file("journal")))
      log.write(.warning, "two\nlines", fields)
      log.write(.debug, "too much", fields)
      log.write(.info, "without fields")
      try expectEqual(
        receiver.next(timeout: testTimeout),
        [
          "MESSAGE=two\u{FFFD}lines", "PRIORITY=4", "SYSLOG_IDENTIFIER=feedd", "FEEDD_CLIENT_UID=7",
          "FEEDD_FEED=a\u{FFFD}PRIORITY=0",
        ])
      try expectEqual(contents(pipe), "<6>without fields\n")
      withExtendedLifetime(receiver) {}
    }
    let log = Log(threshold: .info, style: .journal, descriptor: pipe.writingNumber)
    log.write(.warning, "no journal", fields)
    try expectEqual(contents(pipe), "<4>no journal\n")
  }

  @Test func journalThatListensAgainReceivesLinesWithFields() throws {
    let directory = try TemporaryDirectory()
    let pipe = try Pipe()
    let path = directory.file("journal")
    let log = Log(threshold: .info, style: .journal, descriptor: pipe.writingNumber, journal: try JournalSocket(path))
    let fields = [JournalSocket.Field("FEEDD_FEED", "a")]
    log.write(.warning, "early", fields)
    for text in ["first", "second"] {
      let receiver = try NotifyReceiver(path)
      log.write(.warning, text, fields)
      try expectEqual(
        receiver.next(timeout: testTimeout),
        ["MESSAGE=\(text)", "PRIORITY=4", "SYSLOG_IDENTIFIER=feedd", "FEEDD_FEED=a"])
      unlink(path)
    }
    try expectEqual(contents(pipe), "<4>early\n")
  }

  @Test func otherLinesBeginWithTheTimeAndLevel() throws {
    let pipe = try Pipe()
    Log(threshold: .debug, style: .timestamps, descriptor: pipe.writingNumber).write(.debug, "seen")
    let text = try contents(pipe)
    expect(text.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z debug: seen\n/) != nil, "\(text)")
  }

  @Test func controlCharactersAreEscaped() throws {
    let pipe = try Pipe()
    let log = Log(threshold: .info, style: .journal, descriptor: pipe.writingNumber)
    log.write(.info, "client a\n<0>all is lost\r\u{1B}[2J\u{85}\u{2028}\u{202E}é")
    let text = try contents(pipe)
    expectEqual(text, "<6>client a\u{FFFD}<0>all is lost\u{FFFD}\u{FFFD}[2J\u{FFFD}\u{FFFD}\u{FFFD}é\n")
    log.write(.info, String(repeating: "é", count: 100_000))
    let long = try contents(pipe)
    expectEqual(long.utf8.count, 4004)
  }

  @Test func fullPipeDoesNotBlock() throws {
    let pipe = try Pipe()
    let log = Log(threshold: .info, style: .journal, descriptor: pipe.writingNumber, linesPerSecond: .max)
    let line = String(repeating: "x", count: 1000)
    for _ in 0..<1000 { log.write(.info, line) }
    let before = try contents(pipe).split(separator: "\n")
    expect(before.count > 10 && before.count < 1000)
    expect(before.allSatisfy { $0.utf8.count == 1003 })
    log.write(.info, "again")
    let after = try contents(pipe)
    expectEqual(after, "<4>\(1000 - before.count) lines missing here: the reader of the log was too slow\n<6>again\n")
  }

  @Test("lines are limited per second and level, and a later line reports how many were dropped")
  func rates() throws {
    let pipe = try Pipe()
    let time = Time()
    let log = Log(
      threshold: .debug, style: .journal, descriptor: pipe.writingNumber, linesPerSecond: 2, clock: { time.now })
    for number in 1...4 { log.write(.warning, "w\(number)") }
    log.write(.error, "e")
    for number in 1...3 { log.write(.debug, "d\(number)") }
    let first = try contents(pipe)
    expectEqual(first, "<4>w1\n<4>w2\n<3>e\n<7>d1\n<7>d2\n<7>d3\n")
    time.now = 1_000_000_000
    log.write(.error, "e")
    log.write(.warning, "w5")
    let second = try contents(pipe)
    expectEqual(second, "<3>e\n<4>2 warning lines left out: more than 2 in a second\n<4>w5\n")
    time.now = 2_000_000_000
    log.write(.warning, "w6")
    let third = try contents(pipe)
    expectEqual(third, "<4>w6\n")
  }

  @Test("the report of dropped lines does not block either, and is made later")
  func reportToAFullPipe() throws {
    let pipe = try Pipe()
    let time = Time()
    let log = Log(
      threshold: .info, style: .journal, descriptor: pipe.writingNumber, linesPerSecond: 1, clock: { time.now })
    for _ in 1...3 { log.write(.warning, "w") }
    let line = String(repeating: "x", count: 1000)
    for second in 1...1000 {
      time.now = UInt64(second) * 1_000_000_000
      log.write(.info, line)
    }
    log.write(.warning, "w")
    _ = try contents(pipe)
    time.now += 1_000_000_000
    log.write(.warning, "w")
    let lines = try contents(pipe).split(separator: "\n").map(String.init)
    expectEqual(lines.first, "<4>2 warning lines left out: more than 1 in a second")
    expectEqual(lines.last, "<4>w")
  }

  private final class Time {
    var now: UInt64 = 0
  }

  @Test func timesAreUTC() {
    expectEqual(WallClock.text(1_772_366_400_123_000_000), "2026-03-01T12:00:00.123Z")
    expectEqual(WallClock.text(0), "1970-01-01T00:00:00.000Z")
  }
}
