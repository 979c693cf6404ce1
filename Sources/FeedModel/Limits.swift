/// Every bound the daemon keeps, with its default. Each has a name, a flag and a typed error (-32007 `data.limit`).
public struct Limits: Sendable, Equatable {
  /// Bytes of JSON in one frame.
  public var maxFrame = 16 << 20
  /// Arrays and objects inside one another in a frame.
  public var maxDepth = 512
  /// Connections in all.
  public var maxConnections = 1024
  /// Connections of one user.
  public var maxConnectionsPerUser = 512
  /// Connections kept for root and the daemon's own user once `maxConnections` is reached.
  public var reservedConnections = 4
  /// Feeds that are defined.
  public var maxFeeds = 10_000
  /// Bins of one collection.
  public var maxBins = 256
  /// Sections that one feed shows.
  public var maxSections = 65_536
  /// Times that one feed may be shown by another, through different children.
  public var maxRepeats = 64
  /// Elements of one feed.
  public var maxElements = 10_000_000
  /// Bytes of one element's compact JSON.
  public var maxElementBytes = 8 << 20
  /// Bytes of the elements of one feed.
  public var maxBytes = 4 << 30
  /// Watches of one connection.
  public var maxWatches = 1024
  /// Bytes waiting for one connection beyond which its deltas are held back and its requests are not read.
  public var maxQueue = 1 << 20
  /// Bytes waiting for all connections of one user, and of frames that they have begun, beyond which the one with the most
  /// is closed.
  public var maxQueuePerUser = 256 << 20
  /// Bytes of recent changes kept for one feed, for watchers that fell behind or come back.
  public var historyBytes = 16 << 20
  /// Bytes of recent changes kept for all feeds together; beyond them every feed's share shrinks alike.
  public var maxHistoryBytes = 256 << 20
  /// Seconds that recent changes are kept.
  public var historySeconds = 3600
  /// Seconds that a half frame may make no progress.
  public var frameTimeout = 30
  /// Seconds of quiet after which a watch is told how far the daemon is.
  public var bookmarkInterval = 30
  /// Bytes of elements that one `query` may join into one document.
  public var maxQueryBytes = 16 << 20
  /// Steps, about one a value looked at, that one `query` may take over a joined document or over one element,
  /// and all filters of a collection together over one element.
  public var maxQuerySteps = 2_000_000

  public init() {}

  /// Bytes that one element may have so that a frame that carries it alone, with all that stands around it, stays within
  /// `maxFrame`.
  public var elementRoom: Int {
    min(maxElementBytes, maxFrame - min(maxFrame / 2, 128 << 10))
  }
}
