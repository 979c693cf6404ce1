import FeedClient
import FeedJSON
import FeedSystem

/// The file of `watch --since-file`: the revisions from which a later watch of the same feeds resumes, one line for each
/// feed. It is replaced atomically, so it is valid even if the program or the machine stops at any time.
struct SinceFile {
  private let file: ReplaceableFile
  /// The watched feeds, in the order of their lines.
  let feeds: [String]
  /// The positions in the file. A feed without one starts with a snapshot.
  private(set) var positions: [String: FeedPosition] = [:]

  /// Reads the file. A missing or empty file has no positions.
  /// - Throws: also if the file could not be replaced later, and for a symbolic link, which a later save would replace.
  init(path: String, feeds: [String]) throws(Failure) {
    self.feeds = feeds
    let bytes: [UInt8]
    do throws(SystemError) {
      file = try ReplaceableFile(path)
      bytes = try file.read(limit: 64 << 10) ?? []
    } catch {
      throw .system(error)
    }
    for text in Self.texts(bytes) {
      let (feed, position) = try Self.parse(Array(text), path, feeds)
      positions[feed] = position
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
  ) throws(Failure) -> (feed: String, position: FeedPosition) {
    func refuse(_ sentence: String) -> Failure { .usage("cannot resume from \(path): \(sentence)") }
    let found = text.withUnsafeBytes { bytes -> (feed: String?, position: FeedPosition)? in
      var scanner = JSONScanner()
      guard let view = try? scanner.scan(bytes), let epoch = view.member("epoch")?.string,
        let revision = view.member("revision")?.int.flatMap({ UInt64(exactly: $0) })
      else { return nil }
      return (view.member("feed")?.string, FeedPosition(epoch: epoch, revision: revision))
    }
    guard let found, found.feed != nil || feeds.count == 1 else {
      throw refuse("it is not a file of --since-file; remove it to start with a snapshot")
    }
    let feed = found.feed ?? feeds[0]
    guard feeds.contains(feed) else {
      throw refuse("it belongs to feed '\(feed)'; use another file to watch other feeds")
    }
    return (feed, found.position)
  }

  /// Writes the positions if one differs from the file. Feeds without a new position keep theirs.
  mutating func save(_ current: [String: FeedPosition]) throws(Failure) {
    let merged = positions.merging(current) { $1 }
    guard merged != positions else { return }
    var text = ""
    for feed in feeds {
      guard let position = merged[feed] else { continue }
      var object = ParameterWriter()
      object.add("feed", feed)
      object.add("epoch", position.epoch)
      object.add("revision", json: "\(position.revision)")
      text += object.finish() + "\n"
    }
    do throws(SystemError) {
      try file.replace(with: Array(text.utf8))
    } catch {
      throw .system(error)
    }
    positions = merged
  }
}
