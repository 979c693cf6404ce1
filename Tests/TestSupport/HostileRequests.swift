/// Requests that exercise every method with every parameter, for tests that replace one value by a hostile one.
///
/// The tests compare the table with the methods of the daemon and with `Protocol/openrpc.json`: a new method or parameter
/// needs a request here.
public enum HostileRequests {
  /// A valid request. It succeeds once `feeds` exist.
  public struct Example: Sendable, CustomStringConvertible {
    public let method: String
    /// The parameters: names and JSON texts.
    public let members: [(name: String, value: String)]

    init(
      _ method: String, _ members: KeyValuePairs<String, String> = [:],
      with options: [(name: String, value: String)] = []
    ) {
      self.method = method
      self.members = members.map { ($0.key, $0.value) } + options
    }

    /// The parameters as a JSON object.
    public var params: String { Self.object(members) }

    /// The parameters with another value of one of them; without it if `value` is nil.
    public func params(with name: String, _ value: String?) -> String {
      Self.object(members.compactMap { $0.name == name ? value.map { (name, $0) } : $0 })
    }

    /// The parameters with one more member behind them, which may have the name of another one.
    public func params(adding name: String, _ value: String) -> String { Self.object(members + [(name, value)]) }

    /// The parameters behind one more member.
    public func params(after name: String, _ value: String) -> String { Self.object([(name, value)] + members) }

    public var description: String { "\(method) \(params)" }

    private static func object(_ members: [(name: String, value: String)]) -> String {
      "{" + members.map { "\"\($0.name)\":\($0.value)" }.joined(separator: ",") + "}"
    }
  }

