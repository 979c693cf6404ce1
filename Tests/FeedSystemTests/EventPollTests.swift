import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Event polling")
struct EventPollTests {
  @Test func eventHasReadinessAndTokenOfItsDescriptor() throws {
    let poll = try EventPoll(batch: 4)
    let pipe = try Pipe()
    let (reading, writing) = (pipe.readingNumber, pipe.writingNumber)
    try poll.add(reading, .readable, token: 0xFEDC_BA98_7654_3210)
    try expectEqual(poll.wait(milliseconds: 0), 0)
    try StandardStreams.writeAll("x", to: writing)
    try expectEqual(poll.wait(milliseconds: -1), 1)
    expectEqual(poll.event(at: 0).token, 0xFEDC_BA98_7654_3210)
    expect(poll.event(at: 0).isReadable)
    expect(!poll.event(at: 0).isWritable)

    try poll.modify(reading, [], token: 5)
    try expectEqual(poll.wait(milliseconds: 0), 0)
    try poll.add(writing, .writable, token: 6)
    try expectEqual(poll.wait(milliseconds: -1), 1)
    expectEqual(poll.event(at: 0).token, 6)
    expect(poll.event(at: 0).isWritable)
    try poll.remove(writing)
    try expectEqual(poll.wait(milliseconds: 0), 0)
  }

  @Test("events of files are taken in parts, so that many hold nobody for long") func fileEventsInParts() throws {
    let directory = try TemporaryDirectory()
    let events = try FileEvents()
    try expect(events.watch(directory: directory.path, for: .names) != nil)
    for number in 0..<1000 { close(creat(directory.file("f\(number)"), 0o600)) }
    var counts: [Int] = []
    repeat {
      var count = 0
      events.forEach { _ in count += 1 }
      counts.append(count)
    } while counts.last != 0
    // Each has 32 bytes, and a read takes 16 KiB.
    expectEqual(counts, [512, 488, 0])
  }

  @Test func hangUpIsReportedWithoutInterest() throws {
    let poll = try EventPoll()
    var pipe = try Pipe()
    try poll.add(pipe.readingNumber, [], token: 1)
    pipe.writing = nil
    try expectEqual(poll.wait(milliseconds: -1), 1)
    expect(poll.event(at: 0).isHungUp)
    expect(poll.event(at: 0).isReadable)
  }

  @Test func eventsBeyondTheBatchAreReportedByLaterWaits() throws {
    let poll = try EventPoll(batch: 2)
    let pipes = try (0..<5).map { _ in
      var pipe = try Pipe()
      return (pipe.reading.take()?.release() ?? -1, pipe.writing.take()?.release() ?? -1)
    }
    for (index, pipe) in pipes.enumerated() {
      try poll.add(pipe.0, .readable, token: UInt64(index))
      try StandardStreams.writeAll("x", to: pipe.1)
    }
    var seen: Set<UInt64> = []
    for _ in 0..<16 where seen.count < 5 {
      for index in 0..<(try poll.wait(milliseconds: 0)) { seen.insert(poll.event(at: index).token) }
    }
    expectEqual(seen, [0, 1, 2, 3, 4])
    for pipe in pipes {
      close(pipe.0)
      close(pipe.1)
    }
  }
}
