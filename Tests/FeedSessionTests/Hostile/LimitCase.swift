import FeedModel
import Testing

@testable import EngineTesting
@testable import FeedEngine

/// What a client does to a limit.
struct LimitCase: Sendable, CustomTestStringConvertible {
  typealias Request = (method: String, params: String)

  let limit: String
  let what: String
  /// The setting; nil if the test looks for the least one that accepts the requests.
  var value: Int?
  var other: @Sendable (inout Limits) -> Void = { _ in }
  let use: Use

  enum Use: Sendable {
    /// Requests that use that much; the last one reaches the limit or exceeds it.
    case requests(@Sendable (Int) -> [Request])
    /// Whether something that uses that much has the effect of not exceeding the limit.
    case effect(@Sendable (EngineHarness, Int) -> Bool)
  }

  var testDescription: String { "\(limit): \(what)" }
}

extension LimitCase {
  static let all = counted + measured + connections + settings

  static func requests(
    _ limit: String, _ what: String, _ value: Int?, _ use: @escaping @Sendable (Int) -> [Request]
  )
    -> LimitCase
  {
    LimitCase(limit: limit, what: what, value: value, use: .requests(use))
  }

  static func effect(
    _ limit: String, _ what: String, _ value: Int?, other: @escaping @Sendable (inout Limits) -> Void = { _ in },
    _ use: @escaping @Sendable (EngineHarness, Int) -> Bool
  ) -> LimitCase {
    LimitCase(limit: limit, what: what, value: value, other: other, use: .effect(use))
  }
}

/// Texts and requests that use a limit.
extension LimitCase {
  static func text(_ count: Int) -> String { "\"" + String(repeating: "x", count: count) + "\"" }

  static func name(_ count: Int) -> String { String(repeating: "x", count: count) }

  static func list(_ count: Int, _ item: (Int) -> String = { "\($0)" }) -> String {
    "[" + (0..<max(count, 0)).map(item).joined(separator: ",") + "]"
  }

  static func array(_ name: String) -> Request { ("define", #"{"feed":"\#(name)","kind":"array"}"#) }

  static func composed(_ name: String, _ children: [String]) -> Request {
    ("define", #"{"feed":"\#(name)","kind":"composed","children":\#(list(children.count) { "\"\(children[$0])\"" })}"#)
  }

  static let collection: Request = ("define", #"{"feed":"c","kind":"collection"}"#)

  /// Selects so many rows in two views of one feed.
  static func selections(_ count: Int) -> [Request] {
    [array("a"), ("insert", #"{"feed":"a","elements":\#(list(count))}"#)]
      + ["v", "w"].map { ("define", #"{"feed":"\#($0)","kind":"view","of":"a"}"#) }
      + [("select", #"{"feed":"w","at":[0,0]}"#)]
      + [("select", #"{"feed":"v","at":\#(list(count - 1) { "[0,\($0)]" })}"#)]
  }

  static func sorted(_ name: String, of source: String) -> Request {
    ("define", #"{"feed":"\#(name)","kind":"view","of":"\#(source)","sort":[{"by":"$"}]}"#)
  }

  /// A view of two rows, and a feed whose rows would make `count` with these.
  static func viewRows(_ count: Int) -> [Request] {
    [array("a"), array("b"), ("insert", #"{"feed":"a","elements":[1,2]}"#), sorted("v", of: "a")]
      + [("insert", #"{"feed":"b","elements":\#(list(count - 2))}"#)]
  }

  static func slots(_ members: String) -> [Request] {
    [array("a"), ("define", #"{"feed":"s","kind":"slots",\#(members)}"#)]
  }
}
