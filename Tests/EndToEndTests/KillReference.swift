import FeedClient
import FeedJSON
import TestSupport

/// The expected state after a number of requests of the kill tests.
///
/// Request `k` is one transaction. It adds `k` to the collection `log`, which keeps the last 300, and updates one of sixty
/// elements of the collection `c`. The bin `hi` of `c` is sorted, the bin `lo` is not, and some versions belong to neither.
struct KillModel {
  static let definitions = [
    #"{"feed":"log","kind":"collection","id":"$.k","retain":{"count":300}}"#,
    #"{"feed":"c","kind":"collection","bins":[{"name":"hi","filter":"@.n >= 50000000","sort":[{"by":"$.n","order":"descending"}]},{"name":"lo","filter":"@.n < 30000000"}]}"#,
    #"{"feed":"all","kind":"composed","children":["log","c"]}"#,
  ]

  /// The last request that is applied.
  private(set) var last = 0
  private var elements: [Int: (n: Int, k: Int)] = [:]
  /// The elements of `lo` in the order of their arrival.
  private var low: [Int] = []

  private static func identity(_ k: Int) -> Int { k * 31 % 60 }
  /// Returns a number that is unique to the request.
  private static func number(_ k: Int) -> Int { k * 7919 % 997 * 100_000 + k % 100_000 }

  private static func element(_ k: Int) -> String {
    #"{"id":\#(identity(k)),"n":\#(number(k)),"k":\#(k)}"#
  }

  static func request(_ k: Int) -> String {
    let operations = [
      #"{"method":"update","params":{"feed":"log","element":{"k":\#(k)}}}"#,
      #"{"method":"update","params":{"feed":"c","element":\#(element(k))}}"#,
    ]
    return
      #"{"jsonrpc":"2.0","id":\#(k),"method":"transaction","params":{"ops":[\#(operations.joined(separator: ","))]}}"#
  }

  /// Applies all requests up to `k`.
  mutating func advance(to k: Int) {
    while last < k {
      last += 1
      let (id, n) = (Self.identity(last), Self.number(last))
      elements[id] = n >= 50_000_000 || n < 30_000_000 ? (n, last) : nil
      if n >= 30_000_000 {
        low.removeAll { $0 == id }
      } else if !low.contains(id) {
        low.append(id)
      }
    }
  }

  /// The rows of each section of `all`.
  var sections: [[String]] {
    let log = (max(1, last - 299)..<(last + 1)).map { #"{"k":\#($0)}"# }
    let high = elements.values.filter { $0.n >= 50_000_000 }.sorted { $0.n > $1.n }.map { Self.element($0.k) }
    return [log, high, low.compactMap { elements[$0].map { Self.element($0.k) } }]
  }
}

/// A watcher that keeps its copy and resumes after each restart of the daemon.
final class KillWatcher {
  let feed: String
  private(set) var mirror: Mirror?
  /// The number of times it watched again, and how often a delta sufficed.
  private(set) var returns = 0
  private(set) var resumptions = 0
  private var client: RawClient?
  private var scanner = JSONScanner()

  init(feed: String) {
    self.feed = feed
  }

  /// Watches again at a daemon that receives no requests yet, and compares the digests.
  /// - Returns: a description of the difference; nil if the copy equals the feed.
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
    guard let mirror, let digest else { return "no answer" }
    if mirror.progress.revision < before && resumed { return "the daemon is behind its watcher" }
    return mirror.digest == digest ? nil : "the copy of revision \(mirror.progress.revision) differs"
  }

  /// Reads the messages that the daemon sent before it ended.
  func drain() throws {
    while let text = try client?.receive() { _ = try take(text, isNew: false) }
    client = nil
  }

  private var digest: String?
  private var resumed = false

  /// Applies one message. Returns whether it is the answer to `verify`.
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

  /// The rows of each section of the copy.
  var sections: [[String]] {
    mirror?.sections.map { section in
      section.rows.map { row in row.element.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
    } ?? []
  }
}
