import FeedClient
import FeedJSON
import FeedSystem
import Glibc

/// Why a command ends early. Each has one exit status and one way to be told.
enum Failure: Error, Equatable {
  /// The command line asks for something that cannot be; the sentence says what to change.
  case usage(String)
  case client(ClientError)
  /// Whoever read standard output is gone: there is nobody to tell, and that is no error.
  case readerGone
  /// A file, or a standard stream, could not be read or written.
  case system(SystemError)
  /// The daemon's state could not be read or copied; the sentence says why.
  case state(String)
  /// Everything was said already.
  case told(ExitStatus)

  var status: ExitStatus {
    switch self {
    case .usage, .system, .state: .usage
    case .readerGone: .done
    case .told(let status): status
    case .client(let error): error.status
    }
  }
}

extension ClientError {
  var status: ExitStatus {
    switch self {
    case .noDaemon, .malformed: .noDaemon
    // A daemon that stops is gone; one that throws a client out has refused it.
    case .closed(let bye): bye.map { $0.isShutdown ? .noDaemon : .refused } ?? .noDaemon
    case .refused: .refused
    case .fault: .gap
    case .timedOut: .timedOut
    case .system: .usage
    }
  }
}

extension Bye {
  /// Whether the daemon itself ends, rather than this connection alone.
  var isShutdown: Bool { reason == "shutdown" || reason.isEmpty }
}

/// How `feedclient` ends; the numbers are fixed for scripts.
package enum ExitStatus: Int32, Sendable {
  case done = 0
  /// The daemon refused something; its error is on standard error.
  case refused = 1
  /// The command line is wrong, or a file that it names, or an element is not JSON.
  case usage = 2
  /// No daemon answers, or it went away.
  case noDaemon = 3
  /// The time was up.
  case timedOut = 4
  /// The copy of a feed is wrong: a gap between deltas or another digest than the daemon's.
  case gap = 5
}

/// What went wrong, in the words of standard error.
struct Explanation {
  private let failure: Failure

  init(_ failure: Failure) { self.failure = failure }

  func tell(on console: Console) {
    for line in lines { console.say(line) }
  }

  /// The sentences; none when nobody is to be told.
  var lines: [String] {
    switch failure {
    case .readerGone, .told: []
    case .usage(let sentence), .state(let sentence): [sentence]
    case .system(let error): ["\(error)"]
    case .client(.refused(let error)): refusal(error)
    case .client(.noDaemon(let error)): absence(error)
    case .client(.fault(let fault)):
      [
        "gap found: \(fault)",
        "this is a fault of feedd or of this program, not of your data; the copy is not to be trusted",
      ]
    case .client(.timedOut): ["the time was up (--timeout)"]
    case .client(let error): ["\(error)"]
    }
  }

  private func absence(_ error: SystemError) -> [String] {
    // Somebody listens there; starting another would not help.
    if error.code == EACCES { return ["\(error)"] }
    return ["\(error)", "to start one: feedd --socket \(error.path ?? "PATH") & or, installed, systemctl start feedd"]
  }

  /// The daemon's sentence and code; below a bad filter or path, a mark at the place.
  private func refusal(_ error: RemoteError) -> [String] {
    let sentence = "\(LinePainter.safe(error.message)) (\(error.code))"
    guard error.code == RemoteError.badQuery, let mark = error.markedQuery else { return [sentence] }
    return [sentence, LinePainter.safe(mark.text), String(repeating: " ", count: mark.columns) + "^"]
  }
}

extension RemoteError {
  /// The filter or path that the error is about, and how many columns precede the offending place.
  var markedQuery: (text: String, columns: Int)? {
    guard let data else { return nil }
    var scanner = JSONScanner()
    return data.withUnsafeBytes { bytes in
      guard let view = try? scanner.scan(bytes), let offset = view.member("offset")?.int, offset >= 0,
        let text = (view.member("text") ?? view.member("filter") ?? view.member("path"))?.string
      else { return nil }
      let before = String(decoding: text.utf8.prefix(offset), as: UTF8.self)
      return (text, DisplayWidth.columns(of: before))
    }
  }
}
