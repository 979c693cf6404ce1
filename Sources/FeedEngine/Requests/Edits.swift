import FeedChange
import FeedJSON
import FeedModel
import FeedWire

extension Engine {
  func edit(_ method: Method, _ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try feed(parameters, of: session)
    let shape: ListKind.Shape = method == .put ? .single : .array
    guard let list = feed.kind as? ListKind, list.shape == shape else {
      throw refusal(of: feed, wanted: shape.rawValue)
    }
    try checkAllowed(method, feed)
    switch method {
    case .insert:
      let elements = try elements(parameters)
      try list.insert(elements, at: try places(parameters, for: elements), in: commit)
    case .remove:
      try list.remove(at: try rows(parameters), in: commit)
    case .replace:
      let elements = try elements(parameters)
      guard let places = try places(parameters, for: elements) else {
        throw Parameters.refuse("at", "is missing: give a row for each element")
      }
      try list.replace(elements, at: places, in: commit)
    case .move:
      try checkElement(ofMove: parameters, in: list, feed)
      if let id = parameters.member("id") {
        guard list.hasIdentity else {
          throw Parameters.refuse("id", "has no meaning in an array without identity: give \"from\", the row")
        }
        try parameters.refuseBoth("from", "id")
        return try list.move(id, to: try parameters.integer("to"), in: commit)
      }
      try list.move(from: try parameters.integer("from"), to: try parameters.integer("to"), in: commit)
    default:
      let element = try parameters.required("element", "the element, or null to empty the feed")
      try list.put(element.isNull ? nil : element, in: commit)
    }
  }

  /// Throws if the feed's definition does not allow the method. `put` and `set`, which replace the whole content, are
  /// always allowed.
  func checkAllowed(_ method: Method, _ feed: Feed) throws(FeedError) {
    if method == .move && !feed.behaviours.movable {
      throw .permissionDenied(reason: "feed \"\(feed.name)\" is defined with \"movable\": false")
    }
    if [.insert, .remove, .replace, .update, .delete, .patch].contains(method) && !feed.behaviours.editable {
      throw .permissionDenied(
        reason: "feed \"\(feed.name)\" is defined with \"editable\": false; its owner may use set")
    }
  }

  func elements(_ parameters: Parameters) throws(FeedError) -> [JSONView] {
    try parameters.refuseBoth("element", "elements")
    if let element = parameters.member("element") { return [element] }
    let elements = try parameters.array("elements", "an array of elements")
    if elements.count > limits.maxRequestRows {
      throw limits.exceeded(
        \.maxRequestRows, "\"elements\" has \(grouped(elements.count)) elements; change less at a time")
    }
    return try list(elements) { element throws(FeedError) in element }
  }

  /// What `read` makes of each element of an array. Lets the request stop in between.
  func list<Item>(_ array: JSONView, _ read: (JSONView) throws(FeedError) -> Item) throws(FeedError) -> [Item] {
    var items: [Item] = []
    for element in array.elements {
      if items.count & 1023 == 1023 { commit.pace.didReadElements() }
      items.append(try read(element))
    }
    return items
  }

  private func rows(_ parameters: Parameters) throws(FeedError) -> [Int] {
    let at = try parameters.required("at", "rows, as an array")
    if at.kind == .number { return [try row(at)] }
    guard at.kind == .array else { throw Parameters.refuse("at", "must be a row or an array of rows") }
    return try list(at, row)
  }

  /// The row for each element. A single number is the row of the first element, and the others follow it. Returns nil
  /// if absent.
  private func places(_ parameters: Parameters, for elements: [JSONView]) throws(FeedError) -> [Int]? {
    guard let at = parameters.member("at") else { return nil }
    if at.kind == .number {
      let first = try row(at)
      return elements.indices.map { first &+ $0 }
    }
    let rows = try rows(parameters)
    guard rows.count == elements.count else {
      throw Parameters.refuse(
        "at", "has \(counted(rows.count, "row")) for \(counted(elements.count, "element")); give one for each")
    }
    return rows
  }

  private func row(_ value: JSONView) throws(FeedError) -> Int {
    guard let row = value.int else { throw Parameters.refuse("at", "must hold integers: rows from 0 on") }
    return row
  }
}

/// Methods that change the children of a composed or segmented feed.
extension Engine {
  func restructure(_ method: Method, _ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try feed(parameters, of: session)
    guard let provider = feed.kind as? ProviderKind else {
      throw refusal(of: feed, wanted: method == .activate ? "segmented" : "composed or segmented")
    }
    switch method {
    case .insertChild:
      let child = try parameters.name("child", "the name of a feed or bin")
      try provider.insertChild(child, at: try place(parameters), in: catalog)
    case .removeChild:
      try provider.removeChild(at: try child(parameters, of: provider), in: catalog)
    default:
      guard provider.isSegmented else {
        throw .wrongKind(feed: feed.name, kind: feed.kindName, wanted: "segmented")
      }
      try activate(provider, parameters)
    }
  }

