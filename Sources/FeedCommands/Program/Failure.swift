import FeedClient
import FeedJSON
import FeedSystem
import Glibc

/// The exit status of `feedclient`. Scripts rely on the numbers.
package enum ExitStatus: Int32, Sendable {
  case done = 0
  /// The daemon refused a request, or `get` found no element.
  case refused = 1
  /// The command line is wrong, a file cannot be used, or an element is not JSON.
  case usage = 2
  /// No daemon answers, or it shut down.
  case noDaemon = 3
  case timedOut = 4
  /// The copy of a feed is wrong: a gap between deltas, or a digest that differs from the daemon's.
  case gap = 5
  /// The command of `trigger` failed until there were no retries left.
  case commandFailed = 6
}

/// The reason why a command ends early. Each case has one exit status and one message.
enum Failure: Error, Equatable {
  /// The command line is wrong. The text contains the next step.
  case usage(String)
  case client(ClientError)
  /// The reader of standard output has closed it, which is not an error.
  case readerGone
  /// A file or a standard stream cannot be read or written.
  case system(SystemError)
  /// The daemon's state cannot be read or copied. The text contains the reason.
  case state(String)
  /// A signal interrupted the command. The process ends by that signal.
  case interrupted(Int32)
  /// The message was already printed.
  case told(ExitStatus)

  /// Performs an operation of the system.
  static func ofSystem<Result: ~Copyable>(
    _ body: @autoclosure () throws(SystemError) -> Result
  ) throws(Failure) -> Result {
    do throws(SystemError) { return try body() } catch { throw .system(error) }
  }

  var status: ExitStatus {
    switch self {
    case .usage, .system, .state: .usage
    case .readerGone, .interrupted: .done
    case .told(let status): status
    case .client(let error): error.status
    }
  }
}

extension ClientError {
  var status: ExitStatus {
    switch self {
    case .noDaemon, .malformed: .noDaemon
    // A daemon that closes only this connection has refused the client; otherwise it shut down.
    case .closed(let bye): bye.map { $0.isShutdown ? .noDaemon : .refused } ?? .noDaemon
    case .refused: .refused
    case .fault: .gap
    case .timedOut: .timedOut
    case .system: .usage
    }
  }
}

extension Bye {
  /// Whether the daemon shuts down, instead of closing only this connection.
  var isShutdown: Bool { reason == "shutdown" || reason.isEmpty }
}

extension Failure {
  /// Prints the message on standard error.
  func tell(on console: Console) {
    for line in lines { console.say(line) }
  }

  /// The lines of the message; empty if nothing is printed.
  var lines: [String] {
    switch self {
    case .readerGone, .told, .interrupted: []
    case .usage(let text): text.split(separator: "\n").map(String.init)
    case .state(let text): [text]
    case .system(let error): ["\(error)"]
    case .client(.refused(let error)): error.lines(withCode: false)
    case .client(.noDaemon(let error)): absence(error)
    case .client(.fault(let fault)):
      ["the copy of the feed is wrong: \(fault)", "this is a bug in feedd or feedclient; do not use the copy"]
    case .client(let error): ["\(error)"]
    }
  }

  private func absence(_ error: SystemError) -> [String] {
    // A process listens there. Starting another one would not help.
    if error.code == EACCES || error.code == ENOTSOCK { return ["\(error)"] }
    return ["\(error)", "start a daemon with: \(Self.start(error.path ?? "PATH"))"]
  }

  /// Returns the command that starts a daemon at a path.
  private static func start(_ path: String) -> String {
    let own = "feedd --socket \(LinePainter.shellWord(path))"
    if path.hasPrefix("/run/user/") { return "systemctl --user start feedd.socket, or: \(own)" }
    guard path == SocketPath.system else { return own }
    return
      "systemctl --user start feedd.socket, or: feedd; the one of the system with: sudo systemctl start feedd.socket"
  }
}

extension RemoteError {
  /// Prints the message in terms of the command line, with suggestions for an unknown name.
  func tell(_ invocation: Invocation) {
    let codes = invocation.isVerbose || invocation.console.wantsJSON
    let suggestion = invocation.suggestion(for: self)
    for line in lines(withCode: codes, suggestion: suggestion, words: CommandWords(invocation)) {
      invocation.console.say(line)
    }
    if invocation.isVerbose, let data {
      invocation.console.say("data: \(String(decoding: data, as: UTF8.self))")
    }
  }

  /// The lines of the message; for an invalid filter or path, with a mark below the position of the error.
  func lines(withCode: Bool, suggestion: String = "", words: CommandWords = CommandWords()) -> [String] {
    var text = words.translate(message)
    if text.hasSuffix("."), !suggestion.isEmpty { text.removeLast() }
    // A similar name is a better next step than the daemon's general advice.
    if !suggestion.isEmpty, let advice = text.lastIndex(of: ";") { text = String(text[..<advice]) }
    text += suggestion
    if withCode { text += " (\(code))" }
    guard code == Self.badQuery, let mark = markedQuery else { return [text] }
    return [text, mark.text, String(repeating: " ", count: mark.columns) + "^"]
  }

