import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Checks requests against the access rules in effect, and holds new rules until the end of the turn.
///
/// Requests admitted in a turn were checked by the rules in effect when the turn began, so new rules wait for its end.
/// Invariant: waiting rules differ from those in effect.
struct AccessControl {
  /// The rules in effect; nil if every client may do everything.
  private var rules: AccessRules? {
    didSet {
      isRestricted = rules != nil
      version &+= 1
    }
  }
  /// Incremented when other rules take effect.
  private(set) var version = 0
  /// Whether there are rules, so that requests must be checked. Stored, because each request asks for it.
  private(set) var isRestricted = false
  private var waiting: AccessRules??
  /// The uid of the daemon.
  private let owner: UInt32
  /// Cached results: whether feeds that show others may be read.
  private var found: [ReadKey: Bool] = [:]
  /// The version of the feeds' structure for which `found` is valid.
  private var foundStructure: UInt64 = 0
  /// The version of the feeds' structure for which the watches were last checked.
  private var structure: UInt64 = 0

  private struct ReadKey: Hashable {
    let peer: Peer
    let feed: FeedNumber
  }

  /// The maximum number of cached results.
  private static let mostFound = 10_000

  init(owner: UInt32) { self.owner = owner }

  /// Replaces the rules at the end of the turn, or immediately if no client is connected.
  mutating func replace(with new: AccessRules?, atOnce: Bool) {
    waiting = nil
    if atOnce {
      rules = new
      found.removeAll()
    }
    if new != rules { waiting = .some(new) }
    checkInvariants()
  }

  /// Whether the rules that are in effect or wait are these.
  func isSame(as other: AccessRules?) -> Bool { (waiting ?? rules) == other }

  /// Activates waiting rules. Returns whether there were any.
  mutating func applyWaiting() -> Bool {
    guard let new = waiting else { return false }
    waiting = nil
    rules = new
    found.removeAll()
    return true
  }

  /// Whether a peer is root or has the daemon's uid. No rule applies to such a peer.
  func isPrivileged(_ peer: Peer) -> Bool { peer.uid == 0 || peer.uid == owner }

  /// Refuses peers that are neither root nor the daemon's own user, and were not given the right `admin` by a rule.
  /// - Throws: `permissionDenied`.
  func checkAdministrator(_ peer: Peer) throws(FeedError) {
    if isPrivileged(peer) || rules?.allows(.admin, on: nil, to: peer) == true { return }
    throw .permissionDenied(
      reason:
        "uid \(peer.uid) is no administrator; ask as root or as the daemon's user, or let a rule in \"access\" of the "
        + "daemon's configuration allow \"admin\"")
  }

  /// Whether a peer may read a feed, whatever that shows.
  func mayRead(_ feed: String, _ peer: Peer) -> Bool {
    guard let rules, !isPrivileged(peer) else { return true }
    return rules.allows(.read, on: feed, to: peer)
  }

  /// Whether what feeds show may have changed since the watches were checked.
  func isBehind(_ version: UInt64) -> Bool { isRestricted && version != structure }

  /// Records the version of the feeds' structure. Returns whether read rights may differ since the last call.
  mutating func structureDidChange(to version: UInt64) -> Bool {
    guard rules != nil, version != structure else { return false }
    structure = version
    return true
  }

  /// The feeds that a peer may read with everything that they show. Valid until rules or feeds change.
  func readableFeeds(by peer: Peer) -> ReadableFeeds {
    guard let rules, !isPrivileged(peer) else { return ReadableFeeds(nil) }
    return ReadableFeeds { rules.allows(.read, on: $0.name, to: peer) }
  }

  /// Whether a peer may read a feed and all feeds that it shows. O(feeds shown), O(1) if cached.
  /// - Parameter version: the version of the feeds' structure.
  mutating func mayRead(_ feed: Feed, _ peer: Peer, asOf version: UInt64) -> Bool {
    guard rules != nil, !isPrivileged(peer) else { return true }
    if foundStructure != version { found.removeAll() }
    foundStructure = version
    if !mayRead(feed.name, peer) { return false }
    if !feed.showsFeeds { return true }
    let key = ReadKey(peer: peer.subject, feed: feed.number)
    if let known = found[key] { return known }
    let allowed = firstHidden(feed.shownFeeds, peer) == nil
    if found.count >= Self.mostFound { found.removeAll() }
    found[key] = allowed
    return allowed
  }

