/// Why the daemon cannot listen where it was told to.
public enum ListenError: Error, Equatable, Sendable {
  case system(SystemError)
  /// Somebody listens there already; the pid when it is known.
  case alreadyRunning(pid: Int32?, path: String)
  /// There is something at the path that is not a socket; it is left alone.
  case notASocket(path: String)
  /// What the service manager handed over cannot be used.
  case inherited(String)
}

extension ListenError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .system(let error): error.description
    case .alreadyRunning(let pid, let path):
      "another feedd is running, \(pid.map { "pid \($0)" } ?? "pid unknown") (socket \(path)); "
        + "stop it, or name another socket with --socket"
    case .notASocket(let path):
      "cannot listen at \(path): there is a file that is not a socket; remove it, or name another path with --socket"
    case .inherited(let reason): "cannot use the socket of the service manager: \(reason)"
    }
  }
}
