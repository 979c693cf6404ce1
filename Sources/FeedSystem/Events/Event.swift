import CLinux

/// What an ``EventPoll`` reports of one descriptor.
public struct Event: Sendable {
  /// The 64 bits given when the descriptor was added.
  public let token: UInt64
  let flags: UInt32

  /// There are bytes to read or the stream has ended: a read will not wait.
  @inline(__always)
  public var isReadable: Bool { flags & (EPOLLIN.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 }

  /// A write will take something, or fail.
  @inline(__always)
  public var isWritable: Bool { flags & (EPOLLOUT.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 }

  /// Both directions have ended or the connection is broken: nothing written now can be read by anybody. Bytes that the
  /// peer sent before may still be there to read.
  @inline(__always)
  public var isHungUp: Bool { flags & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 }
}
