/// The connections of a turn: the source of its input and the destination of its output.
///
/// The daemon's link consists of sockets. Tests, benchmarks and simulators use links in memory that may lose, truncate
/// or delay bytes. No call blocks.
///
/// The link identifies a connection by the number that the turn assigned with ``assign(_:)``. After ``close(_:)`` the
/// link reports nothing about that connection, and the number may be assigned again in the same turn.
public protocol Link: ~Copyable {
  /// Returns the next event since the last turn; nil if there is none left in this turn.
  ///
  /// After `.accepted` the turn calls ``assign(_:)`` before it asks for the next event. A level-triggered link may
  /// report `.readable` and `.writable` again in each turn, as long as the turn watches for them.
  mutating func nextEvent() -> LinkEvent?

  /// Reads input, up to the size of `space`, which is not empty.
  mutating func read(_ id: ConnectionID, into space: UnsafeMutableRawBufferPointer) -> ReadOutcome

  /// Writes the slices in order, as far as the peer accepts them. There is at least one slice, and none is empty. The
  /// bytes are valid until the call returns.
  mutating func write(_ id: ConnectionID, _ slices: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> WriteOutcome

  /// Sets the events of a connection that are reported. If neither is watched, only a hang-up is reported, once. The
  /// turn may repeat the call; the link ignores a call that changes nothing.
  mutating func watch(_ id: ConnectionID, reading: Bool, writing: Bool)

  /// Prepares for long frames to a connection that did not accept all that it was offered. A link may ignore the call; the
  /// turn repeats it.
  mutating func makeRoom(_ id: ConnectionID)

  /// Assigns a number to the connection that was just reported as accepted. It is watched for reading.
  mutating func assign(_ id: ConnectionID)

  /// Closes a connection. Unread input is discarded in such a way that the peer can still read the written output.
  mutating func close(_ id: ConnectionID)
}

extension Link where Self: ~Copyable {
  public mutating func makeRoom(_ id: ConnectionID) {}
}

/// An event of a link.
public enum LinkEvent: Equatable {
  /// A peer connected.
  case accepted(Peer)
  /// There is input, or the end of the input. `hungUp`: the peer has also stopped reading.
  case readable(ConnectionID, hungUp: Bool)
  /// The peer accepts bytes again.
  case writable(ConnectionID)
  /// The peer hung up while nothing was watched: it has stopped reading. Its earlier input may still be read.
  case hungUp(ConnectionID)
  /// The connection is lost. It can be neither read nor written.
  case gone(ConnectionID)
}

/// The result of one read.
public enum ReadOutcome: Equatable {
  /// The number of bytes that were read, at least 1. If it is less than the space, there is no more input for now.
  case bytes(Int)
  case wouldBlock
  /// The peer sends no more input.
  case end
  /// The connection failed: the peer neither sends nor reads.
  case failed
}

/// The result of one write.
public enum WriteOutcome: Equatable {
  /// The number of bytes that were written. If it is less than offered, the peer accepts no more for now.
  case bytes(Int)
  case wouldBlock
  /// The connection failed: the peer has stopped reading. Its earlier input may still be read.
  case failed
}
