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
      var summary = ParameterWriter()
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

/// The line that tells a person how a push goes, and the last one that stays.
struct PushProgress {
  /// How often the line changes.
  static let interval: UInt64 = 100_000_000

  private let start: UInt64
  private var shownAt: UInt64?
  private var rateSince: (time: UInt64, pushed: Int)
  private var rate = 0.0

  init(now: UInt64) {
    start = now
    rateSince = (now, 0)
  }

  /// When the line is due again.
  var deadline: UInt64 { (shownAt ?? start) &+ Self.interval }

  /// The line of the moment, with what puts it in the place of the one before; nil when it is not due.
  mutating func line(now: UInt64, pushed: Int, refused: Int, width: Int) -> String? {
    guard now >= deadline else { return nil }
    shownAt = now
    // The rate of about the last second, so that it follows a source that slows down.
    let elapsed = Double(now - rateSince.time) / 1e9
    if elapsed > 0 { rate = Double(pushed - rateSince.pushed) / elapsed }
    if elapsed >= 1 { rateSince = (now, pushed) }
    var line = LinePainter(width: width, palette: Palette(isOn: false))
    line.add(Self.text(pushed, refused, ", \(Grouped.text(Int(rate)))/s"))
    return "\r\(line.text)\u{1B}[K"
  }

  /// The line that stays at the end.
  func summary(now: UInt64, pushed: Int, refused: Int) -> String {
    let seconds = Double(now - start) / 1e9
    let rate = seconds > 0 ? Int(Double(pushed) / seconds) : pushed
    let tenths = Int(seconds * 10)
    return Self.text(pushed, refused, " in \(tenths / 10).\(tenths % 10) s, \(Grouped.text(rate))/s")
  }

  private static func text(_ pushed: Int, _ refused: Int, _ speed: String) -> String {
    var text = "\(Grouped.text(pushed)) pushed\(speed)"
    if refused > 0 { text += ", \(Grouped.text(refused)) refused" }
    return text
  }
}

/// Numbers for people.
enum Grouped {
  /// The digits in groups of three: 1,234,567.
  static func text(_ number: Int) -> String {
    let digits = String(number.magnitude)
    var text = number < 0 ? "-" : ""
    for (place, digit) in digits.enumerated() {
      if place > 0, (digits.count - place) % 3 == 0 { text += "," }
      text.append(digit)
    }
    return text
  }
}
