import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Methods that change feeds, alone and in transactions.
extension Engine {
  /// Bytes on the wire that a listed row takes at most, half a move included.
  private static let longestListing = 36

  /// Executes one mutating method as a commit of its own.
  func mutate(
    _ method: Method, _ parameters: Parameters, _ reply: Reply
  ) throws(FeedError) {
    assert(method.rules.effect == .changesFeeds, "\(method) is not logged")
    let listsChange = method.rules.cost == .change
    catalog.begin(at: moment)
    do throws(FeedError) {
      try apply(method, parameters, of: reply.session)
      // Replay decides the same: it depends on the request alone whether there is an answer that must fit.
      if listsChange && reply.id != nil { try checkFits(reply.room) }
    } catch {
      rollBack(reply.session)
      throw error
    }
    commit()
    try answer(reply) { out in
      out.append("\"revision\":")
      out.append(integer: catalog.revision)
      if listsChange {
        out.append(UInt8(ascii: ","))
        catalog.commit.withResult { out.append($0) }
      }
    }
  }

  /// Several mutating methods as one commit: all or nothing.
  func transaction(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    let operations = try parameters.array("ops", "an array of operations, each with method and params")
    var results = ByteBuffer()
    catalog.begin(at: moment)
    do throws(FeedError) {
      for (place, operation) in operations.elements.enumerated() {
        try apply(operation, at: place, of: reply.session)
        results.append(place > 0 ? ",{" : "{")
        catalog.commit.withResult { results.append($0) }
        results.append(UInt8(ascii: "}"))
        // With an id or without: this bounds the work as well.
        if results.count > reply.room { throw tooLarge }
      }
    } catch {
      rollBack(reply.session)
      throw error
    }
    commit()
    try answer(reply) { out in
      out.append("\"revision\":")
      out.append(integer: catalog.revision)
      out.append(",\"results\":[")
      out.append(results.bytes)
      out.append(UInt8(ascii: "]"))
    }
  }

  /// Makes the operations final and publishes them.
  private func commit() {
    if catalog.finish(to: self) { counters.commits &+= 1 }
  }

  /// Undoes the operations, with what they left behind: a feed that one of them made is no more, and their hints on how
  /// to show their changes are not for the next ones.
  private func rollBack(_ session: Session) {
    catalog.rollBack()
    session.lastFeed = nil
  }

  private func apply(_ operation: JSONView, at place: Int, of session: Session) throws(FeedError) {
    do throws(FeedError) {
      guard operation.kind == .object, let name = operation.member("method"), name.kind == .string else {
        throw .invalidParams(member: "ops[\(place)]", reason: "must be an object with \"method\" and \"params\"")
      }
      guard let method = Method(name) else { throw .methodNotFound(name.string ?? "") }
      guard method.rules.effect == .changesFeeds else {
        throw .invalidParams(
          member: "ops[\(place)].method",
          reason: "is \"\(method.name)\", which changes nothing; ask for it by itself")
      }
      let object = operation.member("params")
      if let object, object.kind != .object {
        throw .invalidParams(member: "ops[\(place)].params", reason: "must be an object of named parameters")
      }
      try apply(method, Parameters(object: object), of: session)
    } catch {
      throw .operationFailed(index: place, error.naming(operation.member("params")?.member("feed")?.truncatedName))
    }
  }

  /// Refuses, while it can still be undone, a change whose answer would not fit a frame.
  private func checkFits(_ room: Int) throws(FeedError) {
    let size = catalog.commit.resultSize
    if size.sectionsAdded == 0 && size.all <= room / Self.longestListing { return }
    scratch.removeAll(keepingCapacity: true)
    catalog.commit.withResult { scratch.append($0) }
    if scratch.count > room { throw tooLarge }
  }

  private var tooLarge: FeedError {
    .limitExceeded(
      limit: "maxFrame", value: limits.maxFrame, reason: "the answer would not fit a frame; change less at a time")
  }
}
