import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Checks of a new request when it arrives. Replay does not repeat them: stored requests passed them, or were accepted
/// by a version without them.
enum Admission {
  /// Members of a definition whose entries are counted.
  private static let lists: [StaticString] = ["children", "contents", "pattern", "header", "repeatables", "fixed"]

  private static let requestMembers = ["replace", "animation", "if"]
  /// Members of the status in each result of `describe`. `define` accepts such a result unchanged, but not single members
  /// of it: a misspelt `section` or a misplaced `count` must not be ignored.
  private static let status: [StaticString] = ["sections", "counts", "count", "revision", "watchers"]
  /// Members of the status in some of these results.
  private static let rareStatus = ["source", "shows", "group", "log"]

  /// The most members of a request, of an operation, and of its parameters: all are looked at for each one that is read.
  private static let mostMembers = 1000

  /// Throws if a request or an operation, or its parameters, have too many members. O(1).
  static func checkMembers(
    of request: JSONView, _ params: JSONView?, noun: StaticString = "a request"
  ) throws(FeedError) {
    if request.count > mostMembers && request.kind == .object {
      throw .invalidRequest(reason: "\(noun) \(excess(of: request))")
    }
    guard let params, params.count > mostMembers, params.kind == .object else { return }
    throw .invalidParams(member: "params", reason: excess(of: params))
  }

  private static func excess(of object: JSONView) -> String {
    "has \(grouped(object.count)) members and may have \(grouped(mostMembers))"
  }

  /// Throws if a definition in a request is too large or has unknown members, or if a child has a name that no feed can have.
  /// Lengths are checked before anything is decoded.
  /// - Parameter progress: where the check goes on; notes whether there is a definition.
  /// - Returns: whether the check is over; if not, it goes on in another turn.
  /// - Throws: `limitExceeded`, `unknownFeed`, or `invalidParams` with the path of the member; for an operation of a transaction,
  ///   with its index.
  static func check(
    _ method: Method, _ params: JSONView?, _ limits: Limits, _ progress: inout RequestCheck
  ) throws(FeedError) -> Bool {
    switch method {
    case .define:
      progress.hasDefinitions = true
      try checkDefinition(params, limits)
      return true
    case .activate, .insertChild, .removeChild:
      try checkChild(params)
      return true
    case .transaction:
      guard let operations = params?.member("ops"), operations.kind == .array else { return true }
      var checked = progress.definitions
      defer { progress.definitions = checked }
      return try checked.advance(over: operations) { place, operation throws(FeedError) in
        try checkOperation(operation, at: place, limits, &progress)
      }
    default: return true
    }
  }

  private static func checkOperation(
    _ operation: JSONView, at place: Int, _ limits: Limits, _ progress: inout RequestCheck
  ) throws(FeedError) -> Bool {
    var params: JSONView?
    do throws(FeedError) {
      try checkMembers(of: operation, nil, noun: "an operation")
      params = operation.member("params")
      try checkMembers(of: operation, params)
      let members = operation.count &+ (params?.count ?? 0)
      guard let method = operation.member("method").flatMap({ Method($0) }), method.isCheckedOnArrival else {
        return progress.spend(members: members)
      }
      guard progress.spend(members: members, definition: method == .define ? params : nil) else { return false }
      if method == .define {
        progress.hasDefinitions = true
        try checkDefinition(params, limits)
      } else {
        try checkChild(params)
      }
    } catch {
      throw error.ofOperation(at: place, params)
    }
    return true
  }

  /// Throws if a child has a name that no feed can have. `String` takes the Kelvin sign for the letter K, and replay executes
  /// requests that earlier versions accepted for that.
  private static func checkChild(_ params: JSONView?) throws(FeedError) {
    for member: StaticString in ["child", "before", "after"] {
      guard let name = params?.member(member)?.truncatedName, !FeedName.isValidReference(name) else { continue }
      throw .unknownFeed(name)
    }
  }

  private static func checkDefinition(_ params: JSONView?, _ limits: Limits) throws(FeedError) {
    guard let params else { return }
    try checkSize(params, limits)
    let hasStatus = status.allSatisfy { params.member($0) != nil }
    let others = requestMembers + (hasStatus ? status.map { "\($0)" } + rareStatus : [])
    do throws(KnownMembers.Refusal) {
      try KnownMembers.check(definition: params, others: others, repeats: .allowed)
    } catch {
      throw .invalidParams(member: error.path, reason: (error.advice == nil ? "" : "is an ") + error.reason)
    }
  }

