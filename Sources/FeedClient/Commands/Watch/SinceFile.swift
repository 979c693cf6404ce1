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
  init(path: String, feed: String) throws(Failure) {
    self.path = path
    self.feed = feed
    do throws(SystemError) {
      let bytes = try SmallFile.read(path, limit: 64 << 10)
      position = bytes.isEmpty ? nil : try Self.parse(bytes, path, feed)
    } catch {
      switch error.code {
      case ENOENT: position = nil
      default: throw .system(error)
      }
    }
  }

  private static func parse(_ bytes: [UInt8], _ path: String, _ feed: String) throws(SystemError) -> FeedPosition {
    func refuse(_ advice: String) -> SystemError {
      SystemError(code: EINVAL, operation: "go on from", path: path, advice: advice)
    }
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
    var object = Parameters()
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
