import FeedChange
import FeedJSON
import FeedWire

/// Judges requests by the access rules in effect, and holds the rules that replace them at the end of the turn.
///
/// Requests admitted in a turn were judged by the rules in effect when the turn began, so other rules wait for its end.
/// Invariant: the waiting rules differ from those in effect.
struct AccessControl {
  /// The rules in effect; nil when every client may do everything.
  private var rules: AccessRules?
  private var waiting: AccessRules??
  /// The user the daemon runs as.
  private let owner: UInt32

  init(owner: UInt32) {
    self.owner = owner
  }

  /// Whether requests must be checked at all.
  var isRestricted: Bool { rules != nil }

  /// Replaces the rules at the end of the turn, or at once when no client is connected.
  mutating func replace(with new: AccessRules?, atOnce: Bool) {
    waiting = nil
    if atOnce { rules = new }
    if new != rules { waiting = .some(new) }
    checkInvariants()
  }

  /// Puts waiting rules into effect. Returns whether there were any.
  mutating func takeEffect() -> Bool {
    guard let new = waiting else { return false }
    waiting = nil
    rules = new
    return true
  }

  /// Whether a peer is root or the daemon's own user, to which no rule applies.
  func isPrivileged(_ peer: Peer) -> Bool {
    peer.uid == 0 || peer.uid == owner
  }

  /// Whether a peer may read a feed.
  func mayRead(_ feed: String, _ peer: Peer) -> Bool {
    guard let rules, !isPrivileged(peer) else { return true }
    return rules.allows(.read, on: feed, to: peer)
  }

  /// Refuses a request that no rule allows.
  ///
  /// - Throws: `permissionDenied`, for an operation of a transaction with its number.
  func check(_ method: Method, _ params: JSONView?, by peer: Peer) throws(FeedError) {
    guard let rules, !isPrivileged(peer) else { return }
    if method == .transaction { return try checkOperations(of: params, by: peer) }
    guard let right = method.rules.right else { return }
    // The method itself refuses a request without a feed, with a better message.
    let feed = params?.member("feed")?.truncatedName
    if feed == nil && right != .admin { return }
    try check(right, on: feed, rules, peer)
    // A feed may show another one only to clients that may read the other one themselves.
    for shown in method.shownFeeds(params) { try check(.read, on: shown, rules, peer) }
  }

  private func checkOperations(of params: JSONView?, by peer: Peer) throws(FeedError) {
    guard let operations = params?.member("ops"), operations.kind == .array else { return }
    for (place, operation) in operations.elements.enumerated() {
      guard let name = operation.member("method"), let method = Method(name), method != .transaction else { continue }
      do throws(FeedError) {
        try check(method, operation.member("params"), by: peer)
      } catch {
        throw .operationFailed(index: place, error)
      }
    }
  }

  private func check(
    _ right: Right, on feed: String?, _ rules: AccessRules, _ peer: Peer
  ) throws(FeedError) {
    if rules.allows(right, on: feed, to: peer) { return }
    let subject = feed.map { "\(right.rawValue) feed \"\($0)\"" } ?? "ask for what needs \"\(right.rawValue)\""
    throw .permissionDenied(
      reason: "uid \(peer.uid) may not \(subject); a rule in \"access\" of the daemon's configuration must allow it")
  }

  private func checkInvariants() {
    if let waiting { assert(waiting != rules, "the waiting access rules are already in effect") }
  }
}

extension Method {
  /// The feeds that a request wants another feed to show.
  fileprivate func shownFeeds(_ params: JSONView?) -> [String] {
    switch self {
    case .insertChild: [params?.member("child")?.truncatedName].compactMap { $0 }
    case .define:
      (params?.member("children")?.elements.compactMap(\.string) ?? [])
        + (params?.member("contents")?.members.compactMap(\.value.string) ?? [])
    case .update, .delete, .set, .insert, .remove, .replace, .move, .put, .activate, .removeChild, .select, .deselect,
      .selected, .get, .range, .snapshot, .query, .verify, .watch, .unwatch, .sync, .ping, .hello, .undefine, .feeds,
      .describe, .transaction, .stats, .clients:
      []
    }
  }
}

extension Engine {
  /// Puts waiting access rules into effect, and closes connections that watch a feed their user may no longer read.
  func applyAccessRules() {
    guard access.takeEffect() else { return }
    for session in sessions.all where !session.isClosing {
      guard let watch = session.watches.first(where: { !access.mayRead($0.channel.feed.name, session.peer) }) else {
        continue
      }
      close(
        session, reason: "access",
        message:
          "The daemon's configuration no longer lets uid \(session.peer.uid) read feed \"\(watch.channel.feed.name)\".",
        level: .info)
    }
  }
}
