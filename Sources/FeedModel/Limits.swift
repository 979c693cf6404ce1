import FeedChange
import FeedJSON
import FeedQuery

/// The limits that the daemon enforces, with their defaults (Protocol/README.md, "Limits").
///
/// Each limit has a name, a flag of `feedd` and an entry in `Limits.all`, which says what it limits and in which unit.
public struct Limits: Sendable, Equatable {
  public var maxFrame = 16 << 20
  public var maxDepth = 512
  public var maxConnections = 1024
  public var maxConnectionsPerUser = 512
  /// Connections reserved for root and the daemon's own user after `maxConnections` is reached.
  public var reservedConnections = 4
  public var maxFeeds = 20_000
  public var maxFeedsPerUser = 10_000
  public var maxBins = 256
  public var maxSections = 65_536
  public var maxRepeats = 64
  public var maxLevels = 512
  public var maxElements = 10_000_000
  public var maxDefinitionBytes = 1 << 20
  /// Entries of each list of a definition: `children`, `contents`, `pattern`, `header`, `repeatables`, `fixed`.
  public var maxDefinitionEntries = 10_000
  public var maxDefinitionBytesPerUser = 256 << 20
  public var maxTotalDefinitionBytes = 512 << 20
  public var maxElementBytes = 8 << 20
  public var maxBytes = 4 << 30
  public var maxElementsPerUser = 20_000_000
  /// Elements of all feeds, managed feeds excepted.
  public var maxTotalElements = 50_000_000
  public var maxBytesPerUser = 8 << 30
  /// Bytes of the elements of all feeds, managed feeds excepted.
  public var maxTotalBytes = 16 << 30
  public var maxWatches = 1024
  public var maxWatchesPerUser = 32_768
  /// Bytes of queued output of one connection. Above it, deltas are deferred and requests are not read.
  public var maxQueue = 1 << 20
  /// Bytes queued to and from all connections of one user. Above it, the connection with the most is closed.
  public var maxQueuePerUser = 256 << 20
  /// Bytes of the recorded changes of one feed, for watches that fall behind or resume.
  public var historyBytes = 16 << 20
  /// Bytes of the recorded changes of all feeds. Above it, the share of every feed shrinks in proportion.
  public var maxHistoryBytes = 256 << 20
  public var historySeconds = 3600
  public var frameTimeout = 30
  public var bookmarkInterval = 30
  public var maxQueryBytes = 16 << 20
  /// Steps of one `query` over a joined document or over one element, and of all filters of a collection together over
  /// one element. A step is about one visited value.
  public var maxQuerySteps = 2_000_000
  /// Steps of all filters over all elements of one request that changes feeds. Replay counts the same steps.
  public var maxRequestSteps = 20_000_000
  /// Steps of the filter of one view over one element. An element that takes more is not shown.
  public var maxViewSteps = 50_000
  /// Steps that all feeds that show one feed may take for the change of one row.
  public var maxDerivedSteps = 5_000_000
  /// Rows that one request may change, counted again for each feed that derives a change of its own from them.
  public var maxRequestRows = 1_000_000
  public var maxSelected = 100_000
  public var maxSelectedPerUser = 500_000
  public var maxTotalSelected = 1_000_000
  public var maxViewRowsPerUser = 10_000_000
  public var maxTotalViewRows = 40_000_000
  public var maxPathBytes = 64 << 10
  public var maxFilterBytes = 1 << 20
  /// The ranges of the character classes in the filters of requests. Not set by anybody; see ``applied(by:)``.
  public internal(set) var filterRanges = QueryLimits.regexpRanges

  /// The largest allowed `maxDepth`. No element is deeper, under whatever limits it was stored, so what reads stored elements
  /// accepts this depth: `maxDepth` limits requests only.
  public static let largestDepth = 10_000

  public init() {}

  /// The maximum size of an element in bytes. A frame with one such element fits in `maxFrame`.
  public var elementRoom: Int { min(maxElementBytes, maxFrame - min(maxFrame / 2, 128 << 10)) }

  /// The maximum size of the sort keys of an element: as for an element, and enough for short values in all terms.
  var maxKeyBytes: Int { max(maxElementBytes, 1 << 20) }
}

/// The description of a limit: its name in errors, its flag and its help text.
public struct LimitDescription: Sendable {
  public let name: String
  public let help: String
  public let range: ClosedRange<Int>
  public let keyPath: WritableKeyPath<Limits, Int> & Sendable

  fileprivate init(
    _ name: String, _ help: String, _ range: ClosedRange<Int>, _ keyPath: WritableKeyPath<Limits, Int> & Sendable
  ) {
    (self.name, self.help, self.range, self.keyPath) = (name, help, range, keyPath)
  }

  /// The flag of `feedd`, without the dashes: the words of the name.
  public var flag: String {
    name.reduce(into: "") { flag, letter in flag += letter.isUppercase ? "-" + letter.lowercased() : String(letter) }
  }
}

