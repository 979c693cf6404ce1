/// One mutation of a tree of feeds.
enum TreeOperation {
  enum Place {
    case end
    case index(Int)
    case before(String)
    case after(String)
  }

  enum Child {
    case index(Int)
    case name(String)
  }

  /// A merge patch of the element with an identity or at a row: it sets `n` and may remove `v`.
  struct Patch {
    enum Key {
      case id(Int)
      case row(Int)
      /// The only element of a single.
      case only
    }

    let key: Key
    let n: Int
    let removesV: Bool

    var json: String {
      let patch = "\"patch\":{\"n\":\(n)\(removesV ? ",\"v\":null" : "")}"
      return switch key {
      case .id(let id): "\"id\":\(id),\(patch)"
      case .row(let row): "\"at\":\(row),\(patch)"
      case .only: patch
      }
    }

    func merged(into element: TreeElement) -> TreeElement {
      var merged = element
      merged.n = n
      if removesV { merged.v = nil }
      return merged
    }
  }

  case insert(String, [TreeElement], at: [Int]?)
  case remove(String, at: [Int])
  case replace(String, [TreeElement], at: [Int])
  case move(String, from: Int, to: Int)
  case moveByID(String, Int, to: Int)
  case set(String, [TreeElement])
  case put(String, TreeElement?)
  case update(String, [TreeElement])
  case patch(String, [Patch])
  case delete(String, [Int])
  /// Deletes the elements with this `v`.
  case deleteWhere(String, v: Int)
  case insertChild(String, String, Place)
  case removeChild(String, Child)
  case activate(String, Child)
  case define(TreeDefinition, replace: Bool)
  case undefine(String)

  /// The feed that it is about.
  var feed: String {
    switch self {
    case .insert(let feed, _, _), .remove(let feed, _), .replace(let feed, _, _), .move(let feed, _, _),
      .moveByID(let feed, _, _),
      .set(let feed, _), .put(let feed, _), .update(let feed, _), .patch(let feed, _), .deleteWhere(let feed, _),
      .delete(let feed, _), .insertChild(let feed, _, _),
      .removeChild(let feed, _), .activate(let feed, _), .undefine(let feed):
      feed
    case .define(let definition, _): definition.name
    }
  }

  var method: String {
    switch self {
    case .insert: "insert"
    case .remove: "remove"
    case .replace: "replace"
    case .move, .moveByID: "move"
    case .set: "set"
    case .put: "put"
    case .update: "update"
    case .patch: "patch"
    case .delete, .deleteWhere: "delete"
    case .insertChild: "insertChild"
    case .removeChild: "removeChild"
    case .activate: "activate"
    case .define: "define"
    case .undefine: "undefine"
    }
  }

  var params: String {
    if case .define(let definition, let replace) = self { return definition.members(replace: replace) }
    return "{\"feed\":\"\(feed)\"\(rest)}"
  }

  /// As an operation of a transaction.
  var json: String { "{\"method\":\"\(method)\",\"params\":\(params)}" }

  private var rest: String {
    switch self {
    case .insert(_, let elements, let rows):
      ",\"elements\":\(Self.array(elements))" + (rows.map { ",\"at\":\($0)" } ?? "")
    case .remove(_, let rows): ",\"at\":\(rows)"
    case .replace(_, let elements, let rows): ",\"elements\":\(Self.array(elements)),\"at\":\(rows)"
    case .move(_, let from, let to): ",\"from\":\(from),\"to\":\(to)"
    case .moveByID(_, let id, let to): ",\"id\":\(id),\"to\":\(to)"
    case .set(_, let elements), .update(_, let elements): ",\"elements\":\(Self.array(elements))"
    case .put(_, let element): ",\"element\":\(element?.text ?? "null")"
    case .patch(_, let patches) where patches.count == 1: ",\(patches[0].json)"
    case .patch(_, let patches):
      ",\"patches\":[" + patches.map { "{\($0.json)}" }.joined(separator: ",") + "]"
    case .delete(_, let ids): ",\"ids\":\(ids)"
    case .deleteWhere(_, let v): ",\"where\":\"@.v == \(v)\""
    case .insertChild(_, let child, let place): ",\"child\":\"\(child)\"" + Self.text(place)
    case .removeChild(_, .index(let index)): ",\"at\":\(index)"
    case .removeChild(_, .name(let name)), .activate(_, .name(let name)): ",\"child\":\"\(name)\""
    case .activate(_, .index(let index)): ",\"child\":\(index)"
    case .define, .undefine: ""
    }
  }

  private static func array(_ elements: [TreeElement]) -> String {
    "[" + elements.map(\.text).joined(separator: ",") + "]"
  }

  private static func text(_ place: Place) -> String {
    switch place {
    case .end: ""
    case .index(let index): ",\"at\":\(index)"
    case .before(let name): ",\"before\":\"\(name)\""
    case .after(let name): ",\"after\":\"\(name)\""
    }
  }
}
