import FeedEngine

/// A link in memory. It contains the peers of its connections, too.
///
///     let link = MemoryLink()
///     link.connect(Peer(uid: 1, gid: 1, pid: 1))
///     link.send(0, bytes)
///     turn.run(&link, now: now)
///     let answer = link.take(0)
///
/// The number of a connection is known after a turn accepted it. Connections are accepted in the order of
/// ``connect(_:)``.
public struct MemoryLink: Link, ~Copyable {
  private struct Port {
    /// Sent by the peer and not read by the turn.
    var input: [UInt8] = []
    var consumed = 0
    var hasEnded = false
    var isReading = true
    var isWriting = false
    /// Written by the turn and not read by the peer.
    var received: [UInt8] = []
    /// The number of bytes that the peer still accepts; nil for no limit.
    var room: Int?
    var isOpen = true

    var isReadable: Bool { isOpen && isReading && (consumed < input.count || hasEnded) }
    var isWritable: Bool { isOpen && isWriting && room != 0 }
  }

  private var waiting: [Peer] = []
  private var ports: [Int: Port] = [:]
  private var lost: [ConnectionID] = []
  private var hungUp: [ConnectionID] = []
  /// The remaining events of this turn, in reverse; nil before the first event.
  private var events: [LinkEvent]?
  /// The connections that were accepted, in order.
  public private(set) var accepted: [ConnectionID] = []
  /// The connections that the turn closed, in order.
  public private(set) var closed: [ConnectionID] = []

  public init() {}

  // MARK: The far end

  /// Connects a peer. The next turn accepts it.
  public mutating func connect(_ peer: Peer) { waiting.append(peer) }

  /// Sends bytes from the peer.
  public mutating func send(_ id: ConnectionID, _ bytes: some Collection<UInt8>) {
    ports[id.rawValue]?.input.append(contentsOf: bytes)
  }

  /// Ends the peer's input.
  public mutating func endInput(_ id: ConnectionID) { ports[id.rawValue]?.hasEnded = true }

  /// Closes the peer's side. Discards all that the peer did not read.
  public mutating func disconnect(_ id: ConnectionID) {
    guard isOpen(id), !lost.contains(id) else { return }
    lost.append(id)
    ports[id.rawValue]?.received = []
  }

  /// Makes the peer stop reading. The next turn reports this.
  public mutating func hangUp(_ id: ConnectionID) {
    hungUp.append(id)
    ports[id.rawValue]?.received = []
  }

  /// Sets the number of bytes that the peer still accepts; nil for no limit.
  public mutating func setRoom(_ id: ConnectionID, _ room: Int?) { ports[id.rawValue]?.room = room }
  public func room(_ id: ConnectionID) -> Int? { ports[id.rawValue]?.room ?? nil }

  /// Removes and returns the bytes that the peer received.
  public mutating func take(_ id: ConnectionID) -> [UInt8] {
    let bytes = ports[id.rawValue]?.received ?? []
    ports[id.rawValue]?.received = []
    return bytes
  }

  /// Puts bytes back in front of the bytes that the peer received.
  public mutating func putBack(_ id: ConnectionID, _ bytes: ArraySlice<UInt8>) {
    ports[id.rawValue]?.received.insert(contentsOf: bytes, at: 0)
  }

  /// The number of bytes that the peer received and that were not taken.
  public func receivedCount(_ id: ConnectionID) -> Int { ports[id.rawValue]?.received.count ?? 0 }
  /// The number of bytes that the peer sent and the turn did not read.
  public func unreadCount(_ id: ConnectionID) -> Int {
    ports[id.rawValue].map { $0.input.count - $0.consumed } ?? 0
  }

  /// Whether the turn has not closed the connection.
  public func isOpen(_ id: ConnectionID) -> Bool { ports[id.rawValue]?.isOpen ?? false }

  /// Whether the turn reads from the connection.
  public func isReading(_ id: ConnectionID) -> Bool { ports[id.rawValue]?.isReading ?? false }

  /// The open connections.
  public var open: [ConnectionID] {
    ports.filter(\.value.isOpen).keys.sorted().map { ConnectionID(rawValue: $0) }
  }

  /// Whether the next turn has an event.
  public var hasEvents: Bool {
    !waiting.isEmpty || !lost.isEmpty || !hungUp.isEmpty || ports.values.contains { $0.isReadable || $0.isWritable }
  }

  // MARK: The turn's end

  public mutating func nextEvent() -> LinkEvent? {
    var left = events ?? present
    let next = left.popLast()
    if case .hungUp = next { hungUp.removeFirst() }
    events = next == nil ? nil : left
    return next
  }

  /// The events to report, in reverse.
  private var present: [LinkEvent] {
    var all: [LinkEvent] = lost.filter { isOpen($0) }.map { .gone($0) }
    all += waiting.map { .accepted($0) }
    all += hungUp.map { .hungUp($0) }
    for (number, port) in ports.sorted(by: { $0.key < $1.key }) where !lost.contains(where: { $0.rawValue == number }) {
      if port.isWritable { all.append(.writable(ConnectionID(rawValue: number))) }
      if port.isReadable { all.append(.readable(ConnectionID(rawValue: number), hungUp: false)) }
    }
    return all.reversed()
  }

  public mutating func assign(_ id: ConnectionID) {
    waiting.removeFirst()
    ports[id.rawValue] = Port()
    accepted.append(id)
  }

  public mutating func read(_ id: ConnectionID, into space: UnsafeMutableRawBufferPointer) -> ReadOutcome {
    guard let port = ports[id.rawValue], port.isOpen else { return .failed }
    let count = min(space.count, port.input.count - port.consumed)
    if count == 0 { return port.hasEnded ? .end : .wouldBlock }
    port.input.withUnsafeBytes { bytes in
      space.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[port.consumed..<(port.consumed + count)]))
    }
    ports[id.rawValue]?.consumed += count
    if port.consumed + count == port.input.count {
      ports[id.rawValue]?.input.removeAll(keepingCapacity: true)
      ports[id.rawValue]?.consumed = 0
    }
    return .bytes(count)
  }

  public mutating func write(
    _ id: ConnectionID, _ slices: UnsafeBufferPointer<UnsafeRawBufferPointer>
  ) -> WriteOutcome {
    guard let port = ports[id.rawValue], port.isOpen else { return .failed }
    var written = 0
    for slice in slices {
      let count = min(slice.count, port.room.map { $0 - written } ?? slice.count)
      ports[id.rawValue]?.received.append(contentsOf: slice[..<count])
      written += count
    }
    ports[id.rawValue]?.room? -= written
    return written == 0 ? .wouldBlock : .bytes(written)
  }

  public mutating func watch(_ id: ConnectionID, reading: Bool, writing: Bool) {
    ports[id.rawValue]?.isReading = reading
    ports[id.rawValue]?.isWriting = writing
  }

  public mutating func close(_ id: ConnectionID) {
    ports[id.rawValue]?.isOpen = false
    lost.removeAll { $0 == id }
    closed.append(id)
  }
}
