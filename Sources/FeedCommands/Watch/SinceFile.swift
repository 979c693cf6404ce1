import FeedClient
import FeedJSON
import FeedSystem
import Glibc

/// The file of `watch --since-file`: where a later watch of the same feed goes on. One JSON object, replaced as a
/// whole, so that it is right whenever the program, or the machine, stops.
struct SinceFile: Equatable {
  let path: String
  let feed: String
  /// What the file holds.
  private(set) var position: FeedPosition?

  /// Reads the file; one that is not there, or is empty, holds no position.
  /// - Throws: also when the file could not be written later.
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
    func refuse(_ sentence: String) -> Failure { .usage("cannot go on from \(path): \(sentence)") }
    let found = bytes.withUnsafeBytes { bytes -> (feed: String?, position: FeedPosition)? in
      var scanner = JSONScanner()
      guard let view = try? scanner.scan(bytes), let epoch = view.member("epoch")?.string,
        let revision = view.member("revision")?.int.flatMap({ UInt64(exactly: $0) })
      else { return nil }
      return (view.member("feed")?.string, FeedPosition(epoch: epoch, revision: revision))
    }
    guard let found else {
      throw refuse("it does not hold {\"feed\":…,\"epoch\":…,\"revision\":…}; remove it to start with a snapshot")
    }
    guard found.feed == nil || found.feed == feed else {
      throw refuse("it is about feed '\(found.feed ?? "")'; give each feed a file of its own")
    }
    return found.position
  }

  /// Writes the position, unless the file holds it already.
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
