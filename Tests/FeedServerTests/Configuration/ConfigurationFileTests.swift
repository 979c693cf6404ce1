import FeedJSON
import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Configuration file")
struct ConfigurationFileTests {
  @Test func configurationIsAppliedBeforeReadiness() throws {
    let set = try ConfiguredDaemon(
      #"{"feeds": [{"feed": "list", "kind": "array"}], "limits": {"maxFeeds": 3, "maxBins": 5}}"#,
      arguments: ["--max-bins", "9"])
    try expectEqual(set.ask("describe", #"{"feed":"list"}"#)["result"]["kind"].string, "array")
    let limits = try set.ask("hello", "{}")["result"]["limits"]
    expect(limits["maxFeeds"].int == 3 && limits["maxBins"].int == 9)
  }

  @Test func hangUpReloadsTheConfiguration() throws {
    let set = try ConfiguredDaemon(#"{"feeds": [{"feed": "list", "kind": "array"}]}"#)
    try expect(set.ask("insert", #"{"feed":"list","elements":[{"k":"x"}]}"#)["result"].has("revision"))
    try set.reload(
      #"{"feeds": [{"feed": "both", "kind": "composed", "children": ["list"]}, {"feed": "list", "kind": "array", "type": "$.k"}],"#
        + #""limits": {"maxFeeds": 3}}"#)
    let row = try set.ask("get", #"{"feed":"both","at":[0,0]}"#)["result"]
    expect(row["element"] == #"{"k":"x"}"# && row["type"].string == "x")
    try set.daemon.process.errors.wait(for: "defined both; redefined list")
    try set.daemon.process.errors.wait(for: "takes effect when feedd is started again: maxFeeds")
  }

  @Test func invalidFileChangesNothing() throws {
    let set = try ConfiguredDaemon(#"{"feeds": [{"feed": "list", "kind": "array"}]}"#)
    let revision = try set.ask("hello", "{}")
    for (text, words) in [
      ("{", "feedd.json:1:2: not JSON"),
      ("{\"feeds\": [\n {\"feed\": \"list\", \"kind\": \"single\"}]}", "feedd.json:2:2: feeds[0]: its kind is array"),
      (#"{"fedes": []}"#, #"did you mean "feeds"?"#),
      (#"{"feeds": ["list"]}"#, "feedd.json:1:12: feeds[0]: must be an object"),
    ] {
      try set.reload(text)
      try set.daemon.process.errors.wait(for: words)
    }
    try expectEqual(set.ask("hello", "{}"), revision)
    expectEqual(unlink(set.directory.file("feedd.json")), 0)
    set.daemon.process.signal(SIGHUP)
    try set.daemon.process.errors.wait(for: "cannot open \(set.directory.file("feedd.json"))")
    try expectEqual(set.ask("hello", "{}"), revision)
  }

  @Test func invalidFileFailsTheStart() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("c.json")
    try SmallFile.replace(path, with: Array("{\"feeds\":\n  [{\"feed\": \"a b\", \"kind\": \"array\"}]}".utf8))
    for flag in ["--config", "--check-config"] {
      let process = try ChildProcess(BuildProducts.program("feedd"), ["--socket", directory.file("s"), flag, path])
      try expectEqual(process.waitForExit(), 1)
      expect(process.errors.text.contains("\(path):2:13: feeds[0].feed: must be 1 to 128 of"), "\(process.errors.text)")
    }
  }

  @Test("an account of an access rule that does not exist does not prevent a start, and is an error later")
  func missingAccounts() throws {
    let rules = #""access": [{"user": ["root", "no such user"], "group": "no such group", "allow": "read"}]"#
    let set = try ConfiguredDaemon("{\(rules)}")
    for words in [
      #":1:31: access[0].user[1]: there is no user "no such user"; the rule is applied without it"#,
      #":1:57: access[0].group: there is no group "no such group"; the rule is applied without it"#,
    ] { try set.daemon.process.errors.wait(for: set.directory.file("feedd.json") + words) }
    try set.reload(#"{"feeds": [{"feed": "a"}], \#(rules)}"#)
    let report = try set.ask("stats", "{}")["result"]["configuration"]
    expectEqual(report["status"].string, "refused")
    expectEqual(report["text"].string?.hasSuffix(#"there is no user "no such user"; nothing was changed"#), true)
  }

  @Test("a start keeps the stored feeds if those of the file do not fit them, and applies the access rules")
  func clientsCannotPreventAStart() throws {
    let set = try ConfiguredDaemon(
      #"{"feeds": [{"feed": "inbox", "bins": [{"name": "rest"}]}], "access": [{"allow": "read"}]}"#, isKept: true)
    for definition in [
      #"{"feed":"inbox","kind":"collection","bins":[{"name":"extra"},{"name":"rest"}],"replace":true}"#,
      #"{"feed":"mine","kind":"composed","children":["inbox/extra"]}"#,
    ] { try expect(set.ask("define", definition).has("result")) }
    try set.restart(signal: SIGKILL)
    func report() throws -> JSONValue { try set.ask("stats", "{}")["result"]["configuration"] }
    let refused = try report()
    expect(refused["status"].string == "refused" && refused["access"].bool == true)
    expectEqual(
      refused["text"].string,
      set.directory.file("feedd.json")
        + #":1:12: feeds[0]: "mine" shows it; remove it there or undefine that feed first; "#
        + "only the access rules were replaced")
    try expectEqual(set.ask("describe", #"{"feed":"inbox"}"#)["result"]["bins"].elements.count, 2)
    try expect(set.ask("undefine", #"{"feed":"mine"}"#).has("result"))
    try set.reload(#"{"feeds": [{"feed": "inbox", "bins": [{"name": "rest"}]}], "access": [{"allow": "read"}]}"#)
    try expectEqual(set.ask("describe", #"{"feed":"inbox"}"#)["result"]["bins"].elements.count, 1)
    try expectEqual(report()["redefined"].text, #"["inbox"]"#)
  }

  @Test("a start whose file does not fit is not prevented by clients that undefined all feeds")
  func clientsCannotPreventAStartWithoutFeeds() throws {
    let set = try ConfiguredDaemon(#"{"feeds": []}"#, isKept: true)
    try expect(set.ask("define", #"{"feed":"mine","kind":"array"}"#).has("result"))
    let file = #"{"feeds": [{"feed": "top", "kind": "composed", "children": ["mine"]}]}"#
    try set.reload(file)
    for name in ["top", "mine"] { try expect(set.ask("undefine", #"{"feed":"\#(name)"}"#).has("result")) }
    try set.restart(signal: SIGKILL)
    let report = try set.ask("stats", "{}")["result"]["configuration"]
    expect(report["status"].string == "refused" && report["text"].text.contains("mine"), "\(report)")
    try expect(set.ask("define", #"{"feed":"mine","kind":"array"}"#).has("result"))
    try set.reload(file)
    try expectEqual(set.ask("describe", #"{"feed":"top"}"#)["result"]["kind"].string, "composed")
  }

  @Test("names that control a terminal are replaced in the messages of feedd")
  func hostileNames() throws {
    let directory = try TemporaryDirectory()
    let (hostile, shown) = ("c\u{1B}[2J\n\u{202E}", "c\u{FFFD}[2J\u{FFFD}\u{FFFD}")
    let path = directory.file(hostile)
    func run(_ arguments: String...) throws -> (code: Int32, output: String, errors: String) {
      let process = try ChildProcess(BuildProducts.program("feedd"), arguments)
      let code = try process.waitForExit()
      try process.output.waitForEnd()
      try process.errors.waitForEnd()
      return (code, process.output.text, process.errors.text)
    }
    try SmallFile.replace(path, with: Array("{}".utf8))
    let rules = "no access rules: every client may do everything"
    try expect(run("--check-config", path) == (0, "\(directory.file(shown)): ok: 0 feeds, 0 limits, \(rules)\n", ""))
    try SmallFile.replace(path, with: Array("[]".utf8))
    let invalid = try run("--check-config", path)
    expectEqual(invalid.code, 1)
    expect(invalid.errors.hasPrefix("\(directory.file(shown)):1:1: "))
    expectEqual(invalid.errors.unicodeScalars.filter(\.controlsTerminal), ["\n"])
    let missing = try run("--check", "--state", directory.file("no\(hostile)"))
    expectEqual(missing.code, 1)
    expect(missing.errors.hasPrefix("feedd: "))
    expectEqual(missing.errors.unicodeScalars.filter(\.controlsTerminal), ["\n"])
    let usage = try run("--\(hostile)")
    expectEqual(usage.code, 2)
    expect(usage.errors.hasPrefix("feedd: "))
    expectEqual(usage.errors.unicodeScalars.filter(\.controlsTerminal), ["\n", "\n"])
  }

  @Test func checkConfigReportsTheContents() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("c.json")
    try SmallFile.replace(
      path,
      with: Array(#"{"feeds": [{"feed": "a", "kind": "array"}], "access": [{"uid": 0, "allow": ["read"]}]}"#.utf8))
    let process = try ChildProcess(BuildProducts.program("feedd"), ["--check-config", path])
    try expectEqual(process.waitForExit(), 0)
    try process.output.waitForEnd()
    expectEqual(process.output.text, "\(path): ok: 1 feed, 0 limits, 1 access rule\n")
  }
}