  private static func checkSize(_ definition: JSONView, _ limits: Limits) throws(FeedError) {
    let size = definition.text.count
    if size > limits.maxDefinitionBytes {
      throw limits.exceeded(\.maxDefinitionBytes, "the definition has \(counted(size, "byte")); shorten it")
    }
    try checkSlots(definition, limits)
    for name in lists {
      guard let list = definition.member(name), list.kind == .array || list.kind == .object,
        list.count > limits.maxDefinitionEntries
      else { continue }
      throw limits.exceeded(\.maxDefinitionEntries, "\"\(name)\" has \(grouped(list.count)) entries; give fewer")
    }
  }

  /// Times that `maxDefinitionEntries` bounds the entries of a pattern times the contents.
  private static let slotsFactor = 100

  /// Refuses slots whose layout would take long: it is made after each change of the contents, in time proportional to the
  /// entries of pattern and header times the contents.
  private static func checkSlots(_ definition: JSONView, _ limits: Limits) throws(FeedError) {
    guard let contents = definition.member("contents"), contents.kind == .object else { return }
    let entries = (definition.member("pattern")?.count ?? 0) + (definition.member("header")?.count ?? 0)
    let (work, overflows) = entries.multipliedReportingOverflow(by: contents.count)
    let most = limits.maxDefinitionEntries.multipliedReportingOverflow(by: slotsFactor)
    guard overflows || !most.overflow && work > most.partialValue else { return }
    throw limits.exceeded(
      \.maxDefinitionEntries,
      "\"pattern\" and \"header\" have \(grouped(entries)) entries for \(grouped(contents.count)) contents; the "
        + "product may be at most \(slotsFactor) times the limit; give fewer")
  }
}

/// How far a request was checked when it arrived. The check of a long one takes several turns.
///
/// A check that throws does so again where it goes on.
struct RequestCheck {
  /// The units that one turn checks of a long request. One takes about half a microsecond.
  static let unitsPerTurn = 4096
  /// The units of a short part, such as an operation.
  static let unitsOfPart = 2
  /// The bytes of a definition that take a unit.
  private static let bytesOfAUnit = 64
  /// The members that take a unit: they are searched for several names.
  private static let membersOfAUnit = 8

  /// The units left in this turn.
  private(set) var left = Int.max
  /// The operations whose definitions were checked, and whether there are any.
  var definitions = ListProgress()
  var hasDefinitions = false
  /// What the access rules allow: the conditions and the operations of the request, and of the operation that is next the
  /// conditions and the feeds that it would make another feed show.
  var conditions = ListProgress()
  var operations = ListProgress()
  var conditionsOfOperation = ListProgress()
  var shown = 0
  /// Whether the access rules allow the request.
  var isAllowed = false

  /// Begins a part of the check.
  mutating func beginTurn() { left = Self.unitsPerTurn }

  /// Lets the rest be checked at once.
  mutating func beginRest() { left = .max }

  /// Counts a short part of the work, with the members of an operation that are searched, or a definition. Returns false if no more
  /// is to be done in this turn.
  mutating func spend(members: Int = 0, definition: JSONView? = nil) -> Bool {
    if left <= 0 { return false }
    left -= Self.unitsOfPart &+ members / Self.membersOfAUnit &+ (definition?.text.count ?? 0) / Self.bytesOfAUnit
    return true
  }
}

/// The elements of an array that were visited, so that the rest can be visited later.
struct ListProgress {
  private(set) var count = 0
  private var place = JSONView.Elements.start

  /// Visits the elements that were not visited.
  /// - Parameter visit: returns whether it is done with an element. If not, the element is visited again.
  /// - Returns: whether all elements were visited.
  mutating func advance(
    over list: JSONView, _ visit: (_ index: Int, _ element: JSONView) throws(FeedError) -> Bool
  ) throws(FeedError) -> Bool {
    var elements = list.elements(from: place)
    while let element = elements.next() {
      guard try visit(count, element) else { return false }
      count += 1
      place = elements.place(in: list)
    }
    return true
  }
}
