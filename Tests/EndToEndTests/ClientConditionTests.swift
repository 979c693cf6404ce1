import TestSupport
import Testing

@Suite("conditions on elements in a shell")
struct ClientConditionTests {
  /// Of many programs that claim one element at the same time, exactly one gets it.
  @Test func exactlyOneClaims() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("push", "todo", "--define", "{\"id\":\"a\"}", "{\"id\":\"b\"}")
    let claims = try (0..<12).map { number in
      try client.start("patch", "todo", "b", "{\"owner\":\(number)}", "--where", "!@.owner")
    }
    let outcomes = try claims.map { try ClientCommand.finish($0) }
    let winners = outcomes.indices.filter { outcomes[$0].code == 0 }
    expectEqual(winners.count, 1)
    expectEqual(outcomes.filter { $0.code == 1 }.count, 11)
    try expectEqual(client.run("get", "todo", "b").json["element"]["owner"].int, winners.first)
    for outcome in outcomes where outcome.code == 1 { expect(outcome.output == "" && outcome.errors != "") }
    try expectEqual(client.run("patch", "todo", "c", "{\"owner\":1}", "--where", "!@.owner").code, 1)
    try expectEqual(client.run("patch", "todo", "a", "{\"owner\":1}", "--where", "@.owner").code, 1)
    try expectEqual(client.run("patch", "todo", "a", "{\"owner\":1}", "--where", "@[").code, 1)
    try expectEqual(client.run("delete", "todo", "b", "--where", "@.owner == 99").code, 1)
    try client.succeed("delete", "todo", "b", "--where", "@.owner == \(winners[0])")
    try expectEqual(client.run("query", "todo", "$[*].id").lines, ["\"a\""])
  }

  @Test func pushesOfAbsentElements() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("push", "f", "--define", "--absent", "{\"id\":1}")
    let refused = try client.run("push", "f", "--absent", "{\"id\":2}", "{\"id\":1,\"n\":2}")
    expectEqual(refused.code, 1)
    try expectEqual(client.run("query", "f", "$[*]").lines, ["{\"id\":1}"])
    // On standard input, each element is judged.
    let lines = try client.run("push", "f", "--absent", input: "{\"id\":3}\n{\"id\":1,\"n\":2}\n{\"id\":4}\n")
    expectEqual(lines.code, 1)
    expect(lines.errors.hasPrefix("feedclient: line 2, column 1: "))
    try expectEqual(lines.json["pushed"].int, 2)
    try client.succeed("push", "f", "--where", "@.id > 2", "{\"id\":3,\"n\":1}", "{\"id\":4,\"n\":1}")
    try expectEqual(client.run("push", "f", "--where", "@.id > 3", "{\"id\":3,\"n\":2}", "{\"id\":4,\"n\":2}").code, 1)
    try expectEqual(client.run("query", "f", "$[*]").lines, ["{\"id\":1}", "{\"id\":3,\"n\":1}", "{\"id\":4,\"n\":1}"])
    try expectEqual(client.run("push", "f", "--where", "@", "--absent", "{\"id\":3}").code, 2)
    try client.succeed("define", "l", "--kind", "array")
    let list = try client.run("push", "l", "--absent", "1")
    expectEqual(list.code, 2)
    expectEqual(list.errors, "feedclient: push: --where and --absent need a collection, or an array with identity\n")
  }

  @Test("each line is judged once, also those behind a refused one") func conditionsOfLongStreams() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("push", "f", "--define", "{\"id\":100,\"n\":0}")
    func stream(_ n: Int) -> String { (1...2_000).map { "{\"id\":\($0),\"n\":\(n)}\n" }.joined() }
    let absent = try client.run("push", "f", "--absent", input: stream(1))
    expectEqual(absent.code, 1)
    try expectEqual(absent.json["pushed"].int, 1_999)
    let matching = try client.run("push", "f", "--where", "@.n == 1", input: stream(2))
    expectEqual(matching.code, 1)
    try expectEqual(matching.json["pushed"].int, 1_999)
    try expectEqual(client.run("query", "f", "$[?@.n != 2]").lines, ["{\"id\":100,\"n\":0}"])
  }

  @Test("a refused row does not make later ones be appended twice") func rowsBehindARefusedOne() throws {
    let client = ClientCommand(try DaemonProcess(["--max-element-bytes", "1K"]))
    try client.succeed("define", "l", "--kind", "array")
    let long = "\"\(String(repeating: "x", count: 1_024))\""
    let numbers = (1...2_000).map { "\($0)" }
    let pushed = try client.run("push", "l", input: ([long] + numbers).joined(separator: "\n"))
    expectEqual(pushed.code, 1)
    try expectEqual(pushed.json["pushed"].int, 2_000)
    try expectEqual(client.run("query", "l", "$[*]").lines, numbers)
    // Elements of the command line are counted from 1.
    let tooLong = "limit maxElementBytes (1,024) exceeded:"
    expect(pushed.errors.hasPrefix("feedclient: line 1, column 1: \(tooLong) the element has 1,026 bytes"))
    let arguments = try client.run("push", "l", "1", long)
    expect(arguments.errors.hasPrefix("feedclient: \(tooLong) element 2 has 1,026 bytes"))
  }

  @Test("a deletion says which elements are not there, and --strict exits with 1") func missingElements() throws {
    let client = ClientCommand(try DaemonProcess())
    let elements = (1...9).map { "{\"id\":\($0)}" }
    try client.succeed("push", "f", "--define", input: elements.joined())
    let some = try client.run("delete", "f", "1", "lamp", "2", "77")
    expectEqual(some.code, 0)
    try expectEqual(some.json["deleted"].elements.count, 2)
    expectEqual(some.errors, "feedclient: 'f' has no element \"lamp\"\nfeedclient: 'f' has no element 77\n")
    let none = try client.run("delete", "f", "--strict", "1")
    expectEqual(none.code, 1)
    try expectEqual(none.json["deleted"], "[]")
    expectEqual(none.errors, "feedclient: 'f' has no element 1\n")
    try client.succeed("delete", "f", "--strict", "3")
    let quiet = try client.run("delete", "f", "-q", "3", "4")
    expectEqual(quiet, ClientCommand.Outcome(code: 0, output: "", errors: ""))
    try expectEqual(client.run("delete", "f", "--strict", "-q", "3").errors, "feedclient: 'f' has no element 3\n")
    // Of many that delete one element, exactly one does.
    let all = try (0..<8).map { _ in try client.start("delete", "f", "--strict", "5") }
    try expectEqual(all.map { try ClientCommand.finish($0).code }.sorted(), [0] + Array(repeating: 1, count: 7))
    // Of very many, the first are named, and the others are deleted all the same.
    let unknown = (100..<300).map { "\($0)" }
    let many = try ClientCommand.finish(client.start(["delete", "f"] + unknown + ["6"]))
    expectEqual(many.errors.split(separator: "\n").count, 101)
    try expectEqual(client.run("query", "f", "$[*].id").lines, ["7", "8", "9"])
    try expectEqual(client.run("delete", "f", "--strict", "--where", "@.id == 7").code, 2)
    try expectEqual(client.run("delete", "nowhere", "1").code, 1)
  }

  @Test func movesNextToOtherElements() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "q", "--kind", "array", "--id", "$.id")
    try client.succeed("push", "q", "{\"id\":1}", "{\"id\":2}", "{\"id\":3}", "{\"id\":\"x\"}")
    func move(_ words: String..., order: [String]) throws {
      let outcome = try ClientCommand.finish(client.start(["move", "q"] + words))
      expectEqual(outcome.code, 0, "\(outcome.errors)")
      try expectEqual(client.run("query", "q", "$[*].id").lines, order)
    }
    try move("0", "end", order: ["2", "3", "\"x\"", "1"])
    try move("--id", "x", "--before", "2", order: ["\"x\"", "2", "3", "1"])
    try move("--id", "x", "--after", "3", order: ["2", "3", "\"x\"", "1"])
    try move("--id", "1", "--after", "2", order: ["2", "1", "3", "\"x\""])
    try move("--id", "2", "--before", "x", order: ["1", "3", "2", "\"x\""])
    try move("3", "--before", "1", order: ["\"x\"", "1", "3", "2"])
    try move("--id", "3", "--before", "3", order: ["\"x\"", "1", "3", "2"])
    try move("--id", "x", "end", "--where", "@.id == 'x'", order: ["1", "3", "2", "\"x\""])
    try move("x", "--after", "1", order: ["1", "\"x\"", "3", "2"])
    try move("x", "end", order: ["1", "3", "2", "\"x\""])
    try expectEqual(client.run("move", "q", "--id", "x", "0", "--where", "@.id == 1").code, 1)
    let missing = try client.run("move", "q", "--id", "x", "--before", "99")
    expectEqual(missing.code, 1)
    expectEqual(missing.errors, "feedclient: 'q' has no element 99\n")
    for (words, message) in [
      (["0", "1", "--before", "2"], "TO and --before exclude each other"),
      (["0", "--after", "1", "--before", "2"], "--before and --after exclude each other"),
      (["0", "last"], "TO 'last': expected a row, from 0 on, or end"),
      (["1.5", "1"], "FROM '1.5': expected a row, from 0 on"),
    ] {
      let refused = try ClientCommand.finish(client.start(["move", "q"] + words))
      expectEqual(refused.code, 2)
      expectEqual(refused.errors, "feedclient: move: \(message)\n")
    }
    // While others move rows, each move goes where it was asked to.
    let movers = try (0..<6).map { number in
      try client.start("move", "q", "--id", number % 2 == 0 ? "1" : "2", "--after", "3")
    }
    for mover in movers { try expectEqual(ClientCommand.finish(mover).code, 0) }
    try client.succeed("move", "q", "--id", "1", "--after", "3")
    try expectEqual(client.run("query", "q", "$[*].id").lines, ["3", "1", "2", "\"x\""])
  }
}
