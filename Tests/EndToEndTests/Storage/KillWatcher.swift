import FeedClient
import FeedJSON
import TestSupport

/// A watcher that outlives daemons: it keeps its copy and comes back with the position that it has.
final class KillWatcher {
  let feed: String
  private(set) var mirror: Mirror?
  /// How often it came back, and how often a delta was enough.
  private(set) var returns = 0
  private(set) var resumptions = 0
  private var client: RawClient?
  private var scanner = JSONScanner()

  init(feed: String) {
    self.feed = feed
  }

  /// Watches again at a daemon that nobody writes to yet, and reads until the copy is said to be right.
  /// - Returns: what is wrong; nil when the copy is what the daemon has.
  func comeBack(to daemon: DaemonProcess) throws -> String? {
    let client = try daemon.connect()
    self.client = client
    var since = ""
    if let position = mirror?.progress.position {
      since = #","since":{"epoch":"\#(position.epoch)","revision":\#(position.revision)}"#
    }
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"watch","params":{"feed":"\#(feed)"\#(since)}}"#)
    try client.send(#"{"jsonrpc":"2.0","id":2,"method":"sync","params":{}}"#)
    try client.send(#"{"jsonrpc":"2.0","id":3,"method":"verify","params":{"feed":"\#(feed)"}}"#)
    let before = mirror?.progress.position?.revision ?? 0
    while let text = try client.receive() {
      if try take(text, isNew: true) { break }
    }
    guard let mirror, let digest else { return "there was no answer" }
    if mirror.progress.revision < before && resumed { return "the daemon is behind its watcher" }
    return mirror.digest == digest ? nil : "the copy of revision \(mirror.progress.revision) differs"
  }

  /// Reads what the daemon said before it ended.
  func drain() throws {
    while let text = try client?.receive() { _ = try take(text, isNew: false) }
    client = nil
  }

  private var digest: String?
  private var resumed = false

  /// Takes one message in; true when it is the answer to `verify`.
  private func take(_ text: String, isNew: Bool) throws -> Bool {
    let bytes = Array(text.utf8)
    return try bytes.withUnsafeBytes { bytes in
      let view = try scanner.scan(bytes)
      if let method = view.member("method")?.string, let params = view.member("params") {
        try notice(method, params)
        return false
      }
      guard let result = view.member("result") else { throw TestFailure("refused: \(text)") }
      switch view.member("id")?.int {
      case 1: start(try WatchStart(result))
      case 3:
        digest = result.member("digest")?.string
        return true
      default: break
      }
      return false
    }
  }

  private func start(_ start: WatchStart) {
    resumed = start.resumed
    guard mirror != nil else {
      mirror = Mirror(start)
      return
    }
    returns += 1
    if start.resumed { resumptions += 1 }
    mirror?.restart(start)
  }

  private func notice(_ method: String, _ params: JSONView) throws {
    switch method {
    case "snapshot": try mirror?.apply(try SnapshotPart(params))
    case "delta": try mirror?.apply(try Delta(params))
    case "bookmark": try mirror?.apply(try Bookmark(params))
    default: break
    }
  }

  /// The rows of the copy, section by section.
  var sections: [[String]] {
    mirror?.sections.map { section in
      section.rows.map { row in row.element.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
    } ?? []
  }
}
