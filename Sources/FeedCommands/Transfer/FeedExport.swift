import FeedChange
import FeedClient
import FeedJSON
import FeedSystem

/// Writes feeds as lines of JSON: the action of `export`. See ``ExportedFeed`` for the format.
///
/// A single feed is streamed. Several feeds are held in memory until all copies have the same revision.
final class FeedExport {
  private let invocation: Invocation
  private var progress: TransferProgress?
  private var written = 0

  private var console: Console { invocation.console }

  init(_ invocation: Invocation) {
    self.invocation = invocation
    if invocation.console.errorTerminal.canRedraw, !invocation.console.terminal.isTerminal {
      progress = TransferProgress()
    }
  }

  /// Exports feeds; nil exports all feeds.
  func run(_ names: [String]?) throws(Failure) {
    let (connection, _) = try invocation.connect(deadline: invocation.deadline())
    let all = try definitions(connection)
    let feeds = try ExportedFeed.ordered(names ?? all.map(\.name), of: all)
    for feed in feeds where feed.kind == "managed" {
      let reason = "only the daemon's configuration can define a managed feed"
      if let names, names.contains(feed.name) { throw .usage("export: '\(feed.name)' cannot be exported: \(reason)") }
      console.say("'\(feed.name)' is left out: \(reason)")
    }
    let exported = feeds.filter { $0.kind != "managed" }
    if feeds.isEmpty { console.say("nothing is exported: there are no feeds") }
    let full = exported.filter(\.hasElements)
    do throws(Failure) {
      if full.count == 1, !full[0].overlaps {
        try stream(exported, connection)
      } else {
        try copy(exported, full, connection)
      }
      try console.flush()
    } catch {
      // An incomplete export must not pass for a complete one, even if its reader closed the pipe on purpose.
      throw error == .readerGone ? .state("the export is not complete: its reader has closed the pipe") : error
    }
    if let progress { console.sayRaw(progress.summary("exported", written)) }
  }

  private func definitions(_ connection: Connection) throws(Failure) -> [ExportedFeed] {
    do throws(Failure) {
      return try invocation.call(connection, "feeds", deadline: invocation.deadline()) { result in
        (result.member("feeds") ?? result).elements.map(ExportedFeed.init)
      }
    } catch {
      guard error.exceeds(["maxFrame"]) else { throw error }
    }
    // The list of feeds is sent in parts, and without their sections, which may be many.
    var feeds: [ExportedFeed] = []
    try SnapshotStream(invocation).read(FeedName.feeds) { row throws(Failure) in
      if let definition = row.element.member("definition"), !definition.isNull {
        return feeds.append(ExportedFeed(definition))
      }
      let name = row.element.member("feed")?.string ?? ""
      feeds.append(try invocation.describe(name, over: connection) { ExportedFeed($0) })
    }
    return feeds
  }

  /// Throws if a definition changed after it was read.
  private func check(_ feeds: [ExportedFeed], _ connection: Connection) throws(Failure) {
    let now = try definitions(connection)
    for feed in feeds where !now.contains(where: { $0.name == feed.name && $0.isDefinedLike(feed) }) {
      throw .state("'\(feed.name)' was defined anew during the export; run the command again")
    }
  }

  /// Streams feeds of which at most one has elements.
  private func stream(_ feeds: [ExportedFeed], _ connection: Connection) throws(Failure) {
    for (place, feed) in feeds.enumerated() {
      let following = feeds.count - place - 1
      guard feed.hasElements else {
        console.print(feed.heading(count: 0, following: following))
        continue
      }
      var total = 0
      try SnapshotStream(invocation).read(
        feed.name,
        begin: { start throws(Failure) in
          total = start.sections.reduce(0) { $0 + $1.count }
          console.print(feed.heading(count: total, following: following))
        }
      ) { row throws(Failure) in
        console.print(row.element)
        try wrote(feed.name, of: total)
      }
    }
    try check(feeds, connection)
  }

  /// Copies feeds until all copies have the same revision, then writes them.
  private func copy(_ feeds: [ExportedFeed], _ full: [ExportedFeed], _ connection: Connection) throws(Failure) {
    let copies = FeedCopies(invocation, connection)
    for feed in full { try copies.add(feed.name) }
    try copies.synchronize()
    try check(feeds, connection)
    for (place, feed) in feeds.enumerated() {
      let mirror = copies.mirror(of: feed.name)
      var elements: [[UInt8]]?
      if feed.overlaps, let mirror {
        var merge = BinMerge(isSorted: feed.sortedBins)
        for (bin, section) in mirror.sections.enumerated() {
          for row in section.rows { merge.add(row.element, bin: bin) }
        }
        elements = merge.merged()
      }
      let count = elements?.count ?? mirror?.count ?? 0
      console.print(feed.heading(count: count, following: feeds.count - place - 1))
      if let elements {
        for element in elements { try write(element, feed.name, of: count) }
      } else if let mirror {
        for section in mirror.sections {
          for row in section.rows { try write(row.element, feed.name, of: count) }
        }
      }
    }
  }

