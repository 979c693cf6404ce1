import FeedJSON
import FeedModel
import FeedSystem
import TestSupport
import Testing

@testable import FeedEngine
@testable import ReferenceModel

/// For each limit a client that uses one less than it allows, as much, and one more.
///
/// The tests compare the table with the limits of the daemon: a new limit needs a case here.
@Suite("Limits") struct LimitFamilyTests {
  typealias Request = (method: String, params: String)

  /// What a client does to a limit.
  struct Case: Sendable, CustomTestStringConvertible {
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

  private static func text(_ count: Int) -> String { "\"" + String(repeating: "x", count: count) + "\"" }

  private static func name(_ count: Int) -> String { String(repeating: "x", count: count) }

  private static func list(_ count: Int, _ item: (Int) -> String = { "\($0)" }) -> String {
    "[" + (0..<max(count, 0)).map(item).joined(separator: ",") + "]"
  }

  private static func requests(
    _ limit: String, _ what: String, _ value: Int?, _ use: @escaping @Sendable (Int) -> [Request]
  )
    -> Case
  {
    Case(limit: limit, what: what, value: value, use: .requests(use))
  }

  private static func effect(
    _ limit: String, _ what: String, _ value: Int?, other: @escaping @Sendable (inout Limits) -> Void = { _ in },
    _ use: @escaping @Sendable (EngineHarness, Int) -> Bool
  ) -> Case {
    Case(limit: limit, what: what, value: value, other: other, use: .effect(use))
  }

