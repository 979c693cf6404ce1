import FeedJSON
import FeedModel
import FeedWire

/// What a request is expected to cost, before it is executed: whether it may take several turns, for how many elements, and
/// how much of the work of a batch.
extension Engine {
  // MARK: Whether a request may take several turns

  /// The bytes of a request that may take longer than a slice.
  private static let longRequest = 16 << 10
  /// The bytes of one element, times the bins and views that look at its members, that take about a millisecond.
  private static let longUpdateOfOne = 1 << 20
  /// The bytes of an element that many filters may judge for longer than a slice.
  private static let longUpdate = 4 << 10
  /// The bytes of an element that a short patch may take longer than a slice to merge into.
  private static let longElement = 256 << 10
  /// The bytes of a transaction whose operations are looked at. A longer one names many elements.
  private static let shortTransaction = 64 << 10
  /// The bytes of a request that may name more than a hundred elements, and of an update with so many.
  private static let manyNames = 256
  private static let manyElements = 2 << 10
  /// The steps of bins and of feeds above that take about a millisecond.
  private static let longSteps = 1_000_000
  /// The rows of a feed that a request may read or replace quickly.
  private static let manyRows = 4096

  /// Whether a request that changes feeds may take longer than a slice. If not, it is executed at once, which costs less.
  /// - Parameter parameters: not looked at for a short update.
  func mayBeLong(_ method: Method, _ parameters: @autoclosure () -> Parameters, bytes: Int) -> Bool {
    guard longWork.isSliced, method.isLogged else { return false }
    if longWork.isEager { return true }
    if hasSlowFilters(parameters(), bytes: bytes) || isFollowedForLong(method, parameters(), bytes: bytes) {
      return true
    }
    if method == .update { return mayBeLongUpdate(parameters(), bytes: bytes) }
    if bytes >= Self.longRequest { return true }
    switch method {
    case .patch:
      if parameters().member("where") != nil { return true }
      guard let feed = feed(parameters()), let longest = feed.kind.rows?.longestElement else { return false }
      return longest >= Self.longElement || feed.hasSlowFilters(for: bytes &+ longest)
        || bytes >= Self.longUpdate && bytes &* feed.sectionCount >= Self.longRequest
    case .set: return feed(parameters())?.kind.rows?.elementCount ?? 0 >= Self.manyRows
    case .delete, .move: return parameters().member("where") != nil
    case .select: return feed(parameters()).map { $0.kind.rows == nil && $0.count >= Self.manyRows } ?? false
    case .define, .undefine, .activate, .insertChild, .removeChild: return true
    case .transaction: return parameters().operations.contains { mayBeLong($0.method, $0.parameters, bytes: $0.bytes) }
    default: return false
    }
  }

  /// Whether an update may take longer than a slice, apart from filters that may do so.
  private func mayBeLongUpdate(_ parameters: @autoclosure () -> Parameters, bytes: Int) -> Bool {
    let parameters = parameters()
    if parameters.member("where") != nil { return true }
    // Most updates are shorter: for them the feed is not looked up.
    guard bytes >= Self.longUpdate, let feed = feed(parameters) else { return false }
    // A single element is scanned already. What is left for each bin and view is to look at its members.
    if parameters.member("element") != nil { return bytes &* catalog.readers(of: feed) >= Self.longUpdateOfOne }
    return bytes &* feed.sectionCount >= Self.longRequest
  }

  /// Whether filters of views or of bins may take long over the elements of a request. O(1) while no definition has such
  /// filters.
  private func hasSlowFilters(_ parameters: @autoclosure () -> Parameters, bytes: Int) -> Bool {
    guard catalog.mayHaveSlowViews || catalog.mayHaveSlowFilters(for: bytes) else { return false }
    guard let feed = feed(parameters()) else { return false }
    return feed.hasSlowFilters(for: bytes) || catalog.hasSlowViews(above: feed)
  }

  /// Whether bins and feeds above may take longer than a slice to follow the elements that a request names. O(1) for a short request
  /// while no feed is shown often, otherwise O(ops).
  private func isFollowedForLong(_ method: Method, _ parameters: @autoclosure () -> Parameters, bytes: Int) -> Bool {
    let isLonger = bytes >= (method == .update ? Self.manyElements : Self.manyNames)
    guard isLonger || catalog.hasFeedsShownOften, method.isLogged else { return false }
    if method == .transaction && bytes >= Self.shortTransaction { return false }
    return stepsOfElements(method, parameters()) >= Self.longSteps
  }

  /// The steps of bins and of feeds above for the elements that a request, or its operations, name.
  private func stepsOfElements(_ method: Method, _ parameters: Parameters) -> Int {
    if method == .transaction {
      return parameters.operations.reduce(0) { sum, operation in
        operation.method == .transaction ? sum : sum &+ stepsOfElements(operation.method, operation.parameters)
      }
    }
    let list = parameters.member("elements") ?? parameters.member("ids")
    guard list != nil || catalog.hasFeedsShownOften, let feed = feed(parameters) else { return 0 }
    return max(1, list?.count ?? 1) &* catalog.stepsOfElement(of: feed)
  }

  /// Whether a request of the daemon may take longer than a slice.
  func mayBeLong(_ request: InternalRequest) -> Bool {
    switch request {
    case .configure, .rows: true
    case .evict(let name): mayEvictionBeLong(after: name)
    case .owner: false
    }
  }

  // MARK: Whether an answer may take several turns

  /// The most rows of an answer to `range` that is written at once, behind a change that may make elements longer.
  private static let rowsAtOnce = 64

