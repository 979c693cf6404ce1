import FeedClient
import FeedJSON
import FeedSystem

/// The file of `watch --since-file`: the positions from which a later watch of the same feeds resumes, one line for each
/// feed. It is replaced atomically, so it is valid even if the program or the machine stops at any time.
///
///     {"feed":"inbox","epoch":"5f0c2b7e9a4d1836","revision":8,"sections":[{"name":"inbox/all","count":1,"rows":[["9ae16a3b2f90404f",1]]}]}
///
/// `rows` has the ``RowPrint`` of each row at that position, so that a watch that cannot resume tells new rows from old ones.
/// It is left out for a feed of more than ``maxRows`` rows, or if `sections` would have more than ``maxBytes`` bytes with it;
/// `sections` is left out if it has more without it. So a file that was written can be read.
struct SinceFile {
  /// What the file has of a feed.
  struct State: Equatable {
    var position: FeedPosition
    var rows: SavedRows?

    /// The rows of a position never change.
    static func == (left: State, right: State) -> Bool { left.position == right.position }
  }

  static let maxRows = 10_000
  static let maxBytes = 1 << 20

  private let file: ReplaceableFile
  /// The watched feeds, in the order of their lines.
  let feeds: [String]
  /// The positions in the file. A feed without one starts with a snapshot.
  private(set) var states: [String: State] = [:]

  /// Reads the file. A missing or empty file has no positions.
  /// - Throws: also if the file could not be replaced later, and for a symbolic link, which a later save would replace.
  init(path: String, feeds: [String]) throws(Failure) {
    self.feeds = feeds
    file = try Failure.ofSystem(try ReplaceableFile(path))
    let bytes = try Failure.ofSystem(try file.read(limit: feeds.count * 4 * Self.maxBytes)) ?? []
    for text in Self.texts(bytes) {
      let (feed, state) = try Self.parse(Array(text), path, feeds)
      states[feed] = state
    }
  }

  /// The texts of the positions: the whole file if it is one JSON value, otherwise its lines.
  private static func texts(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
    bytes.readJSON { _ in [bytes[...]] } ?? bytes.split(separator: UInt8(ascii: "\n"))
  }

  private static func parse(
    _ text: [UInt8], _ path: String, _ feeds: [String]
  ) throws(Failure) -> (feed: String, state: State) {
    func refuse(_ sentence: String) -> Failure { .usage("cannot resume from \(path): \(sentence)") }
    let found = text.readJSON { view in
      FeedPosition(view).map { position in
        (feed: view.member("feed")?.string, state: State(position: position, rows: SavedRows(view.member("sections"))))
      }
    }
    guard let found, found.feed != nil || feeds.count == 1 else {
      throw refuse("it is not a file of --since-file; remove it to start with a snapshot")
    }
    let feed = found.feed ?? feeds[0]
    guard feeds.contains(feed) else {
      throw refuse("it belongs to feed '\(feed)'; use another file to watch other feeds")
    }
    return (feed, found.state)
  }

  /// Writes the positions if one differs from the file. Feeds without a new position keep theirs.
  /// - Returns: the number of bytes written.
  @discardableResult
  mutating func save(_ current: [String: State]) throws(SystemError) -> Int {
    let merged = states.merging(current) { $1 }
    guard merged != states else { return 0 }
    var text = ""
    for feed in feeds {
      guard let state = merged[feed] else { continue }
      var object = ParameterWriter(feed: feed)
      object.add(state.position)
      if let rows = state.rows?.text(maxRows: Self.maxRows, maxBytes: Self.maxBytes) {
        object.add("sections", json: rows)
      }
      text += object.finish() + "\n"
    }
    try file.replace(with: Array(text.utf8))
    states = merged
    return text.utf8.count
  }
}

extension FeedPosition {
  /// Reads the members of an object; nil if one is missing.
  init?(_ object: JSONView) {
    guard let epoch = object.member("epoch")?.string,
      let revision = object.member("revision")?.int.flatMap({ UInt64(exactly: $0) })
    else { return nil }
    self.init(epoch: epoch, revision: revision)
  }
}

extension ParameterWriter {
  /// Adds the members of a position.
  mutating func add(_ position: FeedPosition) {
    add("epoch", position.epoch)
    add("revision", json: "\(position.revision)")
  }
}

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

  init(_ file: SinceFile, _ meter: OutputMeter) { (self.file, self.meter) = (file, meter) }

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
      // What could not be written is never taken.
      if entries.isEmpty || isGone || meter.taken == meter.written { break }
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

/// Writes to standard output, and knows how many of the bytes its reader has taken.
///
/// A pipe tells exactly what is still in it, also after its reader has ended. The queue of a socket gives a lower bound. What
/// is written to a file or a terminal is taken at once.
final class OutputMeter {
  /// The nanoseconds between two calls of the observer while the reader takes nothing.
  private static let pause: UInt64 = 20_000_000
  private let hasReader = UnreadBytes.of(StandardStreams.output) != .none
  private(set) var written = 0
  private(set) var taken = 0

  /// Writes all of the bytes.
  /// - Parameter observe: called every now and then while the reader is slow.
  func write(_ bytes: UnsafeRawBufferPointer, observe: () throws(SystemError) -> Void) throws(SystemError) {
    guard hasReader else {
      try StandardStreams.writeAll(bytes, to: StandardStreams.output)
      written += bytes.count
      return
    }
    var rest = bytes
    var observed = MonotonicClock.now
    while !rest.isEmpty {
      let count = try StandardStreams.writeSome(rest, until: observed &+ Self.pause)
      written += count
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      guard !rest.isEmpty, MonotonicClock.now >= observed &+ Self.pause else { continue }
      try observe()
      observed = MonotonicClock.now
    }
  }

  /// Looks how many bytes are taken.
  func measure() {
    switch UnreadBytes.of(StandardStreams.output) {
    case .none: taken = written
    case .atMost(let count): taken = max(taken, written - count)
    case .lost: break
    }
  }

  /// Whether the reader has closed the output.
  var isReaderGone: Bool {
    var list = WaitList()
    list.add(StandardStreams.output, [])
    _ = try? list.wait(until: 0)
    return list.isBroken(StandardStreams.output)
  }
}