  /// Feeds of each kind that a client can define, with some elements.
  public static let feeds: [Example] = [
    Example(
      "define",
      ["feed": #""c""#, "kind": #""collection""#, "bins": #"[{"name":"x","filter":"@.id > 2"},{"name":"y"}]"#]),
    Example("update", ["feed": #""c""#, "elements": #"[{"id":1},{"id":2},{"id":3},{"id":4}]"#]),
    Example("define", ["feed": #""a""#, "kind": #""array""#, "id": #""$.id""#]),
    Example("insert", ["feed": #""a""#, "elements": #"[{"id":1},{"id":2},{"id":3}]"#]),
    Example("define", ["feed": #""b""#, "kind": #""array""#]),
    Example("define", ["feed": #""s""#, "kind": #""single""#]),
    Example("put", ["feed": #""s""#, "element": #"{"n":1}"#]),
    Example("define", ["feed": #""t""#, "kind": #""segmented""#, "children": #"["a","c"]"#]),
    Example("define", ["feed": #""p""#, "kind": #""composed""#, "children": #"["a","c/x"]"#]),
    Example("define", ["feed": #""v""#, "kind": #""view""#, "of": #""c""#, "filter": #""@.id > 1""#]),
    Example(
      "define",
      [
        "feed": #""m""#, "kind": #""slots""#, "contents": #"{"x":"a","y":"b"}"#, "pattern": #"["x"]"#,
        "fixed": #"{"1":"y"}"#,
      ]),
  ]

  /// The names of `feeds`.
  public static let names = ["a", "b", "c", "m", "p", "s", "t", "v"]

  private static let fade = #""fade""#
  private static let counts = #""counts""#
  private static let condition = #"{"feed":"none","revision":null}"#
  /// The parameters of every method that is answered with a change.
  private static let options = [("animation", fade), ("result", counts), ("if", condition)]

  /// Valid requests of every method, which together have every parameter.
  public static let examples: [Example] =
    changes + definitions + [
      Example(
        "transaction",
        [
          "ops": #"[{"method":"insert","params":{"feed":"b","element":1}}]"#, "result": counts, "if": "[\(condition)]",
        ]),
      Example("select", ["feed": #""a""#, "at": "[0,1]", "if": condition]),
      Example("select", ["feed": #""a""#, "all": "true"]),
      Example("deselect", ["feed": #""a""#, "at": "[[0,1],[0,2]]", "if": condition]),
      Example("deselect", ["feed": #""a""#, "all": "true"]),
      Example("selected", ["feed": #""a""#]),
      Example("get", ["feed": #""a""#, "at": "[0,1]"]),
      Example("get", ["feed": #""c""#, "id": "1"]),
      Example("range", ["feed": #""c""#, "section": "1", "from": "1", "count": "2"]),
      Example("snapshot", ["feed": #""p""#]),
      Example("query", ["feed": #""c""#, "path": #""$[*].id""#, "places": "true"]),
      Example("verify", ["feed": #""m""#]),
      Example(
        "watch",
        [
          "feed": #""c""#, "since": #"{"epoch":"none","revision":1}"#, "initial": "false", "throttle": "10",
          "elements": "false", "spanning": "true",
        ]),
      Example("watch", ["feed": #""p""#, "ids": "true"]),
      Example("unwatch", ["feed": #""c""#]),
      Example("sync"), Example("ping"), Example("feeds"), Example("stats"), Example("clients"), Example("quotas"),
      Example("hello", ["protocol": "1", "client": #"{"name":"test"}"#]),
      Example("describe", ["feed": #""c/x""#]),
      Example("logLevel", ["level": #""notice""#]),
      Example("group", ["action": #""status""#]),
      Example("kick", ["connection": "2"]),
    ]

  private static let changes: [Example] = [
    Example("update", ["feed": #""c""#, "element": #"{"id":1,"n":2}"#], with: options),
    Example("update", ["feed": #""c""#, "elements": #"[{"id":1,"n":2},{"id":9}]"#]),
    Example("patch", ["feed": #""c""#, "id": "1", "patch": #"{"n":3}"#], with: options),
    Example("update", ["feed": #""a""#, "elements": #"[{"id":1},{"id":2}]"#, "where": #""@.id > 0""#]),
    Example("update", ["feed": #""c""#, "element": #"{"id":9}"#, "absent": "true"]),
    Example("patch", ["feed": #""a""#, "at": "0", "patch": #"{"n":3}"#, "where": #""!@.n""#]),
    Example("patch", ["feed": #""s""#, "patch": #"{"n":3}"#, "where": #""@.n == 1""#]),
    Example("patch", ["feed": #""a""#, "patches": #"[{"id":1,"patch":{"n":3}},{"at":1,"patch":{"n":4}}]"#]),
    Example("delete", ["feed": #""c""#, "id": "1"], with: options),
    Example("delete", ["feed": #""c""#, "ids": "[1,2,77]"]),
    Example("delete", ["feed": #""c""#, "ids": "[1,2]", "where": #""@.id < 3""#]),
    Example("delete", ["feed": #""c""#, "where": #""@.id > 2""#]),
    Example("set", ["feed": #""b""#, "elements": "[1,[2]]"], with: options),
    Example("insert", ["feed": #""b""#, "element": "1", "at": "0"], with: options),
    Example("insert", ["feed": #""b""#, "elements": "[1,2]"]),
    Example("remove", ["feed": #""a""#, "at": "0"], with: options),
    Example("replace", ["feed": #""a""#, "element": #"{"id":7}"#, "at": "1"], with: options),
    Example("replace", ["feed": #""a""#, "elements": #"[{"id":7},{"id":8}]"#, "at": "1"]),
    Example("move", ["feed": #""a""#, "from": "0", "to": "2"], with: options),
    Example("move", ["feed": #""a""#, "id": "1", "to": "2", "where": #""@.id == 1""#]),
    Example("put", ["feed": #""s""#, "element": "null"], with: options),
    Example("activate", ["feed": #""t""#, "child": "1"], with: options),
    Example("insertChild", ["feed": #""t""#, "child": #""s""#, "at": "1"], with: options),
    Example("insertChild", ["feed": #""t""#, "child": #""s""#, "before": #""a""#]),
    Example("insertChild", ["feed": #""p""#, "child": #""s""#, "after": #""a""#]),
    Example("removeChild", ["feed": #""t""#, "child": #""a""#], with: options),
    Example("removeChild", ["feed": #""p""#, "at": "0"]),
  ]

  private static let sort = #"[{"by":"$.n","order":"descending"}]"#
  private static let retain = #"{"count":5,"seconds":60,"until":"$.until"}"#

  /// Definitions of every kind with every member.
  private static let definitions: [Example] = [
    Example(
      "define",
      [
        "feed": #""c""#, "kind": #""collection""#, "id": #""$.id""#, "type": #""$.t""#, "exclusive": "true",
        "bins": #"[{"name":"x","filter":"@.id > 3","sort":\#(sort)}]"#, "retain": retain, "selectable": "true",
        "multiple": "true", "editable": "true", "movable": "true", "replace": "true", "animation": fade,
        "if": condition,
      ]),
    Example(
      "define",
      ["feed": #""d""#, "kind": #""collection""#, "section": #""$.day""#, "sectionOrder": #""descending""#]),
    Example("define", ["feed": #""d""#, "kind": #""array""#, "id": #""$.id""#, "type": #""$.t""#, "retain": retain]),
    Example("define", ["feed": #""d""#, "kind": #""single""#, "type": #""$.t""#]),
    Example("define", ["feed": #""d""#, "kind": #""composed""#, "children": #"["a","c/x","v"]"#]),
    Example("define", ["feed": #""d""#, "kind": #""segmented""#, "children": #"["a","c"]"#, "current": "1"]),
    Example(
      "define",
      [
        "feed": #""d""#, "kind": #""slots""#, "contents": #"{"x":"a","y":"b"}"#, "pattern": #"["x","x"]"#,
        "repeatables": #"["x"]"#, "header": #"["y"]"#, "default": #""x""#, "fixed": #"{"0":"y","3":"y"}"#,
        "types": #""element""#,
      ]),
    Example(
      "define",
      [
        "feed": #""d""#, "kind": #""view""#, "of": #""p""#, "filter": #""@.id > 1""#, "sort": sort, "offset": "1",
        "limit": "2",
      ]),
    Example("undefine", ["feed": #""m""#, "animation": fade, "if": condition]),
  ]

  /// Values for any parameter: of every kind, empty, negative, too large, too long, too deep, and texts that many parsers
  /// read differently.
  public static let values: [String] = {
    var values = ["null", "true", "false", "\"\"", "[]", "{}", "[[]]", "[{}]", "{\"\":{}}"]
    values += ["0", "-1", "-0", "0.5", "1e-400", "1e308", "1e400", "9007199254740993", "4294967296"]
    values += ["9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616"]
    values += [
      #""\u0000""#, #""\ud800""#, #""\udc00\ud800""#, #""\ufeff""#, #""\u202e""#, "\"\u{7F}\"", #""a\u0000b""#,
    ]
    values += [#""a/b/c""#, #""/""#, #""$feeds""#, #""$[?@.x""#, #""$..[?@..[?@..*]]""#, #""c/x""#, #""none""#]
    values += [128, 129, 257, 258, 5000].map { "\"" + String(repeating: "x", count: $0) + "\"" }
    values += [
      "\"" + String(repeating: #"\u0000"#, count: 300) + "\"", "\"" + String(repeating: "é", count: 300) + "\"",
    ]
    values += [100, 600].map { String(repeating: "[", count: $0) + String(repeating: "]", count: $0) }
    values += [String(repeating: #"{"a":"#, count: 100) + "1" + String(repeating: "}", count: 100)]
    values += ["[" + Array(repeating: "0", count: 3000).joined(separator: ",") + "]"]
    values += [
      "[" + Array(repeating: "[0,0]", count: 300).joined(separator: ",") + "]", "[-1,-1]", "[0,9007199254740993]",
    ]
    values += [#"["a","a"]"#, #"[{"id":1},{"id":1}]"#, #"[{"id":1},{"id":{}}]"#, #"{"id":1,"id":2}"#]
    values += [
      #"{"feed":"a","revision":-1}"#, #"{"feed":"a","feed":null,"revision":1}"#, #"{"epoch":1,"revision":1e400}"#,
    ]
    values += [#"[{"method":"ping"}]"#, #"[{"method":"define","params":{"feed":"d"}}]"#, #"{"-1":"y","1e3":"y"}"#]
    values += ["{\"" + String(repeating: "k", count: 5000) + "\":1}"]
    return values
  }()
}
