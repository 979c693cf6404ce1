import FeedEngine

/// The far ends of a daemon's connections, and the faults in between.
///
/// Each connection is a *line* with a number of its own, which is never used again, unlike the numbers that the turn gives.
protocol SimulatedNetwork: AnyObject {
  /// Whether the network behaves: everything is read and written at once.
  var isCalm: Bool { get set }

  /// Decides all faults from here on.
  func reseed(_ seed: UInt64)

  /// A peer connects. Returns the line.
  func connect(_ peer: Peer) -> Int

  /// Whether what is sent may arrive.
  func isOpen(_ line: Int) -> Bool
  /// Whether the daemon has closed the line, and the peer has taken all that was sent before.
  func isClosed(_ line: Int) -> Bool
  /// Whether reading and writing fail.
  func isBroken(_ line: Int) -> Bool

  func send(_ line: Int, _ bytes: some Collection<UInt8>)

  /// The peer sends nothing more, and still reads.
  func endInput(_ line: Int)

  /// The peer is gone.
  func lose(_ line: Int, isNoticed: Bool)

  /// Bytes that the peer takes before it stalls; nil for any number.
  func setRoom(_ line: Int, _ room: Int?)

  /// Takes what the peer received, the last bytes of a closed line included.
  func take(_ line: Int) -> [UInt8]

  /// The bytes that the daemon has read since the last call: of the line of which it read the most, if that is known, and of all.
  func takeBytesRead() -> (largest: Int, total: Int)
}
