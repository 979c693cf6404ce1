import FeedClient
import FeedJSON
import FeedSystem

/// Pushes the lines of standard input as they come: reads, sends and hears answers at once.
final class PushStream {
  private let connection: Connection
  private let target: PushTarget
  private let console: Console
  private let input: Int32
  private var lines: LineSplitter
  private var scanner = JSONScanner(maxDepth: 10_000)
  private var pusher = Pusher()
  private var progress: PushProgress?
  private var line = 0
  /// Lines that did not go in, and those among them that are no JSON.
  private var refused = 0
  private var malformed = 0
  private var hasEnded = false

  /// - Parameters:
  ///   - maxFrame: the daemon's limit, which no line may come near.
  ///   - showsProgress: whether a person watches standard error.
  init(
    _ connection: Connection, _ target: PushTarget, console: Console, maxFrame: Int, showsProgress: Bool,
    input: Int32 = StandardStreams.input
  ) {
    self.connection = connection
    self.target = target
    self.console = console
    self.input = input
    // A request wraps a feed's name and a few words around an element.
    lines = LineSplitter(limit: max(maxFrame - 1024, 1))
    progress = showsProgress ? PushProgress(now: MonotonicClock.now) : nil
  }

  /// Runs until the input has ended and every line is answered.
  func run(deadline: UInt64?) throws(Failure) -> ExitStatus {
    do throws(ClientError) {
      while true {
        while let message = try connection.next() { try take(message) }
        try sendWhatIsReady()
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

  private func sendWhatIsReady() throws(ClientError) {
    while connection.outputCount < 1 << 20, let batch = pusher.next() {
      connection.send(target.method) { target.append(batch, to: &$0) }
    }
    try connection.flush()
  }

  private func take(_ message: Message) throws(ClientError) {
    guard case .response(let id, let result) = message else { return }
    switch result {
    case .success(let answer):
      pusher.accepted(revision: answer.member("revision")?.int ?? 0)
    case .failure(let error) where id == 0 || error.concernsWholeFeed:
      throw .refused(error)
    case .failure(let error):
      if let refusal = pusher.refused("\(error.message) (\(error.code))") { report(refusal) }
    }
  }

  /// Waits for the daemon or for lines, and takes lines in.
  private func wait(_ deadline: UInt64?) throws(ClientError) {
    let wantsLines = !hasEnded && pusher.wantsLines
    do throws(SystemError) {
      var list = WaitList()
      list.add(connection.descriptor, connection.hasOutput ? [.readable, .writable] : .readable)
      if wantsLines { list.add(input, .readable) }
      let due = [deadline, progress?.deadline].compactMap { $0 }.min()
      let isReady = try list.wait(until: due)
      if isReady, wantsLines, !list.ready(input).isEmpty { try readLines() }
      if let deadline, MonotonicClock.now >= deadline { throw SystemError.timeIsUp }
    } catch {
      throw error == .timeIsUp ? .timedOut : .system(error)
    }
    try connection.fill()
  }

  private func readLines() throws(SystemError) {
    let count = try StandardStreams.read(into: lines.room(), from: input)
    if count == 0 {
      hasEnded = true
      lines.finish()
    } else {
      lines.didFill(count)
    }
    while let next = lines.next() {
      line += 1
      switch next {
      case .blank: continue
      case .tooLong: report(.init(line: line, reason: "longer than the daemon's limit for a frame"))
      case .text(let bytes): add(bytes)
      }
    }
  }

  private func add(_ bytes: UnsafeRawBufferPointer) {
    do throws(JSONError) {
      let element = try scanner.scan(bytes)
      pusher.add(bytes, line: line, alone: target.mustTravelAlone(element))
    } catch {
      malformed += 1
      report(.init(line: line, reason: "not JSON: \(error.message) at byte \(error.offset)"))
    }
  }

  private func report(_ refusal: Pusher.Refusal) {
    refused += 1
    if progress != nil { console.sayRaw("\r\u{1B}[K") }
    console.say("line \(refusal.line): \(LinePainter.safe(refusal.reason))")
  }

  private func showProgress() {
    let width = console.errorTerminal.columns
    let line = progress?.line(now: MonotonicClock.now, pushed: pusher.pushed, refused: refused, width: width)
    if let line { console.sayRaw(line) }
  }

  private func fail(_ error: ClientError) -> Failure {
    if progress != nil { console.sayRaw("\r\u{1B}[K") }
    let unanswered = pusher.unanswered
    if unanswered > 0 {
      console.say(
        "\(Grouped.text(pusher.pushed)) lines were taken; of \(Grouped.text(unanswered)) more it is not known")
    }
    return .client(error)
  }

  private func finish() {
    if let progress {
      let text = progress.summary(now: MonotonicClock.now, pushed: pusher.pushed, refused: refused)
      console.sayRaw("\r\(text)\u{1B}[K\n")
    }
    if console.isJSON {
      var summary = Parameters()
      summary.add("feed", target.feed)
      summary.add("pushed", pusher.pushed)
      summary.add("refused", refused)
      if let revision = pusher.revision { summary.add("revision", revision) }
      console.print(summary.finish())
    }
  }
}

extension SystemError {
  fileprivate static let timeIsUp = SystemError(code: 0, operation: "wait any longer")
}

extension RemoteError {
  /// Whether no other line would fare better: the feed is gone or of a wrong kind, the user may not, the store fails.
  var concernsWholeFeed: Bool { [Self.unknownFeed, Self.unknownMethod, -32002, -32006, -32008].contains(code) }
}