  private func activate(_ feed: ProviderKind, _ parameters: Parameters) throws(FeedError) {
    let child = try parameters.required("child", "the index or the name of a child, or -1 for none")
    if let name = child.truncatedName {
      return try feed.activate(index: feed.child(named: name, in: catalog), in: catalog)
    }
    guard let index = child.int else {
      throw Parameters.refuse("child", "must be the index or the name of a child, or -1 for none")
    }
    try feed.activate(index: index, in: catalog)
  }

  private func place(_ parameters: Parameters) throws(FeedError) -> ChildPlace {
    try parameters.refuseBoth("at", "before")
    try parameters.refuseBoth("at", "after")
    try parameters.refuseBoth("before", "after")
    if parameters.member("before") != nil { return .before(try parameters.name("before", "the name of a child")) }
    if parameters.member("after") != nil { return .after(try parameters.name("after", "the name of a child")) }
    if let at = parameters.member("at") {
      guard let index = at.int else {
        throw Parameters.refuse("at", "must be an integer: an index among the children")
      }
      return .index(index)
    }
    return .end
  }

  private func child(_ parameters: Parameters, of feed: ProviderKind) throws(FeedError) -> Int {
    try parameters.refuseBoth("child", "at")
    if parameters.member("child") != nil {
      return try feed.child(named: try parameters.name("child", "the name of a child"), in: catalog)
    }
    guard parameters.member("at") != nil else {
      throw Parameters.refuse("child", "is missing: give the name of a child, or \"at\" as its index")
    }
    guard let index = parameters.member("at")?.int else {
      throw Parameters.refuse("at", "must be an integer: the index of a child")
    }
    return index
  }
}

/// `select`, `deselect`, `selected` and the notification `selection`.
extension Engine {
  func changeSelection(_ method: Method, _ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    let feed = try feed(parameters, of: reply.session)
    try parameters.refuseBoth("at", "all")
    if method == .select { try feed.checkMaySelect() }
    let all = try parameters.bool("all", default: false)
    let paths = all ? [] : try paths(parameters, of: feed, method, reply)
    let changed: Bool
    if method == .select {
      if all && feed.behaviours.multiple { try catalog.checkSelected(feed.count, of: feed) }
      if all { try checkSelectable(feed.count + feed.selection.count, reply) }
      changed = try feed.select(
        all ? feed.allPaths : paths, namedBy: all ? "all" : "at",
        checkRoom: { count throws(FeedError) in try catalog.checkSelected(count, of: feed) },
        mayName: { mayRead($0, reply.session.peer) }, commit.pace)
    } else {
      changed = all ? feed.deselectAll() : try feed.deselect(paths)
    }
    if changed { announceSelection(of: feed) }
    try answer(reply, withSelectionOf: feed)
  }

  /// The maximum bytes of a selected row on the wire.
  private static let longestPath = 24

  /// Throws if the paths of the selected rows would not fit in a frame, wherever the rows may move.
  private func checkSelectable(_ count: Int, _ reply: Reply) throws(FeedError) {
    let room = min(reply.room, limits.maxFrame - 1024)
    guard count > 1 && count > room / Self.longestPath else { return }
    throw limits.exceeded(\.maxFrame, "\(grouped(count)) selected rows may not fit a frame; select fewer")
  }

  func selected(_ parameters: Parameters, _ reply: Reply) throws(FeedError) {
    try answer(reply, withSelectionOf: try feed(parameters, of: reply.session))
  }

  private func answer(_ reply: Reply, withSelectionOf feed: Feed) throws(FeedError) {
    try answer(reply) { out in
      out.append("\"revision\":", integer: feed.revision)
      out.append(",\"selected\":")
      out.append(feed.selection)
    }
  }

  /// Returns the paths of the parameter `at`, which is one path or an array of paths.
  /// - Throws: for `select` also as `checkSelectable`, before many paths are read.
  private func paths(
    _ parameters: Parameters, of feed: Feed, _ method: Method, _ reply: Reply
  ) throws(FeedError) -> [IndexPath] {
    let at = try parameters.required("at", "index paths [[section, row], …], or \"all\": true")
    let path = at.path
    if method == .select { try checkSelectable((path == nil ? at.count : 1) + feed.selection.count, reply) }
    if let path { return [try feed.path(section: path.section, row: path.row)] }
    guard at.kind == .array else { throw Parameters.refuse("at", "must be an array of index paths [section, row]") }
    let rows = try list(at) { element throws(FeedError) in
      guard let path = element.path else {
        throw Parameters.refuse("at", "must hold index paths [section, row] of integers")
      }
      return (section: path.section, row: path.row)
    }
    return try feed.paths(ofRows: rows, commit.pace)
  }
}
