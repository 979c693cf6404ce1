import FeedChange
import FeedJSON

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

extension Limits {
  /// Appends `"maxFrame":…,…`, all limits by name.
  public func appendMembers(to out: inout ByteBuffer) {
    for (place, limit) in Limits.all.enumerated() {
      if place > 0 { out.append(UInt8(ascii: ",")) }
      out.appendJSONString(limit.name)
      out.append(UInt8(ascii: ":"))
      out.append(integer: self[keyPath: limit.keyPath])
    }
  }

  /// Takes over the limits that an object names; others stay as they are.
  ///
  /// - Throws: `invalidParams` for a name that is no limit or a value out of its range.
  public mutating func take(_ object: JSONView) throws(FeedError) {
    for member in object.members {
      let name = member.key.string(atMost: 64) ?? ""
      guard let limit = Limits.all.first(where: { $0.name == name }) else {
        throw .invalidParams(member: "limits.\(name)", reason: "is no limit; see feedd --help")
      }
      guard let value = member.value.int, limit.range.contains(value) else {
        throw .invalidParams(
          member: "limits.\(name)",
          reason: "must be a whole number from \(limit.range.lowerBound) to \(limit.range.upperBound)")
      }
      self[keyPath: limit.keyPath] = value
    }
  }
}
