import CLinux
import Glibc

/// A Unix stream socket that accepts connections, made here or handed over by the service manager.
///
/// Closed when the last reference goes.
public final class UnixListener {
  private let handle: Descriptor
  /// Where clients connect to; empty when the socket was handed over and has no path.
  public let path: String
  /// Whether the service manager made the socket, and keeps it when this process ends.
  public let isInherited: Bool
  private let lock: FileLock?
  private let identity: FileIdentity?

  init(handle: consuming Descriptor, path: String, lock: consuming FileLock?, identity: FileIdentity?) {
    self.handle = handle
    self.path = path
    self.identity = identity
    isInherited = identity == nil
    self.lock = lock
  }

  /// Removes the socket if this process made it and nobody put another in its place.
  deinit {
    if let identity, FileIdentity(at: path) == identity { unlink(path) }
  }

  /// To be waited on for reading: readable when there is a connection to accept.
  public var descriptor: Int32 { handle.rawValue }
}

extension UnixListener {
  /// The outcome of one ``accept()``.
  public enum Accepted: Equatable, Sendable {
    /// A connection; the descriptor does not block, is closed on exec, and belongs to the caller.
    case connection(Int32)
    /// Nobody waits.
    case none
    /// The peer gave up before it was accepted, or the like; the next may be well.
    case retry
    /// No descriptors or memory are left, here or in the system; the peer still waits.
    case exhausted(SystemError)
    /// The listener itself does not work.
    case failed(SystemError)
  }

  /// Takes the next connection. Never waits.
  public func accept() -> Accepted {
    let number = clinux_accept(descriptor)
    if number >= 0 { return .connection(number) }
    let error = SystemError.last("accept a connection at", path)
    switch error.code {
    case EAGAIN: return .none
    case EINTR, ECONNABORTED, EPERM, EPROTO: return .retry
    case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted(error)
    default: return .failed(error)
    }
  }
}
