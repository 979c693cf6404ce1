import FeedClient
import FeedJSON

/// A copy of a feed, made from the lines of `feedclient watch`.
struct LineMirror {
  private(set) var mirror: Mirror
  /// The number of notifications.
  private(set) var lines = 0

  /// Creates a copy of a feed that was empty at first.
  init(feed: String, sections: [String], lines text: String) throws {
    try self.init(
      feed: feed, sections: sections.map { SectionSummary(name: $0, count: 0) }, revision: 0, lines: text)
  }

  /// - Parameter sections: those of the feed at `revision`, that of the snapshot.
  init(feed: String, sections: [SectionSummary], revision: UInt64, lines text: String) throws {
    mirror = Mirror(WatchStart(feed: feed, epoch: "", revision: revision, resumed: false, sections: sections))
    var scanner = JSONScanner()
    for line in text.split(separator: "\n") {
      let bytes = Array(line.utf8)
      try bytes.withUnsafeBytes { bytes in
        let view = try scanner.scan(bytes)
        guard let params = view.member("params"), let method = view.member("method")?.string else { return }
        switch method {
        case "snapshot": try mirror.apply(try SnapshotPart(params))
        case "delta": try mirror.apply(try Delta(params))
        default: return
        }
        lines += 1
      }
    }
  }
}

extension [UInt8] {
  /// The text of UTF-8.
  var text: String { String(decoding: self, as: UTF8.self) }
}
