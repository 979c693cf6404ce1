import FeedClient
import FeedJSON
import FeedSystem
import Glibc

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