  private static func array(_ name: String) -> Request { ("define", #"{"feed":"\#(name)","kind":"array"}"#) }

  private static func composed(_ name: String, _ children: [String]) -> Request {
    ("define", #"{"feed":"\#(name)","kind":"composed","children":\#(list(children.count) { "\"\(children[$0])\"" })}"#)
  }

  private static let collection: Request = ("define", #"{"feed":"c","kind":"collection"}"#)

  /// Selects so many rows in two views of one feed.
  private static func selections(_ count: Int) -> [Request] {
    [array("a"), ("insert", #"{"feed":"a","elements":\#(list(count))}"#)]
      + ["v", "w"].map { ("define", #"{"feed":"\#($0)","kind":"view","of":"a"}"#) }
      + [("select", #"{"feed":"w","at":[0,0]}"#)]
      + [("select", #"{"feed":"v","at":\#(list(count - 1) { "[0,\($0)]" })}"#)]
  }

  private static func sorted(_ name: String, of source: String) -> Request {
    ("define", #"{"feed":"\#(name)","kind":"view","of":"\#(source)","sort":[{"by":"$"}]}"#)
  }

  /// A view of two rows, and a feed whose rows would make `count` with these.
  private static func viewRows(_ count: Int) -> [Request] {
    [array("a"), array("b"), ("insert", #"{"feed":"a","elements":[1,2]}"#), sorted("v", of: "a")]
      + [("insert", #"{"feed":"b","elements":\#(list(count - 2))}"#)]
  }

  private static func slots(_ members: String) -> [Request] {
    [array("a"), ("define", #"{"feed":"s","kind":"slots",\#(members)}"#)]
  }

  // MARK: Limits of requests

  /// Limits whose requests use exactly as much as is said.
  private static let counted: [Case] = [
    requests("maxDepth", "levels of an element", 12) { count in
      let deep = String(repeating: "[", count: count - 2) + String(repeating: "]", count: count - 2)
      return [array("a"), ("insert", #"{"feed":"a","element":\#(deep)}"#)]
    },
    requests("maxFeeds", "feeds", 3) { count in (0..<count).map { array("f\($0)") } },
    requests("maxFeedsPerUser", "feeds", 3) { count in (0..<count).map { array("f\($0)") } },
    requests("maxBins", "bins", 3) { count in
      [("define", #"{"feed":"c","kind":"collection","bins":\#(list(count) { #"{"name":"b\#($0)"}"# })}"#)]
    },
    requests("maxSections", "children", 3) { count in
      (0..<count).map { array("f\($0)") } + [composed("p", (0..<count).map { "f\($0)" })]
    },
    requests("maxSections", "sections by value", 3) { count in
      [
        ("define", #"{"feed":"c","kind":"collection","section":"$.s"}"#),
        ("update", #"{"feed":"c","elements":\#(list(count) { #"{"id":\#($0),"s":\#($0)}"# })}"#),
      ]
    },
    requests("maxRepeats", "parents of one feed", 3) { count in
      [array("a")] + (0..<count).map { composed("p\($0)", ["a"]) } + [composed("top", (0..<count).map { "p\($0)" })]
    },
    requests("maxLevels", "feeds in feeds", 3) { count in
      [array("f0")] + (1...count).map { composed("f\($0)", ["f\($0 - 1)"]) }
    },
    requests("maxElements", "elements", 3) { count in
      [array("a"), ("insert", #"{"feed":"a","elements":\#(list(count))}"#)]
    },
    requests("maxElementsPerUser", "elements of two feeds", 3) { count in
      [
        array("a"), array("b"), ("insert", #"{"feed":"a","element":1}"#),
        ("insert", #"{"feed":"b","elements":\#(list(count - 1))}"#),
      ]
    },
    requests("maxTotalElements", "elements of two feeds", 3) { count in
      [
        array("a"), collection, ("insert", #"{"feed":"a","element":1}"#),
        ("update", #"{"feed":"c","elements":\#(list(count - 1) { #"{"id":\#($0)}"# })}"#),
      ]
    },
    requests("maxElementBytes", "bytes of an element", 60) { count in
      [array("a"), ("insert", #"{"feed":"a","element":\#(text(count - 2))}"#)]
    },
    requests("maxElementBytes", "bytes of a patched element", 60) { count in
      [collection, ("update", #"{"feed":"c","element":{"id":1}}"#)]
        + [("patch", #"{"feed":"c","id":1,"patch":{"a":\#(text(count - 15))}}"#)]
    },
    requests("maxDefinitionBytes", "bytes of a definition", 1024) { count in
      let members = #"{"feed":"a","kind":"array""#
      return [("define", members + String(repeating: " ", count: count - members.utf8.count - 1) + "}")]
    },
    requests("maxDefinitionBytes", "bytes of a definition in a transaction", 1024) { count in
      let members = #"{"feed":"a","kind":"array""#
      let padded = members + String(repeating: " ", count: count - members.utf8.count - 1) + "}"
      return [("transaction", #"{"ops":[{"method":"define","params":\#(padded)}]}"#)]
    },
    requests("maxDefinitionEntries", "children", 3) { count in
      (0..<count).map { array("f\($0)") } + [composed("p", (0..<count).map { "f\($0)" })]
    },
    requests("maxDefinitionEntries", "contents", 3) { count in
      let contents = (0..<count).map { "\"t\($0)\":\"f\($0)\"" }.joined(separator: ",")
      return (0..<count).map { array("f\($0)") }
        + slots(#""contents":{\#(contents)},"pattern":["t0"]"#)
    },
    requests("maxDefinitionEntries", "pattern", 3) { count in
      slots(#""contents":{"x":"a"},"pattern":\#(list(count) { _ in "\"x\"" })"#)
    },
    requests("maxDefinitionEntries", "header", 3) { count in
      slots(#""contents":{"x":"a"},"pattern":["x"],"header":\#(list(count) { _ in "\"x\"" })"#)
    },
    requests("maxDefinitionEntries", "repeatables", 3) { count in
      slots(#""contents":{"x":"a"},"pattern":["x"],"repeatables":\#(list(count) { "\"t\($0)\"" })"#)
    },
    requests("maxDefinitionEntries", "fixed", 3) { count in
      slots(
        #""contents":{"x":"a"},"pattern":["x"],"fixed":{\#((0..<count).map { "\"\($0)\":\"y\"" }.joined(separator: ","))}"#
      )
    },
    requests("maxWatches", "watches", 3) { count in
      (0..<count).map { array("f\($0)") } + (0..<count).map { ("watch", #"{"feed":"f\#($0)"}"#) }
    },
    requests("maxRequestRows", "inserted rows", 3) { count in
      [array("a"), ("insert", #"{"feed":"a","elements":\#(list(count))}"#)]
    },
    requests("maxRequestRows", "deleted rows", 3) { count in
      [collection] + (0..<count).map { ("update", #"{"feed":"c","element":{"id":\#($0)}}"#) }
        + [("delete", #"{"feed":"c","where":"@.id >= 0"}"#)]
    },
    requests("maxSelected", "rows selected at once", 3) { count in
      [array("a"), ("insert", #"{"feed":"a","elements":\#(list(count))}"#), ("select", #"{"feed":"a","all":true}"#)]
    },
    requests("maxSelected", "rows selected one after another", 3) { count in
      [array("a"), ("insert", #"{"feed":"a","elements":\#(list(count))}"#)]
        + (0..<count).map { ("select", #"{"feed":"a","at":[0,\#($0)]}"#) }
    },
    requests("maxSelectedPerUser", "selected rows of two views", 3) { count in
      selections(count)
    },
    requests("maxTotalSelected", "selected rows of two views", 3) { count in
      selections(count)
    },
    requests("maxViewRowsPerUser", "rows that a new view keeps", 6) { count in
      viewRows(count) + [sorted("w", of: "b")]
    },
    requests("maxViewRowsPerUser", "rows inserted below a view", 6) { count in
      [array("a"), sorted("v", of: "a"), ("insert", #"{"feed":"a","elements":\#(list(count))}"#)]
    },
    requests("maxTotalViewRows", "rows that a new view keeps", 6) { count in
      viewRows(count) + [sorted("w", of: "b")]
    },
    requests("maxTotalViewRows", "rows inserted below two views", 6) { count in
      [array("a"), array("b"), ("insert", #"{"feed":"b","elements":\#(list(3))}"#)]
        + [sorted("v", of: "a"), sorted("w", of: "b")]
        + [("insert", #"{"feed":"a","elements":\#(list(count - 3))}"#)]
    },
    requests("maxPathBytes", "bytes of a path", 40) { count in
      [collection, ("query", #"{"feed":"c","path":"$..\#(String(repeating: "x", count: count - 5))"}"#)]
    },
    requests("maxPathBytes", "bytes of the filter of a delete", 40) { count in
      [collection, ("delete", #"{"feed":"c","where":"@.\#(String(repeating: "x", count: count - 4))"}"#)]
    },
    requests("maxFilterBytes", "memory of the filter of a bin", 114) { count in
      [("define", #"{"feed":"c","kind":"collection","bins":[{"name":"b","filter":"@.\#(name(count - 108))"}]}"#)]
    },
    requests("maxFilterBytes", "memory of the filters of two bins", 222) { count in
      let bins = #"[{"name":"a","filter":"@.xxx"},{"name":"b","filter":"@.\#(name(count - 219))"}]"#
      return [("define", #"{"feed":"c","kind":"collection","bins":\#(bins)}"#)]
    },
    requests("maxFilterBytes", "memory of the filter of a view", 114) { count in
      [array("a"), ("define", #"{"feed":"v","kind":"view","of":"a","filter":"@.\#(name(count - 108))"}"#)]
    },
    requests("maxFilterBytes", "bytes of a long filter", 16_000) { count in
      let bin = #"{"name":"b","filter":"@.\#(name((count + 7) / 8 - 2))"}"#
      return [("define", #"{"feed":"c","kind":"collection","bins":[\#(bin)]}"#)]
    },
    requests("maxFilterBytes", "memory of a query", 200) { count in
      [collection, ("query", #"{"feed":"c","path":"$[?@.\#(name(count - 192))]"}"#)]
    },
    requests("maxFilterBytes", "memory of the filter of a delete", 114) { count in
      [collection, ("delete", #"{"feed":"c","where":"@.\#(name(count - 108))"}"#)]
    },
    requests("maxFrame", "bytes of an answer", 5000) { count in
      let around = #"{"jsonrpc":"2.0","id":1,"result":{"nodes":["","",""],"revision":3}}"#.utf8.count
      return [
        array("a"), ("insert", #"{"feed":"a","elements":[\#(text(1500)),\#(text(1500))]}"#),
        ("insert", #"{"feed":"a","element":\#(text(count - around - 3000))}"#),
        ("query", #"{"feed":"a","path":"$[*]"}"#),
      ]
    },
  ]

  /// Limits on work, whose requests use what the daemon counts.
  private static let measured: [Case] = [
    requests("maxDefinitionBytesPerUser", "bytes of definitions", nil) { _ in
      [array("a"), collection, composed("p", ["a", "c"])]
    },
    requests("maxTotalDefinitionBytes", "bytes of definitions", nil) { _ in
      [array("a"), collection, composed("p", ["a", "c"])]
    },
    requests("maxBytes", "bytes of elements", nil) { _ in
      [array("a")] + [1000, 200].map { ("insert", #"{"feed":"a","element":\#(text($0))}"#) }
    },
    requests("maxBytesPerUser", "bytes of two feeds", nil) { _ in
      [array("a"), array("b")] + ["a", "b"].map { ("insert", #"{"feed":"\#($0)","element":\#(text(1000))}"#) }
    },
    requests("maxTotalBytes", "bytes of two feeds", nil) { _ in
      [array("a"), array("b")] + ["a", "b"].map { ("insert", #"{"feed":"\#($0)","element":\#(text(1000))}"#) }
    },
    requests("maxQueryBytes", "bytes of joined elements", nil) { _ in
      [
        array("a"), ("insert", #"{"feed":"a","elements":[1,\#(text(2000))]}"#),
        ("query", #"{"feed":"a","path":"$..id"}"#),
      ]
    },
    requests("maxQuerySteps", "steps of a query", nil) { _ in
      [
        array("a"), ("insert", #"{"feed":"a","element":\#(list(2000))}"#),
        ("query", #"{"feed":"a","path":"$[?@[?@ == 1999]]"}"#),
      ]
    },
    requests("maxQuerySteps", "steps of a query over a joined document", nil) { _ in
      [
        array("a"), ("insert", #"{"feed":"a","element":\#(list(2000))}"#),
        ("query", #"{"feed":"a","path":"$[*][?@ == $[0][1999]]"}"#),
      ]
    },
    requests("maxQuerySteps", "steps of the filter of a bin", nil) { _ in
      [
        ("define", #"{"feed":"c","kind":"collection","bins":[{"name":"x","filter":"@.v[?@ == 1999]"}]}"#),
        ("update", #"{"feed":"c","element":{"id":1,"v":\#(list(2000))}}"#),
      ]
    },
    requests("maxRequestSteps", "steps of the filter of a bin over many elements", nil) { _ in
      [
        ("define", #"{"feed":"c","kind":"collection","bins":[{"name":"x","filter":"@.v[?@ == 1]"}]}"#),
        ("update", #"{"feed":"c","elements":\#(list(40) { #"{"id":\#($0),"v":\#(list(50))}"# })}"#),
      ]
    },
    requests("maxRequestSteps", "steps of the filter of a delete", nil) { _ in
      [
        collection, ("update", #"{"feed":"c","elements":\#(list(40) { #"{"id":\#($0),"v":\#(list(50))}"# })}"#),
        ("delete", #"{"feed":"c","where":"@.v[?@ == 49]"}"#),
      ]
    },
    requests("maxRequestSteps", "steps of patches of one long element", nil) { _ in
      [
        collection, ("update", #"{"feed":"c","element":{"id":1,"v":\#(list(2000))}}"#),
        ("patch", #"{"feed":"c","patches":\#(list(9) { #"{"id":1,"patch":{"n":\#($0)}}"# })}"#),
      ]
    },
    requests("maxDerivedSteps", "steps of two views", nil) { _ in
      [array("a")] + (0..<2).map { ("define", #"{"feed":"v\#($0)","kind":"view","of":"a","filter":"@..[?@ == 1]"}"#) }
    },
    requests("maxDerivedSteps", "steps of a slots feed", nil) { _ in
      slots(#""contents":{"x":"a"},"pattern":["x"],"fixed":{"1":"y","2":"y"}"#)
    },
  ]

  // MARK: Limits of connections and times

  private static func answersPing(_ harness: EngineHarness, _ id: ConnectionID) -> Bool {
    harness.ask(id, "ping").contains(#"{"jsonrpc":"2.0","id":1,"result":{}}"#)
  }

  /// The reason of the `bye` that a connection got; nil if it is open.
  private static func bye(_ harness: EngineHarness, _ id: ConnectionID) -> String? {
    harness.isOpen(id) ? nil : harness.take(id).last?.json?["params"]?["reason"]?.string ?? "none"
  }

  /// Whether a watch that has seen the first of two changes resumes after `seconds`.
  private static func resumes(_ harness: EngineHarness, after seconds: Int) -> Bool {
    let id = harness.connect()
    _ = harness.ask(id, array("a").method, array("a").params)
    let since = harness.ask(id, "insert", #"{"feed":"a","element":1}"#).first?.json?["result"]?["revision"]?.int ?? -1
    _ = harness.ask(id, "insert", #"{"feed":"a","element":2}"#)
    for _ in 0..<seconds { harness.advance(seconds: 1) }
    let answer = harness.ask(id, "watch", #"{"feed":"a","since":{"epoch":"test","revision":\#(since)}}"#).first?.json
    return answer?["result"]?["resumed"]?.bool == true
  }

  private static let connections: [Case] = [
    effect("maxFrame", "bytes of a request", 4096) { harness, count in
      let id = harness.connect()
      let request = #"{"jsonrpc":"2.0","id":1,"method":"ping"}"#
      harness.send(id, request + String(repeating: " ", count: count - request.utf8.count))
      let frames = harness.take(id).compactMap(\.json)
      if frames.first?["result"] != nil { return true }
      #expect(frames.map { $0.errorCode } == [-32600, nil])
      #expect(frames.last?["params"]?["reason"]?.string == "badFrame" && !harness.isOpen(id))
      return false
    },
    effect("maxConnections", "connections", 3, other: { $0.reservedConnections = 0 }) { harness, count in
      let ids = (0..<count).map { harness.connect(uid: UInt32($0 + 1)) }
      harness.turn()
      #expect(ids.dropLast().allSatisfy { answersPing(harness, $0) })
      let reason = bye(harness, ids[count - 1])
      #expect(reason == nil || reason == "limit")
      return reason == nil
    },
    effect("maxConnectionsPerUser", "connections of a user", 3) { harness, count in
      let ids = (0..<count).map { _ in harness.connect(uid: 7) }
      harness.turn()
      #expect(ids.dropLast().allSatisfy { answersPing(harness, $0) })
      let reason = bye(harness, ids[count - 1])
      #expect(answersPing(harness, harness.connect(uid: 8)))
      #expect(reason == nil || reason == "limit")
      return reason == nil
    },
    effect("reservedConnections", "connections of root beyond the limit", 2, other: { $0.maxConnections = 1 }) {
      harness, count in
      _ = harness.connect(uid: 7)
      let ids = (0..<count).map { _ in harness.connect(uid: 0) }
      harness.turn()
      #expect(ids.dropLast().allSatisfy { answersPing(harness, $0) })
      let reason = bye(harness, ids[count - 1])
      #expect(reason == nil || reason == "limit")
      return reason == nil
    },
    effect("maxQueue", "bytes that are not read", 4096) { harness, count in
      let id = harness.connect()
      _ = harness.ask(id, array("a").method, array("a").params)
      let around = #"{"jsonrpc":"2.0","id":1,"result":{"nodes":[""],"revision":2}}"#.utf8.count + 4
      _ = harness.ask(id, "insert", #"{"feed":"a","element":\#(text(count - around))}"#)
      harness.stopped = [id]
      harness.send(id, #"{"jsonrpc":"2.0","id":1,"method":"query","params":{"feed":"a","path":"$[0]"}}"#)
      let wants = harness.wantsInput(id)
      harness.resume(id)
      #expect(harness.take(id).first?.utf8.count == count - 4)
      #expect(answersPing(harness, id))
      return wants
    },
    effect("maxQueuePerUser", "bytes of incomplete frames", 9000) { harness, count in
      let ids = [harness.connect(uid: 7), harness.connect(uid: 7)]
      let half = EngineHarness.frame(text(100_000))
      harness.deliver(ids[0], Array(half.prefix(5000)))
      harness.deliver(ids[1], Array(half.prefix(count - 5000)))
      let reason = bye(harness, ids[0])
      #expect(reason == nil || reason == "quota")
      #expect(harness.isOpen(ids[1]))
      return reason == nil
    },
    effect("frameTimeout", "seconds before an incomplete frame is closed", 5) { harness, count in
      let id = harness.connect()
      harness.deliver(id, [0, 0])
      // The limit is checked once a second; a frame is closed when it is reached.
      for _ in 0..<count - 1 { harness.advance(seconds: 1) }
      let reason = bye(harness, id)
      #expect(reason == nil || reason == "frameTimeout")
      return reason == nil
    },
    effect("bookmarkInterval", "seconds without a change", 5) { harness, count in
      let (id, other) = (harness.connect(), harness.connect())
      for feed in ["a", "b"] { _ = harness.ask(other, array(feed).method, array(feed).params) }
      _ = harness.ask(id, "watch", #"{"feed":"a"}"#)
      _ = harness.ask(other, "insert", #"{"feed":"b","element":1}"#)
      for _ in 0..<count - 1 { harness.advance(seconds: 1) }
      return !harness.take(id).contains { $0.json?["method"]?.string == "bookmark" }
    },
    effect("historySeconds", "seconds since a change", 5) { harness, count in resumes(harness, after: count) },
  ]

  /// Limits whose setting alone decides.
  private static let settings: [Case] =
    ["historyBytes", "maxHistoryBytes"].map { name in
      effect(name, "bytes of recorded changes", nil) { harness, _ in resumes(harness, after: 2) }
    } + [
      effect("maxViewSteps", "steps of the filter of a view", nil) { harness, _ in
        let id = harness.connect()
        for (method, params) in [
          array("a"), ("define", #"{"feed":"v","kind":"view","of":"a","filter":"@..[?@ == 1499]"}"#),
          ("insert", #"{"feed":"a","element":\#(list(1500))}"#),
        ] { #expect(harness.ask(id, method, params).first?.json?["result"] != nil) }
        return harness.ask(id, "describe", #"{"feed":"v"}"#).first?.json?["result"]?["count"]?.int == 1
      }
    ]

  static let cases = counted + measured + connections + settings

  // MARK: Tests

  @Test("every limit has a case, and the page of limits says which ones refuse requests")
  func table() throws {
    #expect(Set(Self.cases.map(\.limit)) == Set(Limits.all.map(\.name)))
    let page = try SmallFile.read("\(BuildProducts.packageFolder)/Protocol/limits.md")
    let rows = String(decoding: page, as: UTF8.self).split(separator: "\n").filter {
      $0.hasPrefix("| `") && $0.contains("-32007")
    }
    let refusing = Self.cases.filter { if case .requests = $0.use { true } else { false } }
    #expect(Set(rows.map { String($0.dropFirst(3).prefix { $0 != "`" }) }) == Set(refusing.map(\.limit)))
  }

  @Test("below and at a limit a request is executed, above it is refused and changes nothing", arguments: cases)
  func boundary(_ this: Case) throws {
    let limit = try #require(Limits.all.first { $0.name == this.limit })
    func isAccepted(_ setting: Int, _ use: Int, checks: Bool) -> Bool {
      var limits = Limits()
      this.other(&limits)
      limits[keyPath: limit.keyPath] = setting
      let harness = EngineHarness(limits: limits)
      switch this.use {
      case .requests(let requests): return Self.accepts(harness, requests(use), limit, setting, checks: checks)
      case .effect(let hasEffect): return hasEffect(harness, use)
      }
    }
    if let value = this.value {
      for (use, isExpected) in [(value - 1, true), (value, true), (value + 1, false)] {
        #expect(isAccepted(value, use, checks: true) == isExpected, "\(use) of \(value)")
      }
    } else {
      var (refused, accepted) = (0, Limits()[keyPath: limit.keyPath])
      while accepted - refused > 1 {
        let middle = (accepted + refused) / 2
        if isAccepted(middle, middle, checks: false) { accepted = middle } else { refused = middle }
      }
      #expect(accepted > 10, "the requests use nothing of the limit")
      for (setting, isExpected) in [(accepted + 1, true), (accepted, true), (accepted - 1, false)] {
        #expect(isAccepted(setting, accepted, checks: true) == isExpected, "\(accepted) of \(setting)")
      }
    }
  }

  /// Sends the requests one after the other. Returns false if one is refused.
  ///
  /// - Parameter checks: whether to check that the error names the limit and changed nothing.
  private static func accepts(
    _ harness: EngineHarness, _ requests: [Request], _ limit: LimitDescription, _ setting: Int, checks: Bool
  ) -> Bool {
    let (id, other) = (harness.connect(), harness.connect(uid: 0))
    for (method, params) in requests {
      let before = checks ? state(harness, other) : []
      let answers = harness.ask(id, method, params).compactMap(\.json).filter { $0["method"] == nil }
      guard let answer = answers.first, answers.count == 1 else {
        Issue.record("\(answers.count) answers to \(method)")
        return false
      }
      if answer["result"] != nil { continue }
      if checks {
        let message = answer["error"]?["message"]?.string ?? ""
        #expect(answer.errorCode == -32007, "\(answer)")
        #expect(answer.errorData?["limit"]?.string == limit.name, "\(answer)")
        #expect(answer.errorData?["value"]?.int == setting, "\(answer)")
        #expect(message.contains("limit \(limit.name) (\(grouped(setting))) exceeded: "), "\(message)")
        #expect(message.hasSuffix("--\(limit.flag)"), "\(message)")
        #expect(state(harness, other) == before)
        #expect(answersPing(harness, id) && answersPing(harness, other))
      }
      return false
    }
    return true
  }

  /// Everything that a client can see of the feeds.
  private static func state(_ harness: EngineHarness, _ id: ConnectionID) -> [String] {
    harness.engine.catalog.feeds.keys.sorted().flatMap { harness.ask(id, "verify", #"{"feed":"\#($0)"}"#) }
      + harness.ask(id, "feeds")
  }
}
