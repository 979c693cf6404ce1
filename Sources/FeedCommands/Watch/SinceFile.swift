import FeedClient
import FeedJSON
import FeedSystem
import Glibc

/// The file of `watch --since-file`: the revision from which a later watch of the same feed resumes. It is replaced
/// atomically, so it is valid even if the program or the machine stops at any time.
struct SinceFile: Equatable {
  let path: String
  let feed: String
  /// The position in the file.
  private(set) var position: FeedPosition?

  /// Reads the file. A missing or empty file has no position.
  /// - Throws: also if the file could not be replaced later.
  init(path: String, feed: String) throws(Failure) {
    self.path = path
    self.feed = feed
    var bytes: [UInt8] = []
    do throws(SystemError) {
      try SmallFile.checkReplaceable(path)
      bytes = try SmallFile.read(path, limit: 64 << 10)
    } catch {
      guard error.code == ENOENT, error.path == path else { throw .system(error) }
    }
    position = bytes.isEmpty ? nil : try Self.parse(bytes, path, feed)
  }

  private static func parse(_ bytes: [UInt8], _ path: String, _ feed: String) throws(Failure) -> FeedPosition {
    func refuse(_ sentence: String) -> Failure { .usage("cannot resume from \(path): \(sentence)") }
    let found = bytes.withUnsafeBytes { bytes -> (feed: String?, position: FeedPosition)? in
      var scanner = JSONScanner()
      guard let view = try? scanner.scan(bytes), let epoch = view.member("epoch")?.string,
        let revision = view.member("revision")?.int.flatMap({ UInt64(exactly: $0) })
      else { return nil }
      return (view.member("feed")?.string, FeedPosition(epoch: epoch, revision: revision))
    }
    guard let found else {
      throw refuse("it is not a file of --since-file; remove it to start with a snapshot")
    }
    guard found.feed == nil || found.feed == feed else {
      throw refuse("it belongs to feed '\(found.feed ?? "")'; use one file for each feed")
    }
    return found.position
  }

  /// Writes the position if it differs from the one in the file.
  mutating func save(_ position: FeedPosition?) throws(Failure) {
    guard let position, position != self.position else { return }
    var object = ParameterWriter()
    object.add("feed", feed)
    object.add("epoch", position.epoch)
    object.add("revision", json: "\(position.revision)")
    do throws(SystemError) {
      try SmallFile.replace(path, with: Array((object.finish() + "\n").utf8))
    } catch {
      throw .system(error)
    }
    self.position = position
  }
}