  /// The first of the feeds, and of all feeds that they show, that a peer may not read.
  func firstHidden(_ feeds: [Feed], _ peer: Peer) -> Feed? {
    var seen = Set<FeedNumber>()
    var open = feeds
    while let feed = open.popLast() {
      guard seen.insert(feed.number).inserted else { continue }
      if !mayRead(feed.name, peer) { return feed }
      open += feed.shownFeeds
    }
    return nil
  }

  /// Throws unless a rule allows the request.
  /// - Parameter progress: where the check goes on.
  /// - Returns: whether the check is over; if not, it goes on in another turn.
  /// - Throws: `permissionDenied`; for an operation of a transaction, with its index.
  mutating func check(
    _ method: Method, _ params: JSONView?, by peer: Peer, in catalog: Catalog, _ progress: inout RequestCheck
  ) throws(FeedError) -> Bool {
    guard let rules, !isPrivileged(peer), !progress.isAllowed else { return true }
    progress.isAllowed =
      method == .transaction
      ? try checkTransaction(params, rules, peer, catalog, &progress)
      : try check(method, params, rules, peer, catalog, &progress)
    return progress.isAllowed
  }

  private mutating func checkTransaction(
    _ params: JSONView?, _ rules: AccessRules, _ peer: Peer, _ catalog: Catalog, _ progress: inout RequestCheck
  ) throws(FeedError) -> Bool {
    var conditions = progress.conditions
    defer { progress.conditions = conditions }
    guard try checkConditions(of: .transaction, params, rules, peer, catalog, &conditions, &progress) else {
      return false
    }
    guard let operations = params?.member("ops"), operations.kind == .array else { return true }
    var checked = progress.operations
    defer { progress.operations = checked }
    return try checked.advance(over: operations) { place, operation throws(FeedError) in
      guard let name = operation.member("method"), let method = Method(name), method != .transaction else {
        return progress.spend(members: operation.count)
      }
      let params = operation.member("params")
      do throws(FeedError) {
        return try check(method, params, rules, peer, catalog, &progress)
      } catch {
        throw error.ofOperation(at: place, params)
      }
    }
  }

  /// Throws unless a rule allows a request that is no transaction, or an operation. Returns whether that is over.
  private mutating func check(
    _ method: Method, _ params: JSONView?, _ rules: AccessRules, _ peer: Peer, _ catalog: Catalog,
    _ progress: inout RequestCheck
  ) throws(FeedError) -> Bool {
    guard progress.spend(members: params?.count ?? 0) else { return false }
    if method.isLogged {
      var conditions = progress.conditionsOfOperation
      defer { progress.conditionsOfOperation = conditions }
      guard try checkConditions(of: method, params, rules, peer, catalog, &conditions, &progress) else { return false }
    }
    if let right = method.rules.right {
      // A request without a feed is refused by its handler, with a better message.
      let feed = params?.member("feed")?.truncatedName
      if let feed, right == .read {
        try checkReading(feed, rules, peer, catalog)
      } else if feed != nil || right == .admin {
        try check(right, on: feed, rules, peer)
        // A feed may show another feed only if the client may read that feed.
        let shown = method.shownFeeds(params)
        while progress.shown < shown.count {
          guard progress.spend() else { return false }
          try checkReading(shown[progress.shown], rules, peer, catalog)
          progress.shown += 1
        }
      }
    }
    (progress.conditionsOfOperation, progress.shown) = (ListProgress(), 0)
    return true
  }

  /// Throws unless a peer may read the feeds of the conditions of a request or of an operation. Returns whether that is over.
  private mutating func checkConditions(
    of method: Method, _ params: JSONView?, _ rules: AccessRules, _ peer: Peer, _ catalog: Catalog,
    _ checked: inout ListProgress, _ progress: inout RequestCheck
  ) throws(FeedError) -> Bool {
    if let conditions = params?.member("if") {
      if conditions.kind != .array { try checkCondition(conditions, rules, peer, catalog) }
      let isOver = try checked.advance(over: conditions) { _, condition throws(FeedError) in
        guard progress.spend() else { return false }
        try checkCondition(condition, rules, peer, catalog)
        return true
      }
      guard isOver else { return false }
    }
    // A condition on elements tells what the feed holds.
    if let params, Parameters(object: params).hasElementCondition(of: method) {
      try checkCondition(params, rules, peer, catalog)
    }
    return true
  }