extension Limits {
  /// All limits, in the order of `feedd --help`.
  public static let all: [LimitDescription] = [
    .init("maxFrame", "bytes of JSON in one frame", 4096...(1 << 30), \.maxFrame),
    .init("maxDepth", "levels of nested arrays and objects", 8...Limits.largestDepth, \.maxDepth),
    .init("maxConnections", "connections in all", 1...1_000_000, \.maxConnections),
    .init("maxConnectionsPerUser", "connections of one user", 1...1_000_000, \.maxConnectionsPerUser),
    .init(
      "reservedConnections", "connections kept for root and the daemon's own user", 0...1000, \.reservedConnections),
    .init("maxFeeds", "defined feeds", 1...1_000_000, \.maxFeeds),
    .init("maxFeedsPerUser", "feeds that one user defined", 1...1_000_000, \.maxFeedsPerUser),
    .init("maxBins", "bins of one collection, sections of one managed feed", 1...65_536, \.maxBins),
    .init("maxSections", "sections of one feed", 1...10_000_000, \.maxSections),
    .init("maxRepeats", "times that one feed contains another, through different children", 1...65_536, \.maxRepeats),
    .init("maxLevels", "levels of feeds that show feeds", 1...1_000_000, \.maxLevels),
    .init("maxElements", "elements of one feed", 1...4_000_000_000, \.maxElements),
    .init("maxDefinitionBytes", "bytes of one definition", 1024...(1 << 30), \.maxDefinitionBytes),
    .init("maxDefinitionEntries", "entries of one list of a definition", 1...10_000_000, \.maxDefinitionEntries),
    .init(
      "maxDefinitionBytesPerUser", "bytes of the definitions of all feeds that one user defined", 1024...(1 << 40),
      \.maxDefinitionBytesPerUser),
    .init(
      "maxTotalDefinitionBytes", "bytes of the definitions of all feeds", 1024...(1 << 40), \.maxTotalDefinitionBytes),
    .init("maxElementBytes", "bytes of one element", 2...(1 << 30), \.maxElementBytes),
    .init("maxBytes", "bytes of one feed's elements", 1024...(1 << 46), \.maxBytes),
    .init(
      "maxElementsPerUser", "elements of all feeds that one user defined", 1...1_000_000_000_000, \.maxElementsPerUser),
    .init("maxTotalElements", "elements of all feeds", 1...1_000_000_000_000, \.maxTotalElements),
    .init(
      "maxBytesPerUser", "bytes of the elements of all feeds that one user defined", 1024...(1 << 50),
      \.maxBytesPerUser),
    .init("maxTotalBytes", "bytes of the elements of all feeds", 1024...(1 << 50), \.maxTotalBytes),
    .init("maxWatches", "watches of one connection", 1...1_000_000, \.maxWatches),
    .init("maxWatchesPerUser", "watches of all connections of one user", 1...1_000_000_000, \.maxWatchesPerUser),
    .init("maxQueue", "bytes queued for one connection before its deltas are held back", 4096...(1 << 32), \.maxQueue),
    .init(
      "maxQueuePerUser", "bytes queued to and from one user before deltas are discarded, then connections closed",
      4096...(1 << 36), \.maxQueuePerUser),
    .init("historyBytes", "bytes of recent changes kept for one feed", 0...(1 << 34), \.historyBytes),
    .init("maxHistoryBytes", "bytes of recent changes kept for all feeds", 0...(1 << 36), \.maxHistoryBytes),
    .init("historySeconds", "seconds that recent changes are kept", 1...31_536_000, \.historySeconds),
    .init("frameTimeout", "seconds without progress before an incomplete frame times out", 1...86_400, \.frameTimeout),
    .init("bookmarkInterval", "seconds of quiet after which a watch gets a bookmark", 1...86_400, \.bookmarkInterval),
    .init(
      "maxQuerySteps", "steps of one query over one document, or of all filters over one element", 1000...1_000_000_000,
      \.maxQuerySteps),
    .init(
      "maxRequestSteps", "steps of all filters over all elements of one request", 1000...1_000_000_000_000,
      \.maxRequestSteps),
    .init("maxViewSteps", "steps of the filter of one view over one element", 1000...1_000_000_000, \.maxViewSteps),
    .init(
      "maxDerivedSteps", "steps that all feeds that show one feed may take for one changed row",
      1000...1_000_000_000_000, \.maxDerivedSteps),
    .init(
      "maxRequestRows", "rows that one request changes, counted again for each feed that derives its own change",
      1...1_000_000_000_000, \.maxRequestRows),
    .init("maxSelected", "selected rows of one feed", 1...4_000_000_000, \.maxSelected),
    .init(
      "maxSelectedPerUser", "selected rows of all feeds that one user defined over others", 1...1_000_000_000_000,
      \.maxSelectedPerUser),
    .init("maxTotalSelected", "selected rows of all feeds that show others", 1...1_000_000_000_000, \.maxTotalSelected),
    .init(
      "maxViewRowsPerUser",
      "rows that the views of one user keep: those of their sources, for views with a filter or a sort",
      1...1_000_000_000_000, \.maxViewRowsPerUser),
    .init("maxTotalViewRows", "rows that all views keep", 1...1_000_000_000_000, \.maxTotalViewRows),
    .init("maxPathBytes", "bytes of the path of a query or of a filter where", 16...(1 << 30), \.maxPathBytes),
    .init(
      "maxFilterBytes", "bytes that the filters of one definition, or one query, take in memory", 16...(1 << 40),
      \.maxFilterBytes),
    .init("maxQueryBytes", "bytes of elements that one query may join", 1024...(1 << 34), \.maxQueryBytes),
  ]

