import FeedClient
import FeedJSON
import FeedSystem

/// Reads the lines of an export: the action of `import`. See ``ExportedFeed`` for the format.
final class FeedImport {
  /// The treatment of a feed that exists and is not empty.
  enum Policy: Equatable {
    case refuse
    /// Redefine it and delete its elements first.
    case replace
    /// Keep its elements.
    case merge
  }

  /// The limits that a smaller request respects.
  private static let limits: Set = ["maxFrame", "maxRequestRows"]

  /// The feed whose elements are being read.
  private struct Current {
    var target: PushTarget
    /// The number of elements that are still expected.
    var missing: Int
    var line: Int
  }

  private let invocation: Invocation
  private let connection: Connection
  private let policy: Policy
  /// The animation hint of each request.
  private let animation: String?
  private let maxFrame: Int
  private var current: Current?
  private var pusher = Pusher()
  private var pushed = 0
  private var feeds = 0
  private var refused = 0
  private var progress: TransferProgress?

  private var console: Console { invocation.console }

  init(_ invocation: Invocation, _ connection: Connection, maxFrame: Int, policy: Policy) {
    self.invocation = invocation
    self.connection = connection
    self.policy = policy
    animation = invocation.options.text("animation")
    self.maxFrame = maxFrame
    if invocation.console.errorTerminal.canRedraw { progress = TransferProgress() }
  }

  /// Imports all lines from a descriptor.
  func run(_ input: Int32) throws(Failure) -> ExitStatus {
    var reader = ElementReader(limit: max(maxFrame - 256, 1), opensArrays: false)
    while true {
      let count: Int
      do throws(SystemError) {
        count = try StandardStreams.read(into: reader.room(), from: input)
      } catch {
        throw .system(error)
      }
      count == 0 ? reader.finish() : reader.didFill(count)
      while let item = reader.next() { try take(item) }
      if count == 0 { break }
    }
    try endFeed()
    if let progress { console.sayRaw(progress.summary("imported", pushed)) }
    if console.isJSON {
      var summary = ParameterWriter()
      summary.add("feeds", feeds)
      summary.add("elements", pushed)
      summary.add("refused", refused)
      console.print(summary.finish())
    }
    return refused > 0 ? .refused : .done
  }

  private func take(_ item: ElementReader.Item) throws(Failure) {
    switch item {
    case .tooLong(let line): throw invocation.usage("the element in line \(line) is longer than the daemon's frames")
    case .malformed(let line, let column, let reason):
      throw invocation.usage("line \(line), column \(column): not JSON: \(reason)")
    case .element(let view, let line):
      guard let target = current?.target, (current?.missing ?? 0) > 0 else { return try begin(view, line) }
      current?.missing -= 1
      pusher.add(view.text, line: line, alone: target.mustTravelAlone(view))
      try send()
      while !pusher.wantsLines { try receive() }
      if let line = progress?.line("imported", target.feed, pushed + pusher.pushed, console.errorTerminal.columns) {
        console.sayRaw(line)
      }
    }
  }

  /// Defines the feed of a line.
  private func begin(_ view: JSONView, _ line: Int) throws(Failure) {
    try endFeed()
    guard let feed = view.member("feed")?.string, view.member("kind")?.string != nil else {
      throw invocation.usage("line \(line): expected the definition of a feed, as feedclient export writes it")
    }
    let count = view.member("count")?.int ?? 0
    let definition = ExportedFeed(view).parameters(replace: policy == .replace, animation: animation)
    try invocation.call(connection, "define", definition, deadline: invocation.deadline()) { _ in }
    feeds += 1
    guard view.member("count") != nil else { return }
    var params = ParameterWriter()
    params.add("feed", feed)
    let name = params.finish()
    var (target, held) = try invocation.call(connection, "describe", name, deadline: invocation.deadline()) {
      (PushTarget($0), $0.member("count")?.int ?? 0)
    }
    target.animation = animation
    switch policy {
    case .merge: break
    case .replace: try empty(target, rows: held)
    case .refuse where held > 0:
      console.say("'\(feed)' has \(counted(held, "element")); give --replace to remove or --merge to keep them")
      throw .told(.refused)
    case .refuse: break
    }
    var window = Pusher.Window()
    window.batchBytes = min(window.batchBytes, max(maxFrame - target.envelopeBytes, 1))
    pusher = Pusher(window: window)
    current = Current(target: target, missing: count, line: line)
  }

