import FeedClient
import FeedSystem

/// Saves in a ``SinceFile`` how far the reader of standard output has read.
///
/// Each position waits until the reader has taken all bytes that were written before it. So the file is never ahead of the
/// reader, whichever process is killed. It may be behind by some milliseconds.
final class TakenPositions {
  private struct Entry {
    /// The number of bytes of output up to the position.
    var offset: Int
    var feed: String
    var state: SinceFile.State
  }

  /// The bounds of the nanoseconds between two looks at a reader that takes nothing.
  private static let (shortest, longest): (UInt64, UInt64) = (5_000_000, 160_000_000)
  /// The nanoseconds before the next save for each byte of the last one, so that a large file costs 4 MB a second at most.
  private static let perByte: UInt64 = 250
  /// The nanoseconds that the end waits for a reader that takes nothing.
  private static let patience: UInt64 = 10_000_000_000

  private let meter: OutputMeter
  private var file: SinceFile
  /// In the order of their offsets.
  private var entries: [Entry] = []
  /// The positions that the reader has reached, and that are not saved.
  private var reached: [String: SinceFile.State] = [:]
  private var interval = TakenPositions.shortest
  private var looksAt: UInt64 = 0
  private var savesAt: UInt64 = 0

  init(_ file: SinceFile, _ meter: OutputMeter) {
    self.file = file
    self.meter = meter
  }

  /// The positions in the file at the start.
  var states: [String: SinceFile.State] { file.states }

  /// Notes the position of a feed after `offset` bytes of output.
  func note(_ state: SinceFile.State, of feed: String, at offset: Int) {
    let before = entries.last { $0.feed == feed }?.state.position ?? (reached[feed] ?? file.states[feed])?.position
    if before == state.position { return }
    if let last = entries.last, last.offset == offset, last.feed == feed { entries.removeLast() }
    entries.append(Entry(offset: offset, feed: feed, state: state))
    interval = Self.shortest
    looksAt = min(looksAt, MonotonicClock.now &+ interval)
  }

  /// The time to call ``advance(now:)`` although nothing happens; nil if there is none.
  var deadline: UInt64? { entries.isEmpty ? reached.isEmpty ? nil : savesAt : looksAt }

  /// Saves the positions that the reader has reached.
  func advance(now: UInt64) throws(SystemError) {
    if !entries.isEmpty { look(now) }
    if !reached.isEmpty, now >= savesAt { try save(now) }
  }

  private func look(_ now: UInt64) {
    meter.measure()
    let count = entries.firstIndex { $0.offset > meter.taken } ?? entries.count
    for entry in entries[..<count] { reached[entry.feed] = entry.state }
    entries.removeFirst(count)
    interval = count > 0 ? Self.shortest : min(interval * 2, Self.longest)
    looksAt = now &+ interval
  }

  private func save(_ now: UInt64) throws(SystemError) {
    let size = try file.save(reached)
    reached = [:]
    savesAt = now &+ UInt64(size) * Self.perByte
  }

  /// Waits until the reader has taken everything or has ended, and saves what it has taken.
  /// - Returns: whether it has taken everything.
  func settle() throws(SystemError) -> Bool {
    var (taken, since) = (meter.taken, MonotonicClock.now)
    var isGone = false
    while true {
      // The end of the reader is noticed first, so that what it took last is seen.
      isGone = meter.isReaderGone
      look(MonotonicClock.now)
      if entries.isEmpty || isGone { break }
      if meter.taken > taken { (taken, since) = (meter.taken, MonotonicClock.now) }
      if MonotonicClock.now &- since > Self.patience { break }
      var list = WaitList()
      list.add(StandardStreams.output, [])
      _ = try list.wait(until: looksAt)
    }
    if !reached.isEmpty { try save(MonotonicClock.now) }
    return entries.isEmpty || isGone
  }
}
