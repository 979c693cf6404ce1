/// The connections of a turn: what arrives is read from it, what the engine makes is written to it.
///
/// The daemon's link is made of sockets. Tests, benchmarks and simulators use links in memory that may lose, cut or delay
/// bytes. No call ever waits.
///
/// The link names a connection by the number that the turn gave it with ``assign(_:)``. After ``close(_:)`` the link reports
/// nothing of that connection, and the number may be assigned again in the same turn.
public protocol Link: ~Copyable {
  /// The next thing that happened since the last turn; nil when nothing is left to report in this turn.
  ///
  /// After `.accepted` the turn calls ``assign(_:)`` before it asks for the next event. A level-triggered link may report
  /// `.readable` and `.writable` again in each turn, as long as the turn watches for them.
  mutating func nextEvent() -> LinkEvent?

  /// Reads what the peer has sent, up to the size of `space`, which is never empty.
  mutating func read(_ id: ConnectionID, into space: UnsafeMutableRawBufferPointer) -> ReadOutcome

  /// Writes the slices in order, as far as the peer takes them. There is at least one, and none is empty. The bytes are
  /// valid until the call returns.
  mutating func write(_ id: ConnectionID, _ slices: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> WriteOutcome

  /// Says what is to be reported of a connection from now on. While neither is watched, only a hang-up is
  /// reported, once. The turn repeats the call freely; a link ignores one that changes nothing.
  mutating func watch(_ id: ConnectionID, reading: Bool, writing: Bool)

  /// Gives the connection that was reported as accepted its number. It is watched for reading.
  mutating func assign(_ id: ConnectionID)

  /// Closes a connection and forgets it. Input that was not read is discarded in such a way that the peer can still read
  /// what was written.
  mutating func close(_ id: ConnectionID)
}

/// Something that happened on a link.
public enum LinkEvent: Equatable {
  /// A peer connected.
  case accepted(Peer)
  /// There is input, or the end of it. `hungUp`: the peer does not read any more either.
  case readable(ConnectionID, hungUp: Bool)
  /// The peer takes bytes again.
  case writable(ConnectionID)
  /// The peer hung up while nothing was watched: it reads nothing more. What it sent before may still be read.
  case hungUp(ConnectionID)
  /// The connection is lost; nothing can be read from it or written to it.
  case gone(ConnectionID)
}

/// The result of one read.
public enum ReadOutcome: Equatable {
  /// So many bytes were read, at least 1. Fewer than there was space for mean that there are no more for now.
  case bytes(Int)
  case wouldBlock
  /// The peer sends nothing more.
  case end
  /// The connection failed: the peer neither sends nor reads any more.
  case failed
}

/// The result of one write.
public enum WriteOutcome: Equatable {
  /// So many bytes were written. Fewer than were offered mean that the peer takes no more for now.
  case bytes(Int)
  case wouldBlock
  /// The connection failed: the peer reads nothing more. What it sent before may still be read.
  case failed
}