  private func write(_ element: [UInt8], _ feed: String, of total: Int) throws(Failure) {
    console.printRaw(element)
    console.printRaw("\n")
    try wrote(feed, of: total)
  }

  private func wrote(_ feed: String, of total: Int) throws(Failure) {
    written += 1
    try console.flushIfLarge()
    guard written % 1024 == 0, let line = progress?.line("exported", feed, written, console.errorTerminal.columns)
    else { return }
    console.sayRaw(line)
  }
}

/// Copies of feeds, watched over one connection.
final class FeedCopies {
  /// The next step after a timeout.
  private static let advice = "give a longer --timeout, or export fewer feeds"

  private let invocation: Invocation
  private let connection: Connection
  private var mirrors: [String: Mirror] = [:]

  init(_ invocation: Invocation, _ connection: Connection) {
    (self.invocation, self.connection) = (invocation, connection)
  }

  func mirror(of feed: String) -> Mirror? { mirrors[feed] }

  /// Watches a feed and waits for its snapshot.
  func add(_ feed: String) throws(Failure) {
    var params = ParameterWriter(feed: feed)
    params.add("spanning", json: "true")
    let start = try request("watch", params.finish(), deadline: invocation.deadline()) {
      result throws(MalformedMessage) in try WatchStart(result)
    }
    mirrors[feed] = Mirror(start)
    while mirrors[feed]?.progress.isLive == false { try receive(until: invocation.deadline()) }
  }

  /// Waits until all copies have the same revision of the daemon. Changes that arrive meanwhile may delay this, up to the
  /// deadline of a request.
  func synchronize() throws(Failure) {
    let deadline = invocation.deadline()
    while true {
      let revision = try request("sync", "{}", deadline: deadline) { result throws(MalformedMessage) in
        try MemberReader(object: result, place: "sync").revision("revision")
      }
      // Changes after that revision may have arrived before the answer.
      if mirrors.values.allSatisfy({ $0.progress.revision <= revision }) { return }
      if MonotonicClock.now >= deadline { throw invocation.failure(.timedOut, advice: Self.advice) }
    }
  }

  /// Sends a request and waits for its answer. What arrives before that does not extend the deadline.
  private func request<Result>(
    _ method: String, _ params: String, deadline: UInt64, _ read: (JSONView) throws(MalformedMessage) -> Result
  ) throws(Failure) -> Result {
    let id = connection.send(method) { $0.append(string: params) }
    var answer: Result?
    while true {
      try receive(until: deadline) { answered, result throws(ClientError) in
        if answered == id { answer = try reading(read(result)) }
      }
      if let answer { return answer }
    }
  }

  /// Processes the next message, or waits for it.
  private func receive(
    until deadline: UInt64, _ take: (Int, JSONView) throws(ClientError) -> Void = { _, _ in }
  ) throws(Failure) {
    guard let message = try attempt(connection.next) else {
      return try attempt { () throws(ClientError) in
        try connection.flush()
        guard MonotonicClock.now < deadline, try connection.wait(until: deadline) else { throw .timedOut }
        try connection.fill()
      }
    }
    switch message {
    case .response(let id, .success(let result)): try attempt { () throws(ClientError) in try take(id, result) }
    case .response(_, .failure(let error)): throw .client(.refused(error))
    case .notification(let notification): try apply(notification)
    }
  }

  private func attempt<Result>(_ body: () throws(ClientError) -> Result) throws(Failure) -> Result {
    try invocation.attempt(advice: Self.advice, body)
  }

  private func apply(_ notification: Notification) throws(Failure) {
    let params = notification.params
    guard let feed = params.member("feed")?.string, mirrors[feed] != nil else { return }
    if notification.endsFeed { throw .state("'\(feed)' was removed during the export; run the command again") }
    try attempt { () throws(ClientError) in
      switch notification.kind {
      case .snapshot:
        let part = try reading(SnapshotPart(params))
        try checking(mirrors[feed]?.apply(part))
      case .delta:
        let delta = try reading(Delta(params))
        try checking(mirrors[feed]?.apply(delta))
      case .bookmark:
        let bookmark = try reading(Bookmark(params))
        try checking(mirrors[feed]?.apply(bookmark))
      case .selection, .bye, .other: break
      }
    }
  }
}

/// The progress line of `export` and `import` on a terminal.
struct TransferProgress {
  private let start = MonotonicClock.now
  private var shownAt: UInt64 = 0

  /// Returns the line, with control characters that overwrite the previous line; nil before its time.
  mutating func line(_ verb: String, _ feed: String, _ count: Int, _ width: Int) -> String? {
    let now = MonotonicClock.now
    guard now >= shownAt &+ 100_000_000 else { return nil }
    shownAt = now
    var line = LinePainter(width: width, palette: Palette(isOn: false))
    line.add("\(feed): \(counted(count, "element")) \(verb)")
    return "\r\u{1B}[K\(line.text)"
  }

  func summary(_ verb: String, _ count: Int) -> String {
    let tenths = Int((MonotonicClock.now - start) / 100_000_000)
    return "\r\u{1B}[K\(counted(count, "element")) \(verb) in \(tenths / 10).\(tenths % 10) s\n"
  }
}