  /// Whether the answer to a request whose method costs `long` may take several turns. If not, later requests of the connection need
  /// not wait: a client that sends changes and reads few rows after each would have one change in each batch, and one sync of the disk.
  func mayAnswerInParts(_ method: Method, _ parameters: Parameters) -> Bool {
    guard method == .range, !longWork.isExclusive, let count = parameters.member("count")?.int,
      (0...Self.rowsAtOnce).contains(count), let longest = feed(parameters)?.kind.rows?.longestElement
    else { return true }
    return longest &* count > RowsJob.fewBytes
  }

  // MARK: For how many elements

  /// The bytes of a short element, with its part of the request.
  private static let bytesOfAnElement = 64
  /// The bytes of a request whose elements are counted. A longer one is long enough to make a copy.
  private static let countedRequest = 1 << 20
  /// The bytes that take as long as what each element takes apart from its bytes.
  private static let bytesOfAStep = 512

  /// The elements that a request is expected to take time for. Elements that it does not name, but judges or replaces, take a
  /// quarter of the time.
  func expectedSteps(of method: Method, _ parameters: Parameters, bytes: Int) -> Int {
    if method == .update, bytes <= Self.countedRequest, let elements = parameters.member("elements"),
      elements.kind == .array
    {
      return elements.count &+ bytes / Self.bytesOfAStep
    }
    return bytes / Self.bytesOfAnElement &+ elementsJudged(by: method, parameters, bytes: bytes) / 4
  }

  /// The elements that the operations of a short transaction judge or replace without naming them. What its other operations
  /// change in place is hidden for as long.
  private func elementsJudged(by method: Method, _ parameters: Parameters, bytes: Int) -> Int {
    guard method == .transaction, bytes < Self.shortTransaction else { return 0 }
    return parameters.operations.reduce(0) { sum, operation in
      switch operation.method {
      case .delete where operation.parameters.judgesAllElements, .set, .define:
        sum &+ (feed(operation.parameters)?.kind.rows?.elementCount ?? 0)
      default: sum
      }
    }
  }

  // MARK: The work in a batch

  /// The work of a request that changes a definition, besides that for rows.
  private static let definitionWork = 32
  /// The work of a request that may take long, if its rows are not counted.
  private static let slowWork = 2048

  /// An estimate of the work that a request adds to its batch, in units of about a microsecond.
  ///
  /// O(ops) for a short transaction, otherwise O(1). The operations of a long one are not looked at.
  func work(of method: Method, _ parameters: @autoclosure () -> Parameters, bytes: Int) -> Int {
    let work = WorkCost.answering(bytes: bytes)
    // Feeds that are half changed are not looked at.
    if longWork.isExclusive { return work &+ (Self.mayJudgeRows(method) ? Self.slowWork : 0) }
    if hasSlowFilters(parameters(), bytes: bytes) || isFollowedForLong(method, parameters(), bytes: bytes) {
      return work &+ Self.slowWork
    }
    switch method {
    case .set: return work &+ rows(parameters().member("feed"))
    case .delete: return parameters().judgesAllElements ? work &+ rows(parameters().member("feed")) : work
    case .define: return work &+ Self.definitionWork &+ judgedRows(parameters())
    case .undefine, .activate, .insertChild, .removeChild: return work &+ Self.definitionWork
    case .transaction where bytes >= Self.shortTransaction: return work &+ Self.slowWork
    case .transaction:
      return parameters().operations.reduce(work) { sum, operation in
        operation.method == .transaction ? sum : sum &+ self.work(of: operation.method, operation.parameters, bytes: 0)
      }
    default: return work
    }
  }

  /// The work of a read that looks at all histories or all connections, whatever its answer says of them; 0 for other reads. What
  /// `clients` writes counts in its parts.
  func workOfList(_ method: Method) -> Int {
    switch method {
    case .stats, .quotas: Self.gaugesWork &+ sessions.count &+ catalog.accounts.owners.count
    case .clients: sessions.count
    default: 0
    }
  }

  /// The work of reading the gauges of the process.
  private static let gaugesWork = 128

  private static func mayJudgeRows(_ method: Method) -> Bool {
    switch method {
    case .set, .delete, .define, .transaction: true
    default: false
    }
  }

  /// The rows that a definition judges, once for each four filters: those of the feed that it replaces, and of the source
  /// of a view.
  private func judgedRows(_ parameters: Parameters) -> Int {
    let filters = parameters.member("bins").map { $0.kind == .array ? $0.count : 0 } ?? 0
    return (rows(parameters.member("feed")) &+ rows(parameters.member("of"))) &* (1 &+ filters / 4)
  }

  /// The elements of a feed. Counting the rows of a feed that shows others may take long; for it the result is `slowWork`.
  private func rows(_ name: JSONView?) -> Int {
    guard let feed = feed(named: name) else { return 0 }
    return feed.kind.rows?.elementCount ?? Self.slowWork
  }

  // MARK: Feeds

  private func feed(_ parameters: Parameters) -> Feed? { feed(named: parameters.member("feed")) }

  /// The feed that a parameter names; nil if there is none.
  func feed(named name: JSONView?) -> Feed? { name?.truncatedName.flatMap { try? catalog.feed(named: $0) } }
}

extension Parameters {
  /// The operations of a transaction whose methods are known.
  var operations: some Sequence<(method: Method, parameters: Parameters, bytes: Int)> {
    let lists = CollectionOfOne(member("ops")).lazy.compactMap { $0?.kind == .array ? $0 : nil }
    return lists.flatMap(\.elements).compactMap { operation -> (method: Method, parameters: Parameters, bytes: Int)? in
      guard let method = operation.member("method").flatMap({ Method($0) }) else { return nil }
      return (method, Parameters(object: operation.member("params")), operation.text.count)
    }
  }
}
