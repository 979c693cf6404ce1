import FeedChange
import FeedJSON
import FeedModel
import FeedQuery
import FeedWire

/// Methods that change feeds, alone and in transactions.
extension Engine {
  /// The maximum bytes of a listed row on the wire, including half a move.
  private static let longestListing = 36
  /// An answer that lists more rows is written in slices.
  private static let manyRows = 4096
  /// The maximum bytes of a byte of a name on the wire.
  private static let longestEscape = 6
  /// The maximum bytes of the members of a change without their entries.
  private static let members = 128

  /// Executes one mutating method as one commit.
  func mutate(_ method: Method, _ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    assert(method.rules.effect == .changesFeeds, "\(method) is not logged")
    let hasChange = method.rules.cost == .change
    var listsChange = hasChange ? try !parameters.wantsCounts : false
    var longResult = ByteBuffer()
    begin(for: reply.session, certain: max(0, reply.room - Self.members) / Self.longestListing)
    do throws(FeedError) {
      try apply(method, parameters, of: reply.session)
      try commit.useStepsOfViews()
      try catalog.checkRowsOfViews()
      // Replay makes the same decision: the request alone determines whether there is an answer that must fit.
      if listsChange && reply.id != nil && commit.row == nil {
        listsChange = try writeLongResult(to: &longResult, room: reply.room)
      }
    } catch {
      rollBack(reply.session)
      throw error
    }
    finishCommit()
    if listsChange, let row = commit.row {
      return try answer(reply) { out in
        appendRevision(catalog.revision, to: &out)
        out.append(UInt8(ascii: ","))
        out.append(row)
      }
    }
    let namesSections = !listsChange || !access.isRestricted || mayNameSections(parameters, reply.session)
    try answer(reply) { out in
      appendRevision(catalog.revision, to: &out)
      if hasChange {
        out.append(UInt8(ascii: ","))
        if !listsChange {
          commit.withResult { change, _ in out.append(countsOf: change) }
        } else if longResult.count > 0 && namesSections {
          out.append(longResult.bytes)
        } else {
          commit.withResult { change, _ in out.append(change, namesSections: namesSections) }
        }
      }
    }
  }

  /// Executes several mutating methods as one commit, all or none.
  func transaction(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    let operations = try parameters.array("ops", "an array of operations, each with method and params")
    let wantsCounts = try parameters.wantsCounts
    try checkConditions(ofOperations: operations)
    var results = OperationResults()
    begin(for: reply.session)
    do throws(FeedError) {
      for (place, operation) in operations.elements.enumerated() {
        let opWantsCounts = try apply(operation, at: place, of: reply.session)
        try commit.useStepsOfViews()
        try catalog.checkRowsOfViews()
        if wantsCounts || opWantsCounts {
          results.appendCounts(of: commit)
        } else {
          let namesSections = mayNameSections(Parameters(object: operation.member("params")), reply.session)
          results.append(commit, namesSections: namesSections, room: reply.room)
        }
        // Checked without an id too, because it also bounds the work.
        if results.counted > reply.room { throw tooLarge }
      }
    } catch {
      rollBack(reply.session)
      throw error
    }
    finishCommit()
    try answer(reply) { out in
      appendRevision(catalog.revision, to: &out)
      out.append(",\"results\":[")
      results.append(to: &out, room: reply.room)
      out.append(UInt8(ascii: "]"))
    }
  }

  @inline(__always)
  private func appendRevision(_ revision: UInt64, to out: inout ByteBuffer) {
    revisionText.set(revision)
    out.append("\"revision\":")
    out.append(revisionText)
  }

  /// Starts a commit whose errors name no feed that the client may not read, unless the request names it.
  /// - Parameter certain: the rows for which the answer certainly has room, if the commit has one operation.
  private func begin(for session: Session, certain: Int = 0) {
    if !access.isRestricted || access.isPrivileged(session.peer) {
      return catalog.begin(at: time.moment, certain: certain)
    }
    let peer = session.peer
    catalog.begin(at: time.moment, certain: certain) { [unowned self] in access.firstHidden([$0], peer) == nil }
  }

  /// Whether the change of a request may name the sections that it adds: names of sections can be names of other feeds, or
  /// values of elements, so the client must be allowed to read the feed.
  private func mayNameSections(_ parameters: Parameters, _ session: Session) -> Bool {
    if !access.isRestricted || access.isPrivileged(session.peer) { return true }
    var addsSections = false
    commit.withResult { change, _ in addsSections = !change.sectionsAdded.isEmpty }
    guard addsSections, let name = parameters.member("feed")?.truncatedName,
      let feed = try? catalog.feed(named: name)
    else { return true }
    return access.firstHidden([feed], session.peer) == nil
  }

  /// Commits the operations and publishes their changes.
  private func finishCommit() {
    if catalog.finish(to: self) { status.counters.commits &+= 1 }
  }

  /// Rolls back the operations, and clears the cached feed, which one of them may have defined.
  private func rollBack(_ session: Session) {
    catalog.rollBack()
    session.last.feed.forget()
  }