  /// Throws unless a peer may read the feed that an object names.
  private mutating func checkCondition(
    _ condition: JSONView, _ rules: AccessRules, _ peer: Peer, _ catalog: Catalog
  ) throws(FeedError) {
    guard let feed = condition.member("feed")?.truncatedName else { return }
    do throws(FeedError) { try checkReading(feed, rules, peer, catalog) } catch { throw error.naming(feed) }
  }

  /// Throws unless a peer may read a feed and all feeds that it shows. An undefined feed shows none.
  private mutating func checkReading(
    _ name: String, _ rules: AccessRules, _ peer: Peer, _ catalog: Catalog
  ) throws(FeedError) {
    try check(.read, on: name, rules, peer)
    guard let feed = try? catalog.feed(named: name), feed.showsFeeds else { return }
    if mayRead(feed, peer, asOf: catalog.structureVersion) { return }
    throw .permissionDenied(
      reason:
        "uid \(peer.uid) may not read a feed that \"\(name)\" shows; a rule in \"access\" of the daemon's configuration "
        + "must allow it")
  }

  private func check(_ right: Right, on feed: String?, _ rules: AccessRules, _ peer: Peer) throws(FeedError) {
    if rules.allows(right, on: feed, to: peer) { return }
    let subject = feed.map { "\(right.rawValue) feed \"\($0)\"" } ?? "ask for what needs \"\(right.rawValue)\""
    throw .permissionDenied(
      reason: "uid \(peer.uid) may not \(subject); a rule in \"access\" of the daemon's configuration must allow it")
  }

  private func checkInvariants() {
    if let waiting { assert(waiting != rules, "the waiting access rules are already in effect") }
  }
}

extension Peer {
  /// The same for all connections to which the same rules apply: without the process.
  fileprivate var subject: Peer { Peer(uid: uid, gid: gid, pid: 0, groups: groups) }
}

extension SessionWatches {
  /// The first watch of a feed that may not be read with everything that it shows.
  fileprivate func firstHidden(from readable: inout ReadableFeeds) -> Watch? {
    for watch in self where !readable.contains(watch.channel.feed) { return watch }
    return nil
  }
}

/// The feeds that may be read with everything that they show. Each feed is judged once, so that judging all feeds takes time
/// in proportion to the feeds and their sources.
struct ReadableFeeds {
  private let mayRead: ((Feed) -> Bool)?
  /// Not by number: a watch may be of a feed that was undefined, whose number another feed has by now.
  private var known: [ObjectIdentifier: Bool] = [:]

  /// - Parameter mayRead: whether a feed may be read, whatever it shows; nil if all feeds may be read.
  init(_ mayRead: ((Feed) -> Bool)?) { self.mayRead = mayRead }

  /// Whether a feed may be read with everything that it shows.
  mutating func contains(_ feed: Feed) -> Bool {
    guard let mayRead else { return true }
    if let known = known[ObjectIdentifier(feed)] { return known }
    // Without recursion: feeds may stand in each other as deep as there are feeds.
    var open = [(feed: feed, shown: feed.shownFeeds, next: 0)]
    while let (feed, shown, next) = open.last {
      if known[ObjectIdentifier(feed)] != nil {
        open.removeLast()
      } else if next < shown.count {
        open[open.count - 1].next += 1
        open.append((shown[next], shown[next].shownFeeds, 0))
      } else {
        known[ObjectIdentifier(feed)] = mayRead(feed) && shown.allSatisfy { known[ObjectIdentifier($0)] == true }
      }
    }
    return known[ObjectIdentifier(feed)] == true
  }
}

