import FeedSystem
import FeedWire
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import FeedModel
@testable import ReferenceModel

/// Every method with every parameter, each replaced by every hostile value: one typed answer, and nothing changed if that is
/// an error.
@Suite("Hostile requests") struct HostileRequestTests {
  private static let step = TestEffort.isLong ? 1 : 7

  /// A daemon with the feeds of the examples, an attacker and another client.
  private struct Daemon {
    let harness: EngineHarness
    let attacker: ConnectionID
    let other: ConnectionID

    init() {
      harness = EngineHarness()
      other = harness.connect(uid: 0)
      // The examples refer to the second connection, which exists only to be kicked.
      _ = harness.connect(uid: 0)
      attacker = harness.connect(uid: 0)
      for feed in HostileRequests.feeds {
        let answer = harness.ask(other, feed.method, feed.params).first?.json
        expect(answer?["result"] != nil, "\(feed): \(answer?.text ?? "no answer")")
      }
    }

    /// Everything that a client can see of the feeds.
    var state: [String] {
      let feeds = HostileRequests.names.flatMap { feed in
        ["snapshot", "selected"].flatMap { harness.ask(other, $0, #"{"feed":"\#(feed)"}"#) }
      }
      return harness.ask(other, "feeds") + feeds
    }

    /// What changes with every change of a feed, without the cost of reading all rows.
    var marks: [Int] {
      let catalog = harness.engine.catalog
      let total = catalog.accounts.total
      return [
        Int(catalog.revision), total.feeds, total.elements, total.bytes, total.definitionBytes,
        harness.engine.sessions.count,
      ] + harness.engine.sessions.all.map { $0.watches.count }
        + catalog.feeds.values.map { Int($0.revision) }.sorted()
    }
  }

  /// The answers to a frame, without notifications.
  private static func answers(_ daemon: Daemon, _ frame: String) -> [Value] {
    daemon.harness.send(daemon.attacker, frame)
    return daemon.harness.take(daemon.attacker).compactMap { text in
      // Identities are echoed as they were written; the parser of the tests accepts no lone surrogates.
      let value = text.replacing(#""\ud800""#, with: #""\ufffd""#).json
      expect(value != nil, "not JSON: \(text.prefix(200))")
      return value?["method"] == nil ? value : nil
    }
  }

  @Test("each method and each parameter has a valid request that succeeds")
  func examples() throws {
    expectEqual(Set(HostileRequests.examples.map(\.method)), Set(Method.allCases.map(\.name)))
    let text = try SmallFile.read("\(BuildProducts.packageFolder)/Protocol/openrpc.json")
    let document = try require(Value(String(decoding: text, as: UTF8.self)))
    for method in document["methods"]?.items ?? [] {
      let parameters = method["params"]?.items.compactMap { $0["name"]?.string } ?? []
      let examples = HostileRequests.examples.filter { $0.method == method["name"]?.string }
      expectEqual(
        Set(parameters).subtracting(examples.flatMap { $0.members.map(\.name) }), [], "\(method["name"]?.text ?? "")")
    }
    let definitions = HostileRequests.examples.filter { $0.method == "define" }
    for kind in FeedDefinition.kinds where kind != "managed" {
      let members = definitions.filter { $0.members.contains { $0.value == "\"\(kind)\"" } }.flatMap {
        $0.members.map(\.name)
      }
      let missing = Set(KnownMembers.definition(kind) ?? []).subtracting(members)
      let common: Set = ["selectable", "multiple", "editable", "movable"]
      expectEqual(missing.subtracting(kind == "collection" ? ["section", "sectionOrder"] : common), [], "\(kind)")
    }
    for example in HostileRequests.examples {
      let daemon = Daemon()
      let frame = #"{"jsonrpc":"2.0","id":1,"method":"\#(example.method)","params":\#(example.params)}"#
      let answers = Self.answers(daemon, frame)
      expect(answers.count == 1 && answers.first?["result"] != nil, "\(example): \(answers)")
    }
  }

  @Test("a hostile value has one typed answer, and an error changes nothing", arguments: Method.allCases)
  func everyParameter(method: Method) throws {
    let codes = try Self.documentedErrors(of: method.name)
    let fresh = Daemon()
    let state = fresh.state
    var daemon = fresh
    var marks = daemon.marks
    var tried: Set<String> = []
    for example in HostileRequests.examples where example.method == method.name {
      let kind = example.members.first { $0.name == "kind" }?.value ?? ""
      for (name, value) in example.members where tried.insert(name + kind).inserted {
        var hostile = HostileRequests.values.map { example.params(with: name, $0) }
        hostile += [
          example.params(with: name, nil), example.params(adding: name, value), example.params(after: name, value),
        ]
        hostile += [example.params(adding: name, "null"), example.params(after: name, "null")]
        // A quick run tries a part of the values with each parameter, but all of them with each method that has several.
        let start = tried.count % Self.step
        hostile = stride(from: start, to: hostile.count, by: Self.step).map { hostile[$0] }
        for params in hostile {
          let answers = Self.answers(
            daemon, #"{"jsonrpc":"2.0","id":7,"method":"\#(method.name)","params":\#(params)}"#)
          let place: Comment = "\(method.name) \(params.prefix(200)): \(answers)"
          expectEqual(answers.count, 1, place)
          guard let answer = answers.first else { return }
          if answer["result"] != nil {
            expect(answer["id"]?.int == 7 && answer["error"] == nil, place)
            if method.isLogged || !daemon.harness.isOpen(daemon.attacker) || daemon.marks != marks {
              daemon = Daemon()
              marks = daemon.marks
            }
            continue
          }
          Self.check(answer, codes, place)
          expectEqual(daemon.marks, marks, place)
        }
        // The state is that of a new daemon: neither requests with an error nor those without an effect changed it.
        expectEqual(daemon.state, state, "\(method.name) \(name)")
        expectEqual(daemon.harness.ask(daemon.other, "ping"), [#"{"jsonrpc":"2.0","id":1,"result":{}}"#])
      }
    }
  }

  /// Checks an error: its code is documented, its message is one line, and `data` says what an error of that code says.
  private static func check(_ answer: Value, _ codes: Set<Int>, _ place: Comment) {
    let code = answer.errorCode ?? 0
    if answer["id"]?.text == "null" {
      expect([-32700, -32007].contains(code), place)
    } else {
      expect(answer["id"]?.int == 7 && codes.contains(code), place)
    }
    let message = answer["error"]?["message"]?.string ?? ""
    expect(!message.isEmpty && message.utf8.count <= 1100, place)
    expect(message.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value != 127 }, place)
    let member: [Int: String] = [-32602: "member", -32000: "feed", -32007: "limit", -32004: "offset", -32005: "index"]
    if let name = member[code] { expect(answer.errorData?[name] != nil, place) }
  }

  /// The codes in the table of errors of a method's page; those of the operations as well for `transaction`.
  private static func documentedErrors(of method: String) throws -> Set<Int> {
    let page = try SmallFile.read("\(BuildProducts.packageFolder)/Protocol/methods/\(method).md")
    let lines = String(decoding: page, as: UTF8.self).split(separator: "\n")
    let codes = lines.compactMap { $0.hasPrefix("| -32") ? Int($0.dropFirst(2).prefix { $0 != " " }) : nil }
    if !lines.contains(where: { $0.hasPrefix("| any |") }) { return Set(codes) }
    return try codes.reduce(into: documentedErrors(of: "define")) { $0.insert($1) }
  }

  @Test("a frame that is no request has one typed answer")
  func frames() {
    let daemon = Daemon()
    let marks = daemon.marks
    for method in Method.allCases {
      let request = #""method":"\#(method.name)","params":{}"#
      let params = ["[]", "null", "1", #""x""#].map { #""method":"\#(method.name)","params":\#($0)"# }
      let ids = ["{}", "[]", "true", "1.5", "1e400", #""\u0000""#].map { #"{"jsonrpc":"2.0","id":\#($0),\#(request)}"# }
      let versions = ["1", #""1.0""#, "null"].map { #"{"jsonrpc":\#($0),"id":7,\#(request)}"# }
      let twice = #"{"jsonrpc":"2.0","id":7,\#(request),\#(request)}"#
      let frames =
        params.map { #"{"jsonrpc":"2.0","id":7,\#($0)}"# } + ids + versions + [#"{"id":7,\#(request)}"#, twice]
      for frame in frames {
        let answers = Self.answers(daemon, frame)
        expectEqual(answers.count, 1, "\(frame): \(answers)")
        expect(answers.first?["result"] != nil || answers.first?.errorCode != nil, "\(frame): \(answers)")
      }
      expectEqual(daemon.marks, marks, "\(method.name)")
    }
  }

  @Test("a watch of a feed that cannot exist is not stored")
  func impossibleFeed() {
    let harness = EngineHarness(isDurable: true)
    let id = harness.connect()
    for name in ["", "a/b/c", "x y", String(repeating: "x", count: 5000)] {
      let answer = harness.ask(id, "watch", #"{"feed":"\#(name)"}"#).first?.json
      expectEqual(answer?.errorCode, -32000)
    }
    expect(harness.stored.isEmpty)
    harness.deliver(id, "define", #"{"feed":"a","kind":"array"}"#)
    expect(!harness.stored.isEmpty)
  }
}