  /// Applies an operation of a transaction. Returns whether its result is the counts of its change.
  private func apply(_ operation: JSONView, at place: Int, of session: Session) throws(FeedError) -> Bool {
    do throws(FeedError) {
      guard operation.kind == .object, let name = operation.member("method"), name.kind == .string else {
        throw .invalidParams(member: "ops[\(place)]", reason: "must be an object with \"method\" and \"params\"")
      }
      guard let method = Method(name) else { throw .methodNotFound(name.truncatedName ?? "") }
      guard method.rules.effect == .changesFeeds else {
        throw .invalidParams(
          member: "ops[\(place)].method",
          reason: "is \"\(method.name)\", which is no operation of a transaction; send it by itself")
      }
      let object = operation.member("params")
      if let object, object.kind != .object {
        throw .invalidParams(member: "ops[\(place)].params", reason: "must be an object of named parameters")
      }
      let parameters = Parameters(object: object)
      try apply(method, parameters, of: session)
      return method.rules.cost == .change ? try parameters.wantsCounts : false
    } catch {
      throw error.ofOperation(at: place, operation.member("params"))
    }
  }

  /// Writes the change of the request if it lists many rows. A short one certainly fits in a frame, and is not written. Returns false if
  /// it does not fit and replay would make another change, which may fit: the answer then has counts.
  /// - Throws: `limitExceeded` if it does not fit, while the change can still be rolled back.
  private func writeLongResult(to result: inout ByteBuffer, room: Int) throws(FeedError) -> Bool {
    let size = commit.resultSize
    let bytes = size.all * Self.longestListing + size.nameBytes * Self.longestEscape + Self.members
    if size.all <= Self.manyRows && bytes <= room { return true }
    commit.withResult { result.append($0, step: $1) }
    let fits = result.count <= room
    if !fits && commit.isRepeatable { throw tooLarge }
    // Publishing completes the change of a redefined feed.
    if commit.isStructural || !fits { result.removeAll(keepingCapacity: true) }
    return fits
  }

  private var tooLarge: FeedError {
    limits.exceeded(\.maxFrame, "the answer would not fit a frame; change less at a time")
  }
}

/// The mutating methods, each as one operation of the open commit.
extension Engine {
  func apply(_ method: Method, _ parameters: Parameters, of session: Session) throws(FeedError) {
    guard let hint = parameters.member("animation") else { return try changeFeeds(method, parameters, of: session) }
    guard hint.kind == .string else { throw Parameters.refuse("animation", "must be a string, such as \"fade\"") }
    guard hint.text.count <= 1024 else {
      throw Parameters.refuse("animation", "must be at most 1,024 bytes of JSON text")
    }
    try changeFeeds(method, parameters, of: session)
    commit.setHint(Array(hint.text))
  }

  private func changeFeeds(_ method: Method, _ parameters: Parameters, of session: Session) throws(FeedError) {
    switch method {
    case .update: try update(parameters, of: session)
    case .patch: try patch(parameters, of: session)
    case .delete: try delete(parameters, of: session)
    case .set: try set(parameters, of: session)
    case .insert, .remove, .replace, .move, .put: try edit(method, parameters, of: session)
    case .activate, .insertChild, .removeChild: try restructure(method, parameters, of: session)
    case .define: try define(parameters, of: session)
    case .undefine: try undefine(parameters)
    case .select, .deselect, .selected, .get, .range, .snapshot, .query, .verify, .watch, .unwatch, .sync, .ping,
      .hello,
      .feeds, .describe, .transaction, .stats, .clients, .quotas, .kick, .logLevel, .group:
      assertionFailure("\(method) is no operation of a commit")
      throw .internalError(reason: "\(method.name) changes no feed")
    }
  }

  private func update(_ parameters: Parameters, of session: Session) throws(FeedError) {
    // Most updates have no condition. No reference to the feed that the last request named, or to its collection, is counted.
    if let (name, element) = parameters.feedAndElement, let known = knownFeed(name, of: session),
      let done = known._withUnsafeGuaranteedRef({ update($0, to: element) })
    {
      return try done.get()
    }
    let target = try feed(parameters, of: session)
    try checkElements(ofUpdate: parameters, in: target)
    guard let collection = target.collection else {
      return try identifiedArray(target, .update).update(try elements(parameters), in: commit)
    }
    try parameters.refuseBoth("element", "elements")
    if let element = parameters.member("element") {
      try collection.update(element, in: commit)
    } else if parameters.member("elements") != nil {
      try collection.update(elements: try parameters.array("elements", "an array of elements"), in: commit)
    } else {
      throw Parameters.refuse("element", "is missing: give \"element\", or \"elements\" as an array")
    }
  }

  /// Upserts one element of a collection; nil if the feed is another one.
  @inline(__always)
  private func update(_ target: Feed, to element: JSONView) -> Result<Void, FeedError>? {
    target.withCollection { collection in
      Result { () throws(FeedError) in try collection.update(element, in: commit) }
    }
  }

