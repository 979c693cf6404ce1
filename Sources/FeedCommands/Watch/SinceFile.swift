import FeedClient
import FeedJSON
import FeedSystem

/// The file of `watch --since-file`: the positions from which a later watch of the same feeds resumes, one line for each
/// feed. It is replaced atomically, so it is valid even if the program or the machine stops at any time.
///
///     {"feed":"inbox","epoch":"5f0c2b7e9a4d1836","revision":8,"sections":[{"name":"inbox/all","count":1,"rows":[["9ae16a3b2f90404f",1]]}]}
///
/// `rows` has the ``RowPrint`` of each row at that position, so that a watch that cannot resume tells new rows from old ones.
/// It is left out for a feed of more than ``maxRows`` rows or ``maxBytes`` bytes of prints.
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

  var positions: [String: FeedPosition] { states.mapValues(\.position) }

  /// Reads the file. A missing or empty file has no positions.
  /// - Throws: also if the file could not be replaced later, and for a symbolic link, which a later save would replace.
  init(path: String, feeds: [String]) throws(Failure) {
    self.feeds = feeds
    let bytes: [UInt8]
    do throws(SystemError) {
      file = try ReplaceableFile(path)
      bytes = try file.read(limit: feeds.count * 4 * Self.maxBytes) ?? []
    } catch {
      throw .system(error)
    }
    for text in Self.texts(bytes) {
      let (feed, state) = try Self.parse(Array(text), path, feeds)
      states[feed] = state
    }
  }

  /// The texts of the positions: the whole file if it is one JSON value, otherwise its lines.
  private static func texts(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
    var scanner = JSONScanner()
    let isOne = bytes.withUnsafeBytes { (try? scanner.scan($0)) != nil }
    return isOne ? [bytes[...]] : bytes.split(separator: UInt8(ascii: "\n"))
  }

  private static func parse(
    _ text: [UInt8], _ path: String, _ feeds: [String]
  ) throws(Failure) -> (feed: String, state: State) {
    func refuse(_ sentence: String) -> Failure { .usage("cannot resume from \(path): \(sentence)") }
    let found = text.withUnsafeBytes { bytes -> (feed: String?, state: State)? in
      var scanner = JSONScanner()
      guard let view = try? scanner.scan(bytes), let epoch = view.member("epoch")?.string,
        let revision = view.member("revision")?.int.flatMap({ UInt64(exactly: $0) })
      else { return nil }
      let position = FeedPosition(epoch: epoch, revision: revision)
      return (view.member("feed")?.string, State(position: position, rows: SavedRows(view.member("sections"))))
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
      var object = ParameterWriter()
      object.add("feed", feed)
      object.add("epoch", state.position.epoch)
      object.add("revision", json: "\(state.position.revision)")
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
