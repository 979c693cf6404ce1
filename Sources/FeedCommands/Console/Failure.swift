import FeedClient
import FeedSystem

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