  /// Whether the steps of a request count the filters of views, conditions of `delete`, comparisons and sort terms. False for
  /// requests of a journal from before `maxRequestRows` existed, which did not count them.
  var countsAllWork: Bool { maxRequestRows < .max }

  /// The limits by which the definitions of a configuration are read. The ranges of character classes are bounded for clients only,
  /// because other clients would wait: a file that was in use before they were bounded stays valid.
  public var ofConfiguration: Limits {
    var limits = self
    limits.filterRanges = .max
    return limits
  }

  /// The limits by which a stored definition is read again: it was accepted, maybe under others.
  public var ofStoredDefinitions: Limits {
    var limits = ofConfiguration
    limits.maxBins = .max
    // The largest value would change what definitions count for.
    if countsMemory { limits.maxFilterBytes = .max - 1 }
    return limits
  }

  /// For each limit the lower value.
  public func lowered(to other: Limits) -> Limits {
    var limits = self
    for path in Limits.all.map(\.keyPath) { limits[keyPath: path] = min(self[keyPath: path], other[keyPath: path]) }
    return limits
  }

  /// Whether definitions count with their memory. False for requests from before `maxFilterBytes` existed.
  var countsMemory: Bool { maxFilterBytes < .max }

  /// The limits as they apply to a request that is executed by some rules (``ExecutionRules``).
  public func applied(by rules: Int) -> Limits {
    var limits = self
    if rules < 6 { limits.filterRanges = .max }
    return limits
  }

  /// The error for what exceeds a limit.
  ///
  ///     throw limits.exceeded(\.maxFeeds, "undefine feeds that are not needed")
  /// - Parameter reason: what is too much, and what to do about it besides starting feedd with a larger limit.
  public func exceeded(_ limit: WritableKeyPath<Limits, Int>, _ reason: String) -> FeedError {
    Self.exceeded(limit, of: self[keyPath: limit], reason)
  }

  /// The error for what exceeds a limit, if only its value is known.
  public static func exceeded(_ limit: WritableKeyPath<Limits, Int>, of value: Int, _ reason: String) -> FeedError {
    let description = all.first { $0.keyPath == limit }
    return .limitExceeded(
      limit: description?.name ?? "", value: value,
      reason: "\(reason), or start feedd with a larger --\(description?.flag ?? "")")
  }

  public func tooLargeFilter(_ what: String) -> FeedError {
    exceeded(
      \.maxFilterBytes, "\(what) more memory when compiled; shorten expressions, repeat less in regular expressions")
  }

  /// The limits that decide over requests of the journal and are younger than the first journals.
  public static let added: [WritableKeyPath<Limits, Int> & Sendable] = [
    \.maxRequestSteps, \.maxLevels, \.maxFeedsPerUser, \.maxDefinitionBytesPerUser, \.maxTotalDefinitionBytes,
    \.maxElementsPerUser, \.maxTotalElements, \.maxBytesPerUser, \.maxTotalBytes, \.maxRequestRows, \.maxPathBytes,
    \.maxViewSteps, \.maxDerivedSteps, \.maxSelected, \.maxSelectedPerUser, \.maxTotalSelected,
    \.maxViewRowsPerUser, \.maxTotalViewRows, \.maxFilterBytes,
  ]

  /// Appends limits as members without braces: `"maxFrame":…,…`.
  /// - Parameter names: those to append; nil for all.
  public func appendMembers(_ names: Set<String>? = nil, to out: inout ByteBuffer) {
    for (place, limit) in Limits.all.filter({ names?.contains($0.name) ?? true }).enumerated() {
      if place > 0 { out.append(UInt8(ascii: ",")) }
      out.appendJSONString(limit.name)
      out.append(UInt8(ascii: ":"))
      out.append(integer: self[keyPath: limit.keyPath])
    }
  }

  /// Sets the limits that are members of `object`. Other limits are unchanged.
  /// - Throws: `invalidParams` for an unknown name or a value out of range.
  public mutating func set(membersOf object: JSONView) throws(FeedError) {
    for member in object.members {
      let name = member.key.string(atMost: 64) ?? ""
      guard let limit = Limits.all.first(where: { $0.name == name }) else {
        throw .invalidParams(member: "limits.\(name)", reason: "is not a limit; see feedd --help")
      }
      guard let value = member.value.int, limit.range.contains(value) else {
        throw .invalidParams(
          member: "limits.\(name)",
          reason: "must be an integer from \(grouped(limit.range.lowerBound)) to \(grouped(limit.range.upperBound))")
      }
      self[keyPath: limit.keyPath] = value
    }
  }
}