  private func delete(_ parameters: Parameters, of session: Session) throws(FeedError) {
    let target = try feed(parameters, of: session)
    let collection = target.collection
    let array = collection == nil ? try identifiedArray(target, .delete) : nil
    try parameters.refuseBoth("id", "ids")
    if parameters.member("ids") != nil {
      let ids = try parameters.array("ids", "an array of identities")
      try checkElements(ids.elements, ofDelete: parameters, in: target)
      try collection?.delete(ids: ids, in: commit)
      try array?.delete(Array(ids.elements), in: commit)
    } else if let id = parameters.member("id") {
      try checkElements(CollectionOfOne(id), ofDelete: parameters, in: target)
      try collection?.delete(id, in: commit)
      try array?.delete([id], in: commit)
    } else if parameters.member("where") != nil {
      let filter = try filter(parameters)
      try collection?.delete(where: filter, in: commit)
      try array?.delete(where: filter, in: commit)
    } else {
      throw Parameters.refuse("id", "is missing: give \"id\", \"ids\" as an array, or \"where\" as a filter")
    }
  }

  /// Returns `feed` as an array with identity, for a method that changes elements by identity.
  /// - Throws: `wrongKind` for other feeds, `permissionDenied` if the array does not allow the method.
  func identifiedArray(_ feed: Feed, _ method: Method) throws(FeedError) -> ListKind {
    guard let list = feed.kind as? ListKind, list.hasIdentity else {
      // The first version of the protocol knew no array with identity; its test vectors give "collection" here.
      let isPlainArray = (feed.kind as? ListKind)?.shape == .array
      throw refusal(
        of: feed, wanted: isPlainArray && method == .update ? "collection" : "collection or array with \"id\"")
    }
    try checkAllowed(method, feed)
    return list
  }

  func filter(_ parameters: Parameters) throws(FeedError) -> Filter {
    let text = try expression(parameters, "where", "a filter such as \"@.done == true\"")
    if commit.rules >= 7, parameters.member("where")?.hasLoneSurrogate == true {
      throw Parameters.refuse("where", KnownMembers.loneSurrogate)
    }
    do throws(QueryError) {
      let ranges = limits.applied(by: commit.rules).filterRanges
      return try Filter(parsing: text, atMost: limits.maxFilterBytes, ranges: ranges)
    } catch {
      if error.isTooLarge { throw limits.tooLargeFilter("\"where\" takes") }
      throw .badQuery(member: "where", text: text, offset: error.offset, reason: error.message)
    }
  }

  private func set(_ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try feed(parameters, of: session)
    let elements = try parameters.array("elements", "an array of all elements the feed shall hold")
    switch feed.kind {
    case let collection as CollectionKind: try collection.set(elements, in: commit)
    case let list as ListKind where list.shape == .array: try list.set(elements, in: commit)
    default: throw refusal(of: feed, wanted: "collection or array")
    }
  }

  private func define(_ parameters: Parameters, of session: Session) throws(FeedError) {
    guard let object = parameters.object else { throw Parameters.refuse("feed", "is missing: describe a feed") }
    let replace = try parameters.bool("replace", default: false)
    if object.member("feed")?.string(atMost: FeedName.maxLength) == FeedName.feeds { throw Catalog.listIsReadOnly }
    let definition = try FeedDefinition(parsing: object, limits: limits.applied(by: commit.rules))
    // Versions with these rules refused such types here, so logs have the requests. Present ones are refused on arrival.
    if commit.rules >= 3 {
      do throws(KnownMembers.Refusal) {
        try KnownMembers.checkTypes(of: object)
      } catch {
        throw .invalidParams(member: error.path, reason: error.reason)
      }
    }
    commit.pace.didParse(definition: object.text.count)
    if case .managed = definition.content {
      throw .permissionDenied(
        reason: "a managed feed names a file of the daemon's machine; define it in the file of feedd --config")
    }
    // Where requests are stored, so is their user: replay must know it.
    let owner = isDurable || session === sessions.nobody ? ownWork.owner : session.peer.uid
    try catalog.define(definition, replace: replace, by: owner)
  }

  private func undefine(_ parameters: Parameters) throws(FeedError) {
    let name = try parameters.name("feed", "the name of a feed")
    // In a group, the host whose configuration defined it may have left for good.
    if catalog.feeds[name]?.kind is ManagedKind, !catalog.keepsManagedRows {
      throw .permissionDenied(
        reason: "feed \"\(name)\" is defined by the daemon's configuration; take it out of that file instead")
    }
    try catalog.undefine(name)
  }
}

extension Parameters {
  /// Whether the answer has the counts of the change instead of its lists.
  fileprivate var wantsCounts: Bool {
    get throws(FeedError) {
      guard let result = member("result") else { return false }
      if result.stringEquals("counts") { return true }
      if result.stringEquals("change") { return false }
      throw Parameters.refuse("result", "must be \"change\" or \"counts\"")
    }
  }
}