  /// The filter or path of the error, and the number of columns before the position of the error.
  private var markedQuery: (text: String, columns: Int)? {
    data?.readJSON { view in
      guard let offset = view.member("offset")?.int, offset >= 0,
        let text = (view.member("text") ?? view.member("filter") ?? view.member("path"))?.string
      else { return nil }
      let before = String(decoding: text.utf8.prefix(offset), as: UTF8.self)
      return (text, DisplayWidth.columns(of: before))
    }
  }
}

/// Replaces members of requests in the daemon's messages by the words of the command line that set them.
struct CommandWords {
  private static let words = [
    ("needs \"section\"; give", "needs --section: give"), ("\"replace\": true", "--replace"),
    ("\"initial\": false", "--no-initial"), ("\"all\": true", "--all"),
    ("\"multiple\": false", "--no-multiple"),
    ("define it first, or list the feeds with method feeds", "define it, or list the feeds with feedclient feeds"),
    ("list the feeds with method feeds", "list the feeds with feedclient feeds"),
    (": the method needs collection \"", "; give its collection \""),
    (": the method needs a feed ", "; the command needs a feed "),
    (": the method needs ", "; the command needs a feed of kind "),
    ("hello lists the methods of this daemon", "feedclient call hello lists those of this daemon"),
    ("call clients for their numbers", "feedclient clients lists them"),
  ]
  /// The options that set a member, by its path without indices.
  private static let options = [
    "bins": ["bin"], "bins.sort": ["sort"], "sort": ["sort"], "sectionOrder": ["section-order"],
    "retain": ["retain-count", "retain-seconds", "retain-until"], "retain.count": ["retain-count"],
    "retain.seconds": ["retain-seconds"], "retain.until": ["retain-until"], "children": ["child"],
    "contents": ["content"],
  ]

  /// The options and operands of the command, such as `id` and `FEED`; empty if the command line contains requests.
  private let own: Set<String>
  private let given: ParsedOptions?

  /// Translates what all commands have in common.
  init() { (own, given) = ([], nil) }

  init(_ invocation: Invocation) {
    let command = invocation.command
    given = invocation.options
    let isJSON = command.name == "call" || ["-", "{"].contains(invocation.operand(0).prefix(1))
    let operands = command.usage.flatMap { $0.split { !$0.isLetter } }.map(String.init)
    own = isJSON ? [] : Set(command.options.map(\.name) + operands.filter { $0 == $0.uppercased() })
  }

  func translate(_ message: String) -> String {
    Self.countingFromOne(Self.words.reduce(translatingMember(of: message)) { $0.replacing($1.0, with: $1.1) })
  }

  /// Replaces the member that a message begins with: `parameter sort[0].by …`, `id does not parse …`.
  private func translatingMember(of message: String) -> String {
    let prefix = "parameter "
    let isParameter = message.hasPrefix(prefix)
    let start = isParameter ? message.dropFirst(prefix.count) : message[...]
    let member = start.prefix { $0 != " " }
    var rest = start.dropFirst(member.count)
    guard isParameter || rest.hasPrefix(" does not parse"), let word = word(for: String(member)) else { return message }
    let unknown = " is an unknown member; kind "
    guard word.hasPrefix("--"), rest.hasPrefix(unknown) else { return word + rest }
    rest = rest.dropFirst(unknown.count)
    return "kind \(rest)".replacing("\"\(member)\"", with: word)
  }

  /// Returns the option or operand that sets a member; nil if the command has none.
  private func word(for member: String) -> String? {
    var isIndex = false
    let path = String(
      member.filter { character in
        defer { if character == "]" { isIndex = false } }
        if character == "[" { isIndex = true }
        return !isIndex
      })
    var name = path[...]
    while true {
      let options = (Self.options[String(name)] ?? [String(name)]).filter(own.contains)
      if let option = options.first(where: { given?.contains($0) ?? false }) ?? options.first { return "--\(option)" }
      guard let dot = name.lastIndex(of: ".") else { break }
      name = name[..<dot]
    }
    let operand = path.uppercased()
    return own.contains(operand) ? operand : nil
  }

  /// Converts the index of an element in a request, from 0, to its number on the command line, from 1.
  private static func countingFromOne(_ message: String) -> String {
    guard let named = message.namedElement else { return message }
    return message.replacing(named.range, with: "element \(grouped(named.index + 1))")
  }
}

extension String {
  /// The index of the element in the request that a message of the daemon names, as in `element 1,203 has no identity`, and the
  /// place of these two words; nil if it names none.
  var namedElement: (index: Int, range: Range<Index>)? {
    guard let word = firstRange(of: "element "),
      word.lowerBound == startIndex || [": ", " over "].contains(where: self[..<word.lowerBound].hasSuffix)
    else { return nil }
    let number = self[word.upperBound...].prefix { $0 != " " && $0 != ";" }
    guard let index = Count.parse(String(number)) else { return nil }
    return (index, word.lowerBound..<number.endIndex)
  }

  func replacing(_ range: Range<Index>, with text: String) -> String {
    self[..<range.lowerBound] + text + self[range.upperBound...]
  }
}
