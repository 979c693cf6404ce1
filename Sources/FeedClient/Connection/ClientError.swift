import FeedSystem

/// Why a client could not do what it was asked.
public enum ClientError: Error, Equatable, Sendable {
  /// Nobody answers at the socket's path.
  case noDaemon(SystemError)
  /// The daemon closed the connection; its last word, if it had one.
  case closed(Bye?)
  /// The daemon refused a request.
  case refused(RemoteError)
  /// What came is not the protocol.
  case malformed(MalformedMessage)
  /// What came does not fit what came before: the copy of the feed is wrong.
  case fault(FeedFault)
  /// The time was up.
  case timedOut
  /// A system call failed.
  case system(SystemError)
}

extension ClientError {
  /// The description without a full stop, so that a sentence can go on behind it.
  package var clause: String {
    let text = description
    return text.hasSuffix(".") ? String(text.dropLast()) : text
  }
}

extension ClientError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .noDaemon(let error): "\(error)"
    case .closed(let bye?) where !bye.message.isEmpty: "the daemon closed the connection: \(bye.message)"
    case .closed: "the daemon closed the connection"
    case .refused(let error): "\(error.message) (\(error.code))"
    case .malformed(let error): "the daemon does not speak this protocol: \(error)"
    case .fault(let fault): "\(fault)"
    case .timedOut: "the time was up"
    case .system(let error): "\(error)"
    }
  }
}
