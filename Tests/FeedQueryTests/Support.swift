import FeedJSON
import TestSupport

@testable import FeedQuery

/// The texts of the nodes that a path selects, in order.
func nodes(_ path: String, in json: String) throws -> [String] {
  let path = try JSONPath(parsing: path)
  return try withJSON(json) { root in nodes(path, in: root) }
}

func nodes(_ path: JSONPath, in root: JSONView) -> [String] {
  var result: [String] = []
  path.evaluate(root) { result.append(String(decoding: $0.text, as: UTF8.self)) }
  return result
}

func accepts(_ filter: String, _ element: String) throws -> Bool {
  let filter = try Filter(parsing: filter)
  return try withJSON(element) { filter.accepts($0) }
}

/// The error of a path; nil if it is valid.
func refusal(_ path: String) -> QueryError? {
  do {
    _ = try JSONPath(parsing: path)
    return nil
  } catch {
    return error
  }
}
