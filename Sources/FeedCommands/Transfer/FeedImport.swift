import FeedClient
import FeedJSON
import FeedSystem

/// Defines the feeds of an export and pushes their elements: the action of `import`.
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
  private static let limits: Set = ["maxFrame", "maxRequestRows", "maxRequestSteps"]

  /// The parameters that define a feed, and the line of the file that they come from.
  private struct Definition {
    let line: Int
    let text: String

    /// Returns the daemon's refusal with the line in place of the operation of a transaction and of the word "parameter".
    func placing(_ failure: Failure) -> Failure {
      guard var error = failure.refusal else { return failure }
      var reason = error.message[...]
      if reason.hasPrefix("operation "), let end = reason.firstRange(of: ": ") { reason = reason[end.upperBound...] }
      let parameter = "parameter "
      if reason.hasPrefix(parameter) { reason = reason.dropFirst(parameter.count) }
      error.message = "line \(line): \(reason)"
      return .client(.refused(error))
    }
  }

  private let invocation: Invocation
  private let connection: Connection
  private let policy: Policy
  /// The animation hint of each request.
  private let animation: String?
  private let maxFrame: Int
  /// The feed whose elements are being pushed.
  private var target: PushTarget?
  /// The definition that the feed gets after its elements; nil if it has it already.
  private var finalDefinition: String?
  private var pusher = Pusher()
  private var pushed = 0
  private var feeds = 0
  private var refused = 0
  private var progress: TransferProgress?

  private var console: Console { invocation.console }

  init(_ invocation: Invocation, _ connection: Connection, maxFrame: Int, policy: Policy) {
    (self.invocation, self.connection, self.policy) = (invocation, connection, policy)
    animation = invocation.options.text("animation")
    self.maxFrame = maxFrame
    if invocation.console.errorTerminal.canRedraw, !invocation.console.isQuiet { progress = TransferProgress() }
  }

  /// Imports an export. Validates all of it before the first change.
  func run(_ export: borrowing ExportLines) throws(Failure) -> ExitStatus {
    var filled: [String] = []
    var definitions: [Definition] = []
    try export.read { line throws(Failure) in
      guard case .feed(let heading) = line else { return }
      let text = heading.feed.parameters(replace: policy == .replace, animation: animation)
      definitions.append(Definition(line: heading.line, text: text))
      if heading.count != nil { filled.append(heading.feed.name) }
    }
    if policy == .refuse {
      for feed in filled { try checkIsEmpty(feed) }
    }
    try define(definitions)
    do throws(Failure) {
      try export.read { line throws(Failure) in
        switch line {
        case .feed(let heading): try begin(heading)
        case .element(let view, let line, let column): try push(view, line, column)
        }
      }
      try endFeed()
    } catch {
      let (done, option) = (counted(pushed + pusher.pushed, "element"), policy == .merge ? "merge" : "replace")
      say("the import is not complete: \(done) acknowledged; repeat it with --\(option)")
      throw error
    }
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

  /// Prints a message in place of the progress.
  private func say(_ message: String) {
    if progress != nil { console.sayRaw("\r\u{1B}[K") }
    console.say(message)
  }

  /// Throws if a feed exists and has elements.
  private func checkIsEmpty(_ feed: String) throws(Failure) {
    let held: Int
    do throws(Failure) {
      held = try invocation.describe(feed, over: connection) { $0.member("count")?.int ?? 0 }
    } catch .client(.refused(let error)) where error.code == RemoteError.unknownFeed {
      return
    }
    guard held > 0 else { return }
    console.say("'\(feed)' has \(counted(held, "element")); give --replace to remove or --merge to keep them")
    throw .told(.refused)
  }

  private func push(_ element: JSONView, _ line: Int, _ column: Int) throws(Failure) {
    guard let target else { return }
    pusher.add(element.text, line: line, column: column, alone: target.mustTravelAlone(element))
    try send()
    while !pusher.wantsLines { try receive() }
    if let line = progress?.line("imported", target.feed, pushed + pusher.pushed, console.errorTerminal.columns) {
      console.sayRaw(line)
    }
  }

  /// Defines all feeds in one commit, so that none is defined if the daemon refuses one; or one after another if they are too
  /// many for a request.
  private func define(_ definitions: [Definition]) throws(Failure) {
    feeds = definitions.count
    let operations = definitions.map { "{\"method\":\"define\",\"params\":\($0.text)}" }
    var params = ParameterWriter()
    params.add("ops", json: "[\(operations.joined(separator: ","))]")
    let all = params.finish()
    // The frame has a few more members.
    if all.utf8.count <= maxFrame - 256 {
      do throws(Failure) {
        return try invocation.call(connection, "transaction", all, deadline: invocation.deadline()) { _ in }
      } catch {
        guard error.exceeds(Self.limits) else {
          let number = error.refusal?.data?.readJSON { $0.member("op")?.int }
          throw number.flatMap { definitions.indices.contains($0) ? definitions[$0].placing(error) : nil } ?? error
        }
      }
    }
    for definition in definitions {
      do throws(Failure) { try redefine(definition.text) } catch { throw definition.placing(error) }
    }
  }

  private func redefine(_ definition: String) throws(Failure) {
    try invocation.call(connection, "define", definition, deadline: invocation.deadline()) { _ in }
  }

  /// Prepares a feed for its elements.
  private func begin(_ heading: ExportLines.Heading) throws(Failure) {
    try endFeed()
    guard heading.count != nil else { return }
    if !heading.feed.isEditable {
      let definition = heading.feed.parameters(replace: true)
      try redefine(Operands.adding("\"editable\":true", to: definition))
      finalDefinition = definition
    }
    var (target, held) = try invocation.describe(heading.feed.name, over: connection) {
      (PushTarget($0), $0.member("count")?.int ?? 0)
    }
    target.animation = animation
    if policy == .replace { try empty(target, rows: held) }
    var window = Pusher.Window()
    window.batchBytes = min(window.batchBytes, max(maxFrame - target.envelopeBytes, 1))
    pusher = Pusher(window: window, isRepeatable: target.isRepeatable)
    self.target = target
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

  private func identities(ofFirst count: Int, _ target: PushTarget) throws(Failure) -> String {
    var params = ParameterWriter(feed: target.feed)
    params.add("path", "$[0:\(count)]\(target.idPath.dropFirst())")
    return try invocation.call(connection, "query", params.finish(), deadline: invocation.deadline()) { result in
      result.member("nodes").map { String(decoding: $0.text, as: UTF8.self) } ?? "[]"
    }
  }

  private func change(_ target: PushTarget, by method: String, _ member: String, _ value: String) throws(Failure) {
    var params = ParameterWriter(feed: target.feed)
    if let animation { params.add("animation", animation) }
    params.add(member, json: value)
    try invocation.call(connection, method, params.finish(), deadline: invocation.deadline()) { _ in }
  }

  /// Waits until every element of the current feed was answered.
  private func endFeed() throws(Failure) {
    if target == nil { return }
    while !pusher.isIdle {
      try send()
      try receive()
    }
    pushed += pusher.pushed
    target = nil
    pusher = Pusher()
    if let finalDefinition { try redefine(finalDefinition) }
    finalDefinition = nil
  }

  private func send() throws(Failure) {
    guard let target else { return }
    try invocation.attempt { () throws(ClientError) in try pusher.send(to: target, over: connection) }
  }

  /// Waits for the daemon and processes its answers.
  private func receive() throws(Failure) {
    try invocation.attempt { () throws(ClientError) in
      guard try connection.wait(until: invocation.deadline()) else { throw .timedOut }
      try connection.flush()
      try connection.fill()
      while let message = try connection.next() {
        guard case .response(_, let result) = message else { continue }
        if let refusal = try pusher.take(result, withCode: invocation.isVerbose) {
          refused += 1
          say(refusal.message)
        }
      }
    }
    try send()
  }
}
