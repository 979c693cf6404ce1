import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The methods on arrays and singles (seed 003).
extension Engine {
  func edit(_ method: Method, _ parameters: Parameters, of session: Session) throws(FeedError) {
    let feed = try feed(parameters, of: session)
    let shape: ListKind.Shape = method == .put ? .single : .array
    guard let list = feed.kind as? ListKind, list.shape == shape else {
      throw .wrongKind(feed: feed.name, kind: feed.kindName, wanted: shape.rawValue)
    }
    try checkAllowed(method, feed)
    switch method {
    case .insert:
      let elements = try elements(parameters)
      try list.insert(elements, at: try places(parameters, for: elements), in: catalog.commit)
    case .remove:
      try list.remove(at: try rows(parameters), in: catalog.commit)
    case .replace:
      let elements = try elements(parameters)
      guard let places = try places(parameters, for: elements) else {
        throw Parameters.refuse("at", "is missing: give a row for each element")
      }
      try list.replace(elements, at: places, in: catalog.commit)
    case .move:
      try list.move(
        from: try parameters.integer("from"), to: try parameters.integer("to"), in: catalog.commit)
    default:
      let element = try parameters.required("element", "the element, or null to empty the feed")
      try list.put(element.isNull ? nil : element, in: catalog.commit)
    }
  }

  /// What a feed's definition does not allow is refused; `put` and `set` state the whole content and are its owner's.
  private func checkAllowed(_ method: Method, _ feed: Feed) throws(FeedError) {
    if method == .move && !feed.behaviours.movable {
      throw .permissionDenied(reason: "feed \"\(feed.name)\" is defined with \"movable\": false")
    }
    if [.insert, .remove, .replace].contains(method) && !feed.behaviours.editable {
      throw .permissionDenied(
        reason: "feed \"\(feed.name)\" is defined with \"editable\": false; its owner may use set")
    }
  }

  private func elements(_ parameters: Parameters) throws(FeedError) -> [JSONView] {
    try parameters.refuseBoth("element", "elements")
    if let element = parameters.member("element") { return [element] }
    return Array(try parameters.array("elements", "an array of elements").elements)
  }

  private func rows(_ parameters: Parameters) throws(FeedError) -> [Int] {
    let at = try parameters.required("at", "rows, as an array")
    if at.kind == .number { return [try row(at)] }
    guard at.kind == .array else { throw Parameters.refuse("at", "must be an array of rows") }
    var rows: [Int] = []
    for element in at.elements { rows.append(try row(element)) }
    return rows
  }

  /// The row for each element; one number for several elements means that row and those after it; nil when absent.
  private func places(_ parameters: Parameters, for elements: [JSONView]) throws(FeedError) -> [Int]? {
    guard let at = parameters.member("at") else { return nil }
    if at.kind == .number {
      let first = try row(at)
      return elements.indices.map { first &+ $0 }
    }
    let rows = try rows(parameters)
    guard rows.count == elements.count else {
      throw Parameters.refuse("at", "has \(rows.count) rows for \(elements.count) elements; give one for each")
    }
    return rows
  }

  private func row(_ value: JSONView) throws(FeedError) -> Int {
    guard let row = value.int else { throw Parameters.refuse("at", "must hold whole numbers: rows from 0 on") }
    return row
  }
}
