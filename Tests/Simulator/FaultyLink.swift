import EngineSupport
import FeedEngine
import TestSupport

/// A network in memory with faults: it reads and writes less than it could, reports events in any order, and loses peers.
final class FaultyLink: Link, SimulatedNetwork {
  private struct Line {
    /// The number that the turn gave it; nil before it is accepted and after it is closed.
    var id: ConnectionID?
    var isClosed = false
    /// Whether reading and writing fail.
    var isBroken = false
    /// What the turn had written when it closed the line.
    var rest: [UInt8] = []
    var bytesRead = 0
  }

  private var inner = MemoryLink()
  private var lines: [Line] = []
  private var dialing: [Int] = []
  private var owners: [ConnectionID: Int] = [:]
  private var events: [LinkEvent]?
  private var random = SeededRandom(seed: 0)
  var isCalm = false

  init() {}

  // MARK: The far end

  func reseed(_ seed: UInt64) { random = SeededRandom(seed: seed) }

  func connect(_ peer: Peer) -> Int {
    lines.append(Line())
    dialing.append(lines.count - 1)
    inner.connect(peer)
    return lines.count - 1
  }

  func isOpen(_ line: Int) -> Bool { lines[line].id != nil }
  func isClosed(_ line: Int) -> Bool { lines[line].isClosed }
  func isBroken(_ line: Int) -> Bool { lines[line].isBroken }

  func send(_ line: Int, _ bytes: some Collection<UInt8>) {
    if let id = lines[line].id { inner.send(id, bytes) }
  }

  func endInput(_ line: Int) {
    if let id = lines[line].id { inner.endInput(id) }
  }

  /// With `isNoticed` the link reports it at once, otherwise reading and writing fail.
  func lose(_ line: Int, isNoticed: Bool) {
    guard let id = lines[line].id else { return }
    if isNoticed { return inner.disconnect(id) }
    lines[line].isBroken = true
    inner.endInput(id)
    inner.setRoom(id, nil)
  }

  func setRoom(_ line: Int, _ room: Int?) {
    if let id = lines[line].id { inner.setRoom(id, room) }
  }

  func take(_ line: Int) -> [UInt8] {
    let rest = lines[line].rest
    lines[line].rest = []
    return rest + (lines[line].id.map { inner.take($0) } ?? [])
  }

  /// Whether the next turn would find something.
  var hasEvents: Bool { inner.hasEvents }

  func takeBytesRead() -> (largest: Int, total: Int) {
    var (largest, total) = (0, 0)
    for line in lines.indices {
      largest = max(largest, lines[line].bytesRead)
      total += lines[line].bytesRead
      lines[line].bytesRead = 0
    }
    return (largest, total)
  }

  // MARK: The turn's end

  func nextEvent() -> LinkEvent? {
    if events == nil { events = shuffledEvents() }
    guard let event = events?.popLast() else {
      events = nil
      return nil
    }
    if case .readable(let id, _) = event, isBroken(id) { return .readable(id, hungUp: true) }
    return event
  }

  /// Accepted connections stay in their order among themselves.
  private func shuffledEvents() -> [LinkEvent] {
    var all: [LinkEvent] = []
    var accepted: [LinkEvent] = []
    while let event = inner.nextEvent() {
      if case .accepted = event { accepted.append(event) } else { all.append(event) }
    }
    if !isCalm { all.shuffle(using: &random) }
    return all + accepted.reversed()
  }

  private func isBroken(_ id: ConnectionID) -> Bool { owners[id].map { lines[$0].isBroken } ?? false }

  func assign(_ id: ConnectionID) {
    inner.assign(id)
    let line = dialing.removeFirst()
    lines[line].id = id
    owners[id] = line
  }

  func read(_ id: ConnectionID, into space: UnsafeMutableRawBufferPointer) -> ReadOutcome {
    guard let line = owners[id] else { return .failed }
    if lines[line].isBroken && inner.unreadCount(id) == 0 { return .failed }
    var count = space.count
    if !isCalm {
      switch UInt8.random(in: 0..<8, using: &random) {
      case 0: return .wouldBlock
      case 1...2: count = min(count, Int.random(in: 1...24, using: &random))
      default: break
      }
    }
    let outcome = inner.read(id, into: UnsafeMutableRawBufferPointer(rebasing: space[..<count]))
    if case .bytes(let count) = outcome { lines[line].bytesRead += count }
    return outcome
  }

  func write(
    _ id: ConnectionID, _ slices: UnsafeBufferPointer<UnsafeRawBufferPointer>
  ) -> WriteOutcome {
    guard let line = owners[id], !lines[line].isBroken else { return .failed }
    let room = inner.room(id)
    var most: Int?
    if !isCalm {
      switch UInt8.random(in: 0..<8, using: &random) {
      case 0: return .wouldBlock
      case 1...2: most = Int.random(in: 1...200, using: &random)
      default: break
      }
    }
    if let most { inner.setRoom(id, min(most, room ?? most)) }
    let outcome = inner.write(id, slices)
    guard case .bytes(let count) = outcome else {
      inner.setRoom(id, room)
      return outcome
    }
    inner.setRoom(id, room.map { $0 - count })
    return outcome
  }

  func watch(_ id: ConnectionID, reading: Bool, writing: Bool) {
    inner.watch(id, reading: reading, writing: writing)
  }

  func close(_ id: ConnectionID) {
    if let line = owners.removeValue(forKey: id) {
      lines[line].rest += inner.take(id)
      lines[line].id = nil
      lines[line].isClosed = true
    }
    inner.close(id)
  }
}
