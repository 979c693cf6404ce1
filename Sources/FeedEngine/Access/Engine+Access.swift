import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Checking requests against the access rules, before anything else is done with them.
extension Engine {
  /// Refuses what the rules do not allow. Callers ask only when there are rules: without them a request costs one branch.
  func checkAccess(_ method: Method, _ params: JSONView?, of session: Session) throws(FeedError) {
    guard let access, !isPrivileged(session.peer) else { return }
    if method == .transaction { return try checkTransaction(params, of: session) }
    guard let right = method.right else { return }
    // A request that names no feed is refused by the method itself, which says so better.
    let feed = params?.member("feed")?.string
    if feed == nil && right != .admin { return }
    try check(right, on: feed, access, session)
    // Whoever shows a feed in one of its own must be allowed to see it.
    for shown in method.shown(params) { try check(.read, on: shown, access, session) }
  }

  private func checkTransaction(_ params: JSONView?, of session: Session) throws(FeedError) {
    guard let operations = params?.member("ops"), operations.kind == .array else { return }
    for (place, operation) in operations.elements.enumerated() {
      guard let name = operation.member("method"), let method = Method(name), method != .transaction else { continue }
      do throws(FeedError) {
        try checkAccess(method, operation.member("params"), of: session)
      } catch {
        throw .operationFailed(index: place, error)
      }
    }
  }

  private func check(
    _ right: AccessRules.Rights, on feed: String?, _ access: AccessRules, _ session: Session
  ) throws(FeedError) {
    if access.allows(right, on: feed, to: session.peer) { return }
    let what = AccessRules.Rights.names.first { $0.right == right }?.name ?? ""
    let subject = feed.map { "\(what) feed \"\($0)\"" } ?? "ask for what needs \"\(what)\""
    throw .permissionDenied(
      reason:
        "uid \(session.peer.uid) may not \(subject); a rule in \"access\" of the daemon's configuration must allow it")
  }

  /// Whether a session may see a feed in the list of all.
  func maySee(_ feed: String, _ session: Session) -> Bool {
    guard let access, !isPrivileged(session.peer) else { return true }
    return access.allows(.read, on: feed, to: session.peer)
  }

  /// Whether a peer is root or the daemon's own user, whom no rule binds.
  func isPrivileged(_ peer: Peer) -> Bool {
    peer.uid == 0 || peer.uid == identity.uid
  }

  /// Takes other rules into effect. A connection that watches what its user may no longer see is closed.
  func adopt(_ rules: AccessRules?) {
    if rules == access { return }
    access = rules
    for case let session? in sessions where !session.isClosing {
      guard let watch = session.watches.first(where: { !maySee($0.channel.feed.name, session) }) else { continue }
      close(
        session, reason: "access",
        message:
          "The daemon's configuration no longer lets uid \(session.peer.uid) read feed \"\(watch.channel.feed.name)\".",
        level: .info)
    }
  }
}

extension Method {
  /// The right that the method needs; nil when everybody may use it.
  fileprivate var right: AccessRules.Rights? {
    switch self {
    case .get, .range, .snapshot, .query, .verify, .watch, .describe, .selected: .read
    case .update, .delete, .set, .insert, .remove, .replace, .move, .put, .activate, .select, .deselect: .write
    case .define, .undefine, .insertChild, .removeChild: .define
    case .stats, .clients: .admin
    case .unwatch, .sync, .ping, .hello, .feeds, .transaction: nil
    }
  }

  /// The feeds that a request wants shown in another one.
  fileprivate func shown(_ params: JSONView?) -> [String] {
    switch self {
    case .insertChild: [params?.member("child")?.string].compactMap { $0 }
    case .define:
      (params?.member("children")?.elements.compactMap(\.string) ?? [])
        + (params?.member("contents")?.members.compactMap(\.value.string) ?? [])
    default: []
    }
  }
}