  /// Removes all elements of a feed with this number of rows: in one request, unless its answer would not fit a frame.
  private func empty(_ target: PushTarget, rows: Int) throws(Failure) {
    if target.method == "put" { return try change(target, by: "put", "element", "null") }
    do throws(Failure) {
      try change(target, by: "set", "elements", "[]")
    } catch {
      guard error.exceeds(Self.limits) else { throw error }
      try removeRows(of: target, rows)
      // Elements that no bin accepts have no rows.
      try change(target, by: "set", "elements", "[]")
    }
  }

  /// Removes the rows of a feed in several requests, which become smaller while the daemon refuses them.
  private func removeRows(of target: PushTarget, _ rows: Int) throws(Failure) {
    // A row number and its comma have at most 20 bytes.
    var (size, left) = (max(1, min(4096, (maxFrame - target.envelopeBytes) / 20)), rows)
    while left > 0 {
      let count = min(size, left)
      do throws(Failure) {
        if target.method == "insert" {
          try change(target, by: "remove", "at", "[\((left - count..<left).map { "\($0)" }.joined(separator: ","))]")
          left -= count
        } else {
          let ids = try identities(ofFirst: count, target)
          if ids == "[]" { return }
          if size > 1, ids.utf8.count > maxFrame - target.envelopeBytes {
            size /= 2
            continue
          }
          try change(target, by: "delete", "ids", ids)
        }
      } catch {
        guard error.exceeds(Self.limits), size > 1 else { throw error }
        size /= 2
      }
    }
  }

  /// Returns the JSON of the identities of the first rows of a feed.
  private func identities(ofFirst count: Int, _ target: PushTarget) throws(Failure) -> String {
    var params = ParameterWriter()
    params.add("feed", target.feed)
    params.add("path", "$[0:\(count)]\(target.idPath.dropFirst())")
    return try invocation.call(connection, "query", params.finish(), deadline: invocation.deadline()) { result in
      result.member("nodes").map { String(decoding: $0.text, as: UTF8.self) } ?? "[]"
    }
  }

  private func change(_ target: PushTarget, by method: String, _ member: String, _ value: String) throws(Failure) {
    var params = ParameterWriter()
    params.add("feed", target.feed)
    if let animation { params.add("animation", animation) }
    params.add(member, json: value)
    try invocation.call(connection, method, params.finish(), deadline: invocation.deadline()) { _ in }
  }

  /// Waits until every element of the current feed was answered.
  private func endFeed() throws(Failure) {
    guard let current else { return }
    while !pusher.isIdle {
      try send()
      try receive()
    }
    pushed += pusher.pushed
    self.current = nil
    pusher = Pusher()
    guard current.missing == 0 else {
      console.say(
        "the file ends early: '\(current.target.feed)', defined in line \(current.line), lacks "
          + counted(current.missing, "element"))
      throw .told(.usage)
    }
  }

  private func send() throws(Failure) {
    guard let target = current?.target else { return }
    while connection.outputCount < 1 << 20, let batch = pusher.next() {
      connection.send(target.method) { target.append(batch, to: &$0) }
    }
    do throws(ClientError) { try connection.flush() } catch { throw invocation.failure(error) }
  }

  /// Waits for the daemon and processes its answers.
  private func receive() throws(Failure) {
    do throws(ClientError) {
      guard try connection.wait(until: invocation.deadline()) else { throw .timedOut }
      try connection.flush()
      try connection.fill()
      while let message = try connection.next() {
        guard case .response(_, let result) = message else { continue }
        switch result {
        case .success(let answer): pusher.accepted(revision: answer.member("revision")?.int ?? 0)
        case .failure(let error) where error.concernsWholeFeed: throw .refused(error)
        case .failure(let error):
          if let refusal = pusher.refused(Explanation.refusal(error, withCode: invocation.isVerbose)[0]) {
            refused += 1
            console.say("line \(refusal.line): \(refusal.reason)")
          }
        }
      }
    } catch {
      throw invocation.failure(error)
    }
    try send()
  }
}
