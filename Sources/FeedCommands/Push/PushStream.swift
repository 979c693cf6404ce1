import FeedClient
import FeedJSON
import FeedSystem

/// Pushes the elements on standard input as they arrive: reads, sends and receives answers concurrently.
final class PushStream {
  private let invocation: Invocation
  private let connection: Connection
  private let target: PushTarget
  private let input: Int32
  private var reader: ElementReader
  private var pusher: Pusher
  private var progress: PushProgress?
  /// The number of refused elements, and the number of those that are not JSON.
  private var refused = 0
  private var malformed = 0
  private var hasEnded = false

  private var console: Console { invocation.console }

  /// - Parameters:
  ///   - hello: the daemon's limits for frames, which every element must fit.
  ///   - showsProgress: whether standard error is a terminal.
  init(
    _ invocation: Invocation, _ connection: Connection, _ target: PushTarget, _ hello: ServerHello, showsProgress: Bool,
    input: Int32 = StandardStreams.input
  ) {
    (self.invocation, self.connection, self.target, self.input) = (invocation, connection, target, input)
    // The rest of the frame is for the feed's name and the other members of the request.
    let room = max(hello.maxFrame - target.envelopeBytes, 1)
    reader = ElementReader(limit: room, maxDepth: hello.maxDepth - target.envelopeDepth)
    var window = Pusher.Window()
    window.batchBytes = min(window.batchBytes, room)
    pusher = Pusher(window: window, isRepeatable: target.isRepeatable)
    progress = showsProgress ? PushProgress(now: MonotonicClock.now) : nil
  }

  /// Runs until the input has ended and every element was answered.
  func run(deadline: UInt64?) throws(Failure) -> ExitStatus {
    do throws(ClientError) {
      while true {
        while let message = try connection.next() { try take(message) }
        try pusher.send(to: target, over: connection)
        if hasEnded, pusher.isIdle { break }
        showProgress()
        try wait(deadline)
      }
    } catch {
      throw fail(error)
    }
    finish()
    if refused > malformed { return .refused }
    return malformed > 0 ? .usage : .done
  }

  private func take(_ message: Message) throws(ClientError) {
    guard case .response(let id, let result) = message else { return }
    if id == 0, case .failure(let error) = result { throw .refused(error) }
    let codes = invocation.isVerbose || console.wantsJSON
    if let refusal = try pusher.take(result, withCode: codes) { report(refusal.message) }
  }

  /// Waits for the daemon or for input, then reads input.
  private func wait(_ deadline: UInt64?) throws(ClientError) {
    let wantsInput = !hasEnded && pusher.wantsLines
    var isOver = false
    do throws(SystemError) {
      var list = WaitList()
      list.add(connection.descriptor, connection.hasOutput ? [.readable, .writable] : .readable)
      if wantsInput { list.add(input, .readable) }
      let due = [deadline, progress?.deadline].compactMap { $0 }.min()
      let isReady = try list.wait(until: due)
      if isReady, wantsInput, !list.ready(input).isEmpty { try readInput() }
      if let deadline, MonotonicClock.now >= deadline { isOver = true }
    } catch {
      throw .system(error)
    }
    if isOver { throw .timedOut }
    try connection.fill()
  }

  private func readInput() throws(SystemError) {
    let count = try StandardStreams.read(into: reader.room(), from: input)
    if count == 0 {
      hasEnded = true
      reader.finish()
    } else {
      reader.didFill(count)
    }
    while let item = reader.next() {
      switch item {
      case .element(let element, let line, let column):
        pusher.add(element.text, line: line, column: column, alone: target.mustTravelAlone(element))
      case .flaw(let flaw):
        if flaw.isSyntax { malformed += 1 }
        report("\(flaw)")
      }
    }
  }

  private func report(_ refusal: String) {
    refused += 1
    if progress != nil { console.sayRaw("\r\u{1B}[K") }
    console.say(refusal)
  }

  private func showProgress() {
    let width = console.errorTerminal.columns
    let line = progress?.line(now: MonotonicClock.now, pushed: pusher.pushed, refused: refused, width: width)
    if let line { console.sayRaw(line) }
  }

  private func fail(_ error: ClientError) -> Failure {
    if progress != nil { console.sayRaw("\r\u{1B}[K") }
    if pusher.pushed + pusher.unanswered > 0 {
      let rest = pusher.unanswered > 0 ? "; \(grouped(pusher.unanswered)) sent but unacknowledged" : ""
      console.say("\(counted(pusher.pushed, "element")) acknowledged\(rest)")
    }
    return invocation.failure(error)
  }

  private func finish() {
    if let progress {
      let text = progress.summary(now: MonotonicClock.now, pushed: pusher.pushed, refused: refused)
      console.sayRaw("\r\u{1B}[K\(text)\n")
    }
    if console.isJSON {
      var summary = ParameterWriter(feed: target.feed)
      summary.add("pushed", pusher.pushed)
      summary.add("refused", refused)
      if let revision = pusher.revision { summary.add("revision", revision) }
      console.print(summary.finish())
    }
  }
}

extension RemoteError {
  /// Whether every other element would be refused too: the feed was undefined or redefined as another kind, permission
  /// is denied, or nothing can be stored.
  var concernsWholeFeed: Bool { [Self.unknownFeed, Self.unknownMethod, -32002, -32006, -32008].contains(code) }
}

/// The progress line of a push on a terminal, and its summary.
struct PushProgress {
  /// Nanoseconds between two lines.
  static let interval: UInt64 = 100_000_000

  private let start: UInt64
  private var shownAt: UInt64?
  private var rateSince: (time: UInt64, pushed: Int)
  private var rate = 0.0

  init(now: UInt64) {
    start = now
    rateSince = (now, 0)
  }

  /// The time of the next line.
  var deadline: UInt64 { (shownAt ?? start) &+ Self.interval }

  /// Returns the line, with control characters that overwrite the previous line; nil before its time.
  mutating func line(now: UInt64, pushed: Int, refused: Int, width: Int) -> String? {
    guard now >= deadline else { return nil }
    shownAt = now
    // The rate over about the last second.
    let elapsed = Double(now - rateSince.time) / 1e9
    if elapsed > 0 { rate = Double(pushed - rateSince.pushed) / elapsed }
    if elapsed >= 1 { rateSince = (now, pushed) }
    var line = LinePainter(width: width, palette: Palette(isOn: false))
    line.add(Self.text(pushed, refused, ", \(grouped(Int(rate)))/s"))
    return "\r\u{1B}[K\(line.text)"
  }

  func summary(now: UInt64, pushed: Int, refused: Int) -> String {
    let seconds = Double(now - start) / 1e9
    let rate = seconds > 0 ? Int(Double(pushed) / seconds) : pushed
    let tenths = Int(seconds * 10)
    return Self.text(pushed, refused, " in \(tenths / 10).\(tenths % 10) s, \(grouped(rate))/s")
  }

  private static func text(_ pushed: Int, _ refused: Int, _ speed: String) -> String {
    var text = "\(grouped(pushed)) pushed\(speed)"
    if refused > 0 { text += ", \(grouped(refused)) refused" }
    return text
  }
}
