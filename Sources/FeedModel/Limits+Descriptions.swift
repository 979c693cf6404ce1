/// One limit as people meet it: its name in errors, its flag, its meaning.
public struct LimitDescription: Sendable {
  public let name: String
  /// The flag of `feedd`, without the dashes.
  public let flag: String
  public let help: String
  /// What the value may be.
  public let range: ClosedRange<Int>
  public let keyPath: WritableKeyPath<Limits, Int> & Sendable
}

extension Limits {
  /// All limits, in the order in which `feedd --help` lists them.
  public static let all: [LimitDescription] = [
    .init(
      name: "maxFrame", flag: "max-frame", help: "bytes of JSON in one frame", range: 1024...(1 << 30),
      keyPath: \.maxFrame),
    .init(
      name: "maxDepth", flag: "max-depth", help: "arrays and objects inside one another", range: 8...10_000,
      keyPath: \.maxDepth),
    .init(
      name: "maxConnections", flag: "max-connections", help: "connections in all", range: 1...1_000_000,
      keyPath: \.maxConnections),
    .init(
      name: "maxConnectionsPerUser", flag: "max-connections-per-user", help: "connections of one user",
      range: 1...1_000_000, keyPath: \.maxConnectionsPerUser),
    .init(
      name: "reservedConnections", flag: "reserved-connections",
      help: "connections kept for root and the daemon's own user", range: 0...1000, keyPath: \.reservedConnections),
    .init(
      name: "maxFeeds", flag: "max-feeds", help: "feeds that are defined", range: 1...1_000_000, keyPath: \.maxFeeds),
    .init(
      name: "maxBins", flag: "max-bins", help: "bins of one collection, sections of one managed feed",
      range: 1...65_536, keyPath: \.maxBins),
    .init(
      name: "maxSections", flag: "max-sections", help: "sections that one feed shows", range: 1...10_000_000,
      keyPath: \.maxSections),
    .init(
      name: "maxRepeats", flag: "max-repeats", help: "times that one feed shows another, through different children",
      range: 1...65_536, keyPath: \.maxRepeats),
    .init(
      name: "maxElements", flag: "max-elements", help: "elements of one feed", range: 1...4_000_000_000,
      keyPath: \.maxElements),
    .init(
      name: "maxElementBytes", flag: "max-element-bytes", help: "bytes of one element", range: 2...(1 << 30),
      keyPath: \.maxElementBytes),
    .init(
      name: "maxBytes", flag: "max-bytes", help: "bytes of one feed's elements", range: 1024...(1 << 46),
      keyPath: \.maxBytes),
    .init(
      name: "maxWatches", flag: "max-watches", help: "watches of one connection", range: 1...1_000_000,
      keyPath: \.maxWatches),
    .init(
      name: "maxQueue", flag: "max-queue", help: "bytes waiting for one connection before its deltas are held back",
      range: 4096...(1 << 32), keyPath: \.maxQueue),
    .init(
      name: "maxQueuePerUser", flag: "max-queue-per-user",
      help: "bytes waiting for and from one user before its largest connection is closed", range: 4096...(1 << 36),
      keyPath: \.maxQueuePerUser),
    .init(
      name: "historyBytes", flag: "history-bytes", help: "bytes of recent changes kept for one feed",
      range: 0...(1 << 34), keyPath: \.historyBytes),
    .init(
      name: "maxHistoryBytes", flag: "max-history-bytes", help: "bytes of recent changes kept for all feeds",
      range: 0...(1 << 36), keyPath: \.maxHistoryBytes),
    .init(
      name: "historySeconds", flag: "history-seconds", help: "seconds that recent changes are kept",
      range: 1...31_536_000, keyPath: \.historySeconds),
    .init(
      name: "frameTimeout", flag: "frame-timeout", help: "seconds that a half frame may make no progress",
      range: 1...86_400, keyPath: \.frameTimeout),
    .init(
      name: "bookmarkInterval", flag: "bookmark-interval", help: "seconds of quiet after which a watch gets a bookmark",
      range: 1...86_400, keyPath: \.bookmarkInterval),
    .init(
      name: "maxQuerySteps", flag: "max-query-steps",
      help: "steps of one query over one document, or of all filters over one element",
      range: 1000...1_000_000_000, keyPath: \.maxQuerySteps),
    .init(
      name: "maxQueryBytes", flag: "max-query-bytes", help: "bytes of elements that one query may join",
      range: 1024...(1 << 34), keyPath: \.maxQueryBytes),
  ]
}
