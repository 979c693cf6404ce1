import CLinux

/// What an ``EventPoll`` reports of a descriptor. A hang-up and an error are reported always, whatever is asked.
public struct EventInterest: OptionSet, Sendable {
  public let rawValue: UInt32
  @inline(__always)
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// There are bytes to read, a connection to accept, or an end of the stream.
  public static let readable = EventInterest(rawValue: EPOLLIN.rawValue)
  /// A write would take at least one byte.
  public static let writable = EventInterest(rawValue: EPOLLOUT.rawValue)
}
