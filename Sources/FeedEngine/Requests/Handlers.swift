import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Calls the handlers of methods.
extension Engine {
  func execute(_ method: Method, _ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    if !method.isLogged && reply.isDiscarded {
      // In replay, a request that changes no feed can only begin a feed's history.
      if method.rules.effect == .mayBeginHistory { try feed(parameters, of: reply.session).beginHistory() }
      return
    }
    let revision = catalog.revision
    if method.isLogged { try checkConditions(parameters) }
    switch method {
    case .update, .patch, .delete, .set, .insert, .remove, .replace, .move, .put, .activate, .insertChild, .removeChild,
      .define, .undefine:
      try mutate(method, parameters, reply)
    case .transaction: try transaction(parameters, reply)
    case .select, .deselect: try changeSelection(method, parameters, reply)
    case .selected: try selected(parameters, reply)
    case .get: try get(parameters, reply)
    case .range: try range(parameters, reply)
    case .snapshot: try snapshot(parameters, reply)
    case .query: try query(parameters, reply)
    case .verify:
      let feed = try feed(parameters, of: reply.session)
      start(DigestJob(feed, chargedTo: reply.session.snapshots), for: reply, parameters)
    case .watch: try watch(parameters, reply)
    case .unwatch: try unwatch(parameters, reply)
    case .sync:
      let job = SyncJob(reply.session, revision: catalog.revision) { [unowned self] watch in
        watches.schedule.hurry(watch, now: now)
      }
      start(job, for: reply, parameters)
    case .ping: try answer(reply) { _ in }
    case .hello: try hello(parameters, reply)
    case .feeds: try feeds(parameters, reply)
    case .describe: try describe(parameters, reply)
    case .stats: try stats(reply)
    case .clients: clients(parameters, reply)
    case .quotas: try quotas(reply)
    case .kick: try kick(parameters, reply)
    case .logLevel: try logLevel(parameters, reply)
    case .group: try group(parameters, reply)
    }
    assert(method.isLogged || catalog.revision == revision, "\(method) changed a feed and is not logged")
  }

  /// Executes a request that waited. Writes an error response if it fails.
  /// - Parameter checksAccess: false for a request that changes feeds, which was checked when it was taken.
  func executeAndAnswer(
    _ method: Method, _ id: JSONView?, _ parameters: Parameters, of session: Session, checksAccess: Bool
  ) {
    do throws(FeedError) {
      if checksAccess && access.isRestricted { try checkAccess(method, parameters.object, by: session.peer) }
      try execute(method, parameters, makeReply(to: session, id: id?.text))
    } catch {
      // A valid notification is never answered.
      guard let id else { return }
      refuse(makeReply(to: session, id: id.text), error.naming(parameters.member("feed")?.truncatedName))
    }
  }

  /// Executes a stored request without an answer. Its effect is that of the first execution, also if it fails.
  func executeSilently(_ method: Method, _ id: JSONView?, _ parameters: Parameters) {
    let reply = Reply(to: sessions.nobody, id: id?.text, maxFrame: limits.maxFrame, isDiscarded: true)
    do throws(FeedError) { try execute(method, parameters, reply) } catch {}
  }

  func feed(_ parameters: Parameters, of session: Session) throws(FeedError) -> Feed {
    let name = try parameters.required("feed", "the name of a feed")
    if let known = knownFeed(name, of: session) { return known.takeUnretainedValue() }
    guard let text = name.truncatedName else {
      throw Parameters.refuse("feed", "must be a string: the name of a feed")
    }
    let feed = try catalog.feed(named: text)
    session.last.feed.set(feed, named: name.text)
    return feed
  }

  /// The feed that the last request of a session named, if this one names it too. Valid until it is undefined.
  @inline(__always)
  func knownFeed(_ name: JSONView, of session: Session) -> Unmanaged<Feed>? { session.last.feed.feed(named: name.text) }

  /// Returns the error for a feed that a method cannot change. For a bin it names the collection, if that can be changed.
  func refusal(of feed: Feed, wanted: String) -> FeedError {
    if feed.isList { return Catalog.listIsReadOnly }
    var wanted = wanted
    if feed.kindName == "bin" && wanted.hasPrefix("collection") {
      wanted = "collection \"\(feed.name.prefix { $0 != "/" })\""
    }
    return .wrongKind(feed: feed.name, kind: feed.kindName, wanted: wanted)
  }
}
