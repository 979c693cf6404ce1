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

  case insert(String, [TreeElement], at: [Int]?)
  case remove(String, at: [Int])
  case replace(String, [TreeElement], at: [Int])
  case move(String, from: Int, to: Int)
  case set(String, [TreeElement])
  case put(String, TreeElement?)
  case update(String, [TreeElement])
  case delete(String, [Int])
  case insertChild(String, String, Place)
  case removeChild(String, Child)
  case activate(String, Child)
  case define(TreeDefinition, replace: Bool)
  case undefine(String)

  /// The feed that it is about.
  var feed: String {
    switch self {
    case .insert(let feed, _, _), .remove(let feed, _), .replace(let feed, _, _), .move(let feed, _, _),
      .set(let feed, _), .put(let feed, _), .update(let feed, _), .delete(let feed, _), .insertChild(let feed, _, _),
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
    case .move: "move"
    case .set: "set"
    case .put: "put"
    case .update: "update"
    case .delete: "delete"
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
    case .set(_, let elements), .update(_, let elements): ",\"elements\":\(Self.array(elements))"
    case .put(_, let element): ",\"element\":\(element?.text ?? "null")"
    case .delete(_, let ids): ",\"ids\":\(ids)"
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
