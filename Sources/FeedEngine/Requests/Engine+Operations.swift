import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The mutating methods, each as one operation of the commit under way.
extension Engine {
  /// Applies one mutating method.
  func apply(_ method: Method, _ parameters: Parameters, of session: Session) throws(FeedError) {
    guard let hint = parameters.member("animation") else { return try operate(method, parameters, of: session) }
    guard hint.kind == .string, hint.text.count <= 1024 else {
      throw Parameters.refuse("animation", "must be a short string, such as \"fade\"")
    }
    try operate(method, parameters, of: session)
    catalog.commit.setHint(Array(hint.text))
  }

  private func operate(_ method: Method, _ parameters: Parameters, of session: Session) throws(FeedError) {
    switch method {
    case .update: try update(parameters, of: session)
    case .delete: try delete(parameters, of: session)
    case .set: try set(parameters, of: session)
    case .insert, .remove, .replace, .move, .put: try edit(method, parameters, of: session)
    case .activate, .insertChild, .removeChild: try restructure(method, parameters, of: session)
    case .define: try define(parameters)
    case .undefine: try undefine(parameters)
    case .select, .deselect, .selected, .get, .range, .snapshot, .query, .verify, .watch, .unwatch, .sync, .ping,
      .hello,
      .feeds, .describe, .transaction, .stats, .clients:
      assertionFailure("\(method) is no operation of a commit")
      throw .internalError(reason: "\(method.name) changes no feed")
    }
  }

  private func update(_ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try collection(parameters, of: session)
    try parameters.refuseBoth("element", "elements")
    if let element = parameters.member("element") {
      try feed.update(element, in: catalog.commit)
    } else if parameters.member("elements") != nil {
      try feed.update(
        elements: try parameters.array("elements", "an array of elements"), in: catalog.commit)
    } else {
      throw Parameters.refuse("element", "is missing: give \"element\", or \"elements\" as an array")
    }
  }

  private func delete(_ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try collection(parameters, of: session)
    try parameters.refuseBoth("id", "ids")
    if parameters.member("ids") != nil {
      return try feed.delete(ids: try parameters.array("ids", "an array of identities"), in: catalog.commit)
    }
    guard let id = parameters.member("id") else {
      throw Parameters.refuse("id", "is missing: give \"id\", or \"ids\" as an array")
    }
    try feed.delete(id, in: catalog.commit)
  }

  private func set(_ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try feed(parameters, of: session)
    let elements = try parameters.array("elements", "an array of all elements the feed shall hold")
    switch feed.kind {
    case let collection as CollectionKind: try collection.set(elements, in: catalog.commit)
    case let list as ListKind where list.shape == .array: try list.set(elements, in: catalog.commit)
    default: throw .wrongKind(feed: feed.name, kind: feed.kindName, wanted: "collection or array")
    }
  }

  private func define(_ parameters: Parameters) throws(FeedError) {
    guard let object = parameters.object else { throw Parameters.refuse("feed", "is missing: describe a feed") }
    let replace = try parameters.bool("replace", default: false)
    let definition = try FeedDefinition(parsing: object, limits: limits)
    if case .managed = definition.content {
      throw .permissionDenied(
        reason: "a managed feed names a file of the daemon's machine; define it in the file of feedd --config")
    }
    try catalog.define(definition, replace: replace)
  }

  private func undefine(_ parameters: Parameters) throws(FeedError) {
    let name = try parameters.string("feed", "the name of a feed")
    if catalog.feeds[name]?.kind is ManagedKind {
      throw .permissionDenied(
        reason: "feed \"\(name)\" is defined by the daemon's configuration; take it out of that file instead")
    }
    try catalog.undefine(name)
  }
}
