import FeedChange
import FeedJSON
import FeedModel
import FeedWire
import Glibc

/// From a method to what executes it.
extension Engine {
  func execute(_ method: Method, _ request: Request, of session: Session) throws(FeedError) {
    let parameters = Parameters(object: request.params)
    if method.isJournaled {
      if let storageFailure { throw .storageFailed(reason: storageFailure) }
    } else if isReplaying {
      if method == .watch { try feed(parameters, of: session).beginHistory() }
      return
    }
    switch method {
    case _ where method.isMutating: try mutate(method, request, parameters, of: session)
    case .transaction: try transaction(request, parameters, of: session)
    case .get: try get(request, parameters, of: session)
    case .range: try range(request, parameters, of: session)
    case .snapshot: try snapshot(request, parameters, of: session)
    case .query: try query(request, parameters, of: session)
    case .verify: start(DigestJob(try feed(parameters, of: session)), for: request, of: session)
    case .watch: try watch(request, parameters, of: session)
    case .unwatch: try unwatch(request, parameters, of: session)
    case .sync: start(SyncJob(session, revision: catalog.revision), for: request, of: session)
    case .hello: try hello(request, parameters, of: session)
    case .ping: try reply(request, of: session) { _ in }
    case .feeds: try feeds(request, of: session)
    case .describe: try describe(request, parameters, of: session)
    case .stats: try stats(request, of: session)
    case .clients: try clients(request, of: session)
    case .select, .deselect: try changeSelection(method, request, parameters, of: session)
    case .selected: try selected(request, parameters, of: session)
    default: throw .methodNotFound(method.rawValue)
    }
  }

  /// The feed that parameter `feed` names. Requests of one session mostly name the same feed, which costs one comparison.
  func feed(_ parameters: Parameters, of session: Session) throws(FeedError) -> Feed {
    let name = try parameters.required("feed", "the name of a feed")
    if let last = session.lastFeed, !last.isGone, session.lastName.bytes.hasSameBytes(as: name.text) { return last }
    guard let text = name.string else { throw Parameters.refuse("feed", "must be a string: the name of a feed") }
    let feed = try catalog.feed(named: text)
    session.lastFeed = feed
    session.lastName.removeAll(keepingCapacity: true)
    session.lastName.append(name.text)
    return feed
  }

  /// The collection that parameter `feed` names.
  func collection(_ parameters: Parameters, of session: Session) throws(FeedError) -> CollectionFeed {
    let feed = try feed(parameters, of: session)
    guard let collection = feed as? CollectionFeed else {
      throw .wrongKind(feed: feed.name, kind: feed.kind, wanted: "collection")
    }
    return collection
  }

  func sections(of feed: Feed) -> [(name: String, count: Int)] {
    (0..<feed.sectionCount).map { index in
      let section = feed.section(at: index)
      return (section.name, section.count)
    }
  }
}

extension UnsafeRawBufferPointer {
  fileprivate func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count, let base = baseAddress, let otherBase = other.baseAddress else { return false }
    return memcmp(base, otherBase, count) == 0
  }
}