extension Method {
  /// The feeds that a request would make another feed show.
  fileprivate func shownFeeds(_ params: JSONView?) -> [String] {
    switch self {
    case .insertChild: [params?.member("child")?.truncatedName].compactMap { $0 }
    case .define:
      (params?.member("children")?.elements.compactMap(\.truncatedName) ?? [])
        + (params?.member("contents")?.members.compactMap(\.value.truncatedName) ?? [])
        + [params?.member("of")?.truncatedName].compactMap { $0 }
    case .update, .patch, .delete, .set, .insert, .remove, .replace, .move, .put, .activate, .removeChild, .select,
      .deselect,
      .selected, .get, .range, .snapshot, .query, .verify, .watch, .unwatch, .sync, .ping, .hello, .undefine, .feeds,
      .describe, .transaction, .stats, .clients, .quotas, .kick, .logLevel, .group:
      []
    }
  }
}

extension Engine {
  /// Throws unless the access rules allow the request. Reading a feed, showing it in another one and naming it in a
  /// condition require the right to read all feeds that it shows.
  func checkAccess(_ method: Method, _ params: JSONView?, by peer: Peer) throws(FeedError) {
    var progress = RequestCheck()
    _ = try access.check(method, params, by: peer, in: catalog, &progress)
  }

  /// Throws unless a new request can be taken: ``Admission`` accepts it, and the access rules allow it. Definitions are
  /// checked first, because the access rules look at each feed that they name.
  /// - Parameter progress: where the check goes on.
  /// - Returns: whether the check is over; if not, it goes on in another turn.
  func checkAdmission(
    of method: Method, _ params: JSONView?, by peer: Peer, _ progress: inout RequestCheck
  ) throws(FeedError) -> Bool {
    // Asked here, because the call copies the limits.
    if method.isCheckedOnArrival, try !Admission.check(method, params, limits, &progress) { return false }
    if !access.isRestricted { return true }
    return try access.check(method, params, by: peer, in: catalog, &progress)
  }

  /// Checks a part of a long request. Returns whether that is over: it was checked, or what is wrong with it is found
  /// again at once.
  /// - Parameter hasTurn: whether the session took its part of the turn to scan the text. Otherwise it takes it now: requests of a
  ///   JSON-RPC batch are tried many times in a turn.
  func checkPart(of text: LongText, _ message: JSONView, of session: Session, hasTurn: Bool) -> Bool {
    guard message.kind == .object else { return true }
    // First, because each part of the check looks for members.
    do throws(FeedError) {
      try Admission.checkMembers(of: message, nil)
      try Admission.checkMembers(of: message, message.member("params"))
    } catch {
      return true
    }
    guard let method = message.member("method").flatMap({ Method($0) }), method.isLogged,
      access.isRestricted || method.isCheckedOnArrival
    else { return true }
    if text.rules != access.version {
      (text.rules, text.check, text.isChecked) = (access.version, RequestCheck(), false)
    }
    if text.isChecked { return true }
    // Feeds that are half changed may show less than before and after; see `mustWait`.
    if longWork.isExclusive && access.isRestricted && !access.isPrivileged(session.peer) { return false }
    guard hasTurn || sessions.longTexts.takeTurn(session) != nil else { return false }
    text.check.beginTurn()
    do throws(FeedError) {
      text.isChecked = try checkAdmission(of: method, message.member("params"), by: session.peer, &text.check)
    } catch {
      text.isChecked = true
    }
    return text.isChecked
  }

  /// Whether a peer may read a feed and all feeds that it shows.
  func mayRead(_ feed: Feed, _ peer: Peer) -> Bool { access.mayRead(feed, peer, asOf: catalog.structureVersion) }

  /// Activates waiting access rules. Closes connections that watch a feed that their user may no longer read, because
  /// the rules or the rows of the feed changed.
  func applyAccessRules() {
    let rulesChanged = access.applyWaiting()
    let structureChanged = access.structureDidChange(to: catalog.structureVersion)
    guard rulesChanged || structureChanged else { return }
    var readable: [Peer: ReadableFeeds] = [:]
    for session in sessions.all where !session.isClosing && !session.watches.isEmpty {
      let subject = session.peer.subject
      let watch = session.watches.firstHidden(from: &readable[subject, default: access.readableFeeds(by: subject)])
      guard let watch else { continue }
      // The output of this turn may contain rows that the client may no longer read.
      if structureChanged { endWatches(of: session) }
      close(
        session, reason: "access",
        message:
          "The daemon's configuration does not let uid \(session.peer.uid) read feed \"\(watch.channel.feed.name)\", or a feed "
          + "that it shows.",
        level: .info)
    }
  }
}
