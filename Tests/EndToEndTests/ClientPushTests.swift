import Glibc
import TestSupport
import Testing

@Suite("feedclient push")
struct ClientPushTests {
  @Test func argumentsArePushedAsOneCommit() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "f", "--bin", "big=@.n > 1", "--bin", "all")
    let pushed = try client.run("push", "f", "{\"id\":1,\"n\":1}", "{\"id\":2, \"n\":2.50}")
    expectEqual(pushed.code, 0)
    expectEqual(pushed.errors, "")
    expectEqual(pushed.output, "{\"revision\":2,\"deleted\":[],\"added\":[[0,0],[1,0],[1,1]],\"updated\":[]}\n")
    try expectEqual(client.run("range", "f", "1", "0", "9").lines, ["{\"id\":1,\"n\":1}", "{\"id\":2,\"n\":2.50}"])
    try expectEqual(
      client.run("get", "f", "2").output,
      "{\"element\":{\"id\":2,\"n\":2.50},\"type\":null,\"at\":[[0,0],[1,1]],\"found\":true,\"revision\":2}\n")
    try expectEqual(client.run("delete", "f", "1", "\"2\"").json["deleted"], "[[1,0]]")
    try expectEqual(client.run("set", "f", "{\"id\":7}").json["added"], "[[1,0]]")
    try expectEqual(client.run("query", "f", "$[*].id").lines, ["7"])
  }

  @Test func singleKeepsTheLastOfSeveralElements() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "s", "--kind", "single")
    let pushed = try client.run("push", "s", "1", "2", "3")
    expectEqual(pushed.output, "{\"revision\":2,\"deleted\":[],\"added\":[[0,0]],\"updated\":[]}\n")
    try expectEqual(client.run("get", "s", "--at", "0,0").json["element"].int, 3)
  }

  @Test func pushWithoutElementsReportsNoRevision() throws {
    let client = ClientCommand(try DaemonProcess())
    let pushed = try client.run("push", "f", "--define", "-")
    expectEqual(pushed.code, 0)
    expectEqual(pushed.output, "{\"feed\":\"f\",\"pushed\":0,\"refused\":0}\n")
  }

  @Test func invalidJSONExitsWith2() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "f")
    try expectEqual(client.run("push", "f", "{bad").code, 2)
    try expectEqual(client.run("set", "f", input: "{bad\n").code, 2)
    let lines = try client.run("push", "f", input: "{bad\n{\"id\":1}\n")
    expectEqual(lines.code, 2)
    let summary = try lines.json
    expect(summary["feed"].string == "f" && summary["pushed"].int == 1 && summary["refused"].int == 1)
    try expectEqual(client.run("push", "f", input: "{}\n").code, 1)
    try expectEqual(client.run("push", "f", input: "{bad\n{}\n").code, 1)
  }

  @Test func setWithoutInputRequiresADash() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("push", "f", "--define", "{\"id\":1}")
    let refused = try client.run("set", "f", input: " \n")
    expectEqual(refused.code, 2)
    expect(refused.errors.contains("to remove all elements, give '-'"))
    try expectEqual(client.run("snapshot", "f").json["sections"].elements.map { $0["count"].int }, [1])
    try client.succeed("set", "f", "-")
    try expectEqual(client.run("snapshot", "f").json["sections"].elements.map { $0["count"].int }, [0])
  }

  @Test("elements are pushed although the sections of their feed do not fit a frame") func manySections() throws {
    let client = ClientCommand(try DaemonProcess(["--max-frame", "4096", "--max-element-bytes", "1024"]))
    try client.succeed("define", "f", "--section", "$.id")
    let rows = (100..<300).map { "{\"id\":\($0)}" }.joined(separator: "\n")
    try client.succeed("push", "f", input: rows)
    try expectEqual(client.run("describe", "f").code, 1)
    try expectEqual(client.run("push", "f", "{\"id\":100,\"x\":1}").json["updated"], "[[0,0]]")
    let pushed = try client.run("push", "f", input: "{\"id\":101,\"x\":1}\n{\"x\":2}")
    expectEqual(pushed.code, 1)
    try expectEqual(pushed.json["pushed"].int, 1)
    try expectEqual(client.run("get", "f", "101").json["element"], #"{"id":101,"x":1}"#)
  }

  @Test("an undefined feed is refused, or defined with --define") func undefinedFeeds() throws {
    let client = ClientCommand(try DaemonProcess())
    let refused = try client.run("push", "f", "{\"id\":1}")
    expectEqual(refused.code, 1)
    expectEqual(
      refused.errors, "feedclient: there is no feed 'f'; define it with: feedclient define f, or give --define\n")
    try expectEqual(client.run("push", "f", "-", input: "{\"id\":1}").code, 1)
    try expectEqual(client.run("feeds").output, "")
    let pushed = try client.run("push", "f", "--define", "{\"id\":1}")
    expectEqual(pushed.code, 0)
    expectEqual(pushed.errors, "feedclient: defined 'f' as a collection with one bin, all, and the identity at $.id\n")
    try expectEqual(client.run("describe", "f").json["kind"].string, "collection")
  }

  @Test func patchWithoutAPatchIsAUsageError() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("push", "f", "--define", "{\"id\":3}")
    let refused = try client.run("patch", "f", "3")
    expectEqual(refused.code, 2)
    expectEqual(refused.errors, "feedclient: patch: missing argument PATCH, a JSON object\n")
    let missing = "feedclient: patch: missing argument"
    for (words, errors) in [
      (["f"], "\(missing) ID or PATCH, a JSON object\n"), (["f", "--at", "0"], "\(missing) PATCH, a JSON object\n"),
      (["f", "3", "{"], "feedclient: patch: PATCH is not JSON: the text ends inside a value at byte 1\n"),
    ] {
      let refused = try ClientCommand.finish(client.start(["patch"] + words))
      expectEqual(refused.code, 2)
      expectEqual(refused.errors, errors)
    }
    try client.succeed("patch", "f", "3", "\n {\"a\":1}")
    try client.succeed("define", "s", "--kind", "single")
    try client.succeed("put", "s", "{\"a\":1}")
    try client.succeed("patch", "s", " {\"b\":2}")
    try expectEqual(client.run("snapshot", "s").json["sections"][0]["elements"], #"[{"a":1,"b":2}]"#)
  }

  @Test func missingArgumentsOfMoveAreNamed() throws {
    let client = ClientCommand(socket: "/nonexistent/socket")
    for (words, missing) in [
      (["u"], "FROM or --id ID"), (["u", "3"], "TO"), (["u", "--id", "2"], "TO"),
    ] {
      let outcome = try ClientCommand.finish(client.start(["move"] + words))
      expectEqual(outcome.code, 2)
      expectEqual(outcome.errors, "feedclient: move: missing argument \(missing)\n")
    }
  }

  @Test func argumentsThatAreNotUTF8AreRefused() throws {
    let client = ClientCommand(socket: "/nonexistent/socket")
    let outcome = try ClientCommand.finish(client.startShell("$0 push f \"$(printf '\"a\\377b\"')\""))
    expectEqual(outcome.code, 2)
    expectEqual(outcome.errors, "feedclient: argument 3 is not UTF-8: '\"a\u{FFFD}b\"'\n")
    let daemon = try ClientCommand.finish(client.startShell("${0%feedclient}feedd --socket \"$(printf '/\\377')\""))
    expectEqual(daemon.code, 2)
    expectEqual(daemon.errors, "feedd: argument 2 is not UTF-8: '/\u{FFFD}'\n")
  }

  /// The path would be another one.
  @Test func variablesThatNameFilesAndAreNotUTF8AreRefused() throws {
    let client = ClientCommand(socket: "/nonexistent/socket")
    for (variable, program) in [("FEEDD_SOCKET", "feedclient"), ("HOME", "feedd")] {
      let script = "export \(variable)=\"$(printf '/\\377')\"; ${0%feedclient}\(program) --version"
      let outcome = try ClientCommand.finish(client.startShell(script))
      expectEqual(outcome.code, 2)
      expectEqual(outcome.errors, "\(program): variable \(variable) is not UTF-8: '/\u{FFFD}'\n")
    }
  }

  @Test func changesOfABinNameItsCollection() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "f", "--bin", "urgent=@.p > 8")
    for refused in [
      try client.run("push", "f/urgent", "{\"id\":1}"), try client.run("delete", "f/urgent", "--where", "@.p == 9"),
    ] {
      expectEqual(refused.code, 1)
      expectEqual(refused.errors, "feedclient: feed \"f/urgent\" is of kind bin; give its collection \"f\"\n")
    }
    for refused in [
      try client.run("push", "f/urgnt", "{\"id\":1}"), try client.run("push", "f/urgnt", "{\"id\":1}", "--define"),
    ] {
      expectEqual(refused.code, 1)
      expectEqual(refused.errors, "feedclient: there is no bin 'f/urgnt'; push to f, whose bins select its elements\n")
    }
    try client.succeed("define", "list", "--kind", "array")
    let refused = try client.run("delete", "list", "--where", "@ == 1")
    expectEqual(refused.code, 1)
    expectEqual(
      refused.errors,
      "feedclient: feed \"list\" is of kind array; the command needs a feed of kind collection or array with \"id\"\n")
  }

  @Test func linesAreBatchedAndEachRefusedLineIsReported() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "f")
    var input = ""
    for line in 1...3000 {
      switch line {
      case 700: input += "{\"no\":\"identity\"}\n"
      case 1500: input += "{\"id\":}\n"
      case 2200: input += "\n"
      default: input += "{\"id\":\(line % 1000),\"line\":\(line)}\n"
      }
    }
    let pushed = try client.run("push", "f", "-", input: input)
    expectEqual(pushed.code, 1)
    let summary = try pushed.json
    expect(summary["feed"].string == "f" && summary["pushed"].int == 2997 && summary["refused"].int == 2)
    expect(summary["revision"].int != nil)
    let complaints = pushed.errors.split(separator: "\n")
    expectEqual(complaints.count, 2)
    expect(complaints.contains { $0.hasPrefix("feedclient: line 700, column 1: ") })
    expect(complaints.contains { $0.hasPrefix("feedclient: line 1500, column 7: not JSON: ") })
    // The last line of an identity wins, whatever was refused in between.
    try expectEqual(client.run("get", "f", "699").json["element"]["line"].int, 2699)
    try expectEqual(client.run("get", "f", "700").json["element"]["line"].int, 2700)
    // There are far fewer requests than lines.
    try expect(require(client.run("stats", "--json").json["commits"].int) < 100)
  }

  @Test func linesAreSentAsTheyArrive() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    try client.succeed("define", "f")
    let watcher = try client.start("watch", "f", "--no-initial")
    let pusher = try client.start("push", "f")
    try daemon.waitForWatcher(of: "f", client)
    for id in 1...3 {
      try pusher.write("{\"id\":\(id)}\n")
      try watcher.output.wait(for: "\"elements\":[{\"id\":\(id)}]")
    }
    pusher.closeInput()
    try expectEqual(pusher.waitForExit(), 0)
  }

  @Test func batchesOfLargeElementsStayWithinAFrame() throws {
    // Each element has a quarter of the size of a frame, so that a batch must end before it exceeds a frame.
    let client = ClientCommand(try DaemonProcess(["--max-frame", "64K", "--max-element-bytes", "60K"]))
    try client.succeed("define", "f")
    let text = String(repeating: "x", count: 16 << 10)
    var input = (1...40).map { "{\"id\":\($0),\"text\":\"\(text)\"}\n" }.joined()
    input += "{\"id\":99,\"text\":\"\(String(repeating: "x", count: 70 << 10))\"}\n"
    let pushed = try client.run("push", "f", input: input)
    expectEqual(pushed.errors, "feedclient: line 41, column 1: the element is longer than the daemon's frames allow\n")
    let summary = try pushed.json
    expect(summary["pushed"].int == 40 && summary["refused"].int == 1)
  }

  @Test("each element that is refused, for whatever reason, is named by its line, and the others arrive")
  func refusals() throws {
    let daemon = try DaemonProcess(["--max-element-bytes", "2K", "--max-elements", "400", "--max-depth", "20"])
    let client = ClientCommand(daemon)
    try client.succeed("define", "f")
    var lines = (1...400).map { "{\"id\":\($0)}" }
    lines[10] = "{\"id\":11,\"deep\":\(String(repeating: "[", count: 17))\(String(repeating: "]", count: 17))}"
    lines[20] = "{\"id\":21,\"long\":\"\(String(repeating: "x", count: 3000))\"}"
    lines[30] = "{\"id\":[31]}"
    lines[40] = "{\"no\":41}"
    lines[50] = "{\"id\":51,\"surrogate\":\"\\ud800\"}"
    lines += (401...410).map { "{\"id\":\($0)}" }
    let pushed = try client.run("push", "f", input: "\u{FEFF}" + lines.joined(separator: "\r\n"))
    expectEqual(pushed.code, 1)
    let named = pushed.errors.split(separator: "\n").compactMap {
      Int($0.dropFirst("feedclient: line ".count).prefix { $0.isNumber })
    }
    // Four of the first 400 are refused, so four of the last ten find room.
    expectEqual(named.sorted(), [11, 21, 31, 41] + Array(405...410))
    try expectEqual(pushed.json["pushed"].int, 400)
    try expectEqual(pushed.json["refused"].int, 10)
    try expectEqual(client.run("query", "f", "$[*].id").lines.count, 400)
    try expectEqual(client.run("get", "f", "51").json["element"], #"{"id":51,"surrogate":"\ud800"}"#)
  }

  @Test(
    "one commit of elements on standard input names each line that is refused, and changes nothing",
    arguments: [
      (
        "{\"id\":1}\n{\"id\":2,}\n[{\"id\":3},,{\"id\":4},]", 2,
        ["line 2, column 9: not JSON", "line 3, column 11: not JSON", "line 3, column 21: not JSON"]
      ),
      ("{\"id\":1}\n{\"no\":2}\n", 1, ["line 2, column 1: the element has no identity"]),
      (
        "{\"id\":1}\n{\"id\":[\(String(repeating: "[", count: 16))\(String(repeating: "]", count: 17))}\n", 1,
        ["line 2, column 1: the element nests deeper than 17 levels"]
      ),
      (
        "[{\"id\":1},\n {\"id\":2,\"t\":\"\(String(repeating: "x", count: 3000))\"}]", 1,
        ["line 2, column 2: limit maxElementBytes (2,048) exceeded: the element has 3,015 bytes"]
      ),
    ] as [(String, Int32, [String])])
  func refusedCommits(input: String, code: Int32, messages: [String]) throws {
    let client = ClientCommand(try DaemonProcess(["--max-element-bytes", "2K", "--max-depth", "20"]))
    for (feed, words) in [("f", ["set", "f", "-"]), ("l", ["insert", "l", "--at", "0", "-"])] {
      try client.succeed("define", feed, "--id", "$.id", "--kind", feed == "f" ? "collection" : "array")
      let outcome = try ClientCommand.finish(client.start(words), input: input)
      expectEqual(outcome.code, code)
      let errors = outcome.errors.split(separator: "\n")
      expectEqual(errors.count, messages.count + 1)
      for (error, message) in zip(errors, messages) { expect(error.hasPrefix("feedclient: \(message)"), "\(error)") }
      expectEqual(errors.last, "feedclient: \(words[0]): nothing was changed, because one commit has all elements")
      try expectEqual(client.run("query", feed, "$[*]").lines, [])
    }
  }

  @Test("a value on standard input is exactly one, after a byte order mark") func values() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "-", input: "\u{FEFF}{\"feed\":\"f\"}\n")
    try client.succeed("call", "verify", "-", input: "\u{FEFF}\n {\"feed\":\"f\"}")
    for (input, message) in [
      ("{\"feed\":\"f\"}\n2", "line 2, column 1: unexpected text after the value"), ("", "standard input is empty"),
      ("{}\u{FEFF}", "line 1, column 3: not JSON: unexpected byte order mark (U+FEFF)"),
      ("[1,]", "line 1, column 4: not JSON: unexpected byte"),
    ] {
      let refused = try client.run("call", "verify", "-", input: input)
      expectEqual(refused.code, 2)
      expectEqual(refused.errors, "feedclient: call: PARAMS: \(message)\n")
    }
  }

  @Test("a change of many rows is counted in a pipe, and listed with --json") func counts() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "f")
    let elements = (1...1001).map { "{\"id\":\($0)}" }
    let input = elements.joined(separator: "\n")
    try expectEqual(
      client.run("set", "f", input: input).output,
      "{\"revision\":2,\"counts\":{\"deleted\":0,\"added\":1001,\"updated\":0}}\n")
    try expectEqual(client.run("--json", "delete", "f", "--where", "@.id > 0").json["deleted"].elements.count, 1001)
    try expectEqual(client.run("set", "f", input: elements.dropLast().joined()).json["added"].elements.count, 1000)
    let quiet = try client.run("set", "--quiet", "f", input: input)
    expectEqual(quiet, ClientCommand.Outcome(code: 0, output: "", errors: ""))
    try expect(client.run("-q", "push", "f", "{}").errors != "")
  }

  @Test func lostConnectionIsReported() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    let pusher = try client.start("push", "f", "--define")
    try pusher.write("{\"id\":1}\n")
    try pusher.errors.wait(for: "defined 'f'")
    daemon.process.signal(SIGKILL)
    try expectEqual(pusher.waitForExit(), 3)
    expect(pusher.errors.text.contains("the daemon closed the connection"))
  }

  @Test("a push that ends early says how many elements were acknowledged") func acknowledgedElements() throws {
    let daemon = try ScriptedDaemon()
    let pusher = try ClientCommand(socket: daemon.socketPath).start("push", "f")
    try daemon.accept()
    try daemon.answer("describe", #"{"feed":"f","kind":"collection","id":"$.id","bins":[{"name":"all"}],"count":0}"#)
    try pusher.write("{\"id\":1}\n")
    try daemon.answer("update", #"{"revision":2,"counts":{"deleted":0,"added":1,"updated":0,"moves":0}}"#)
    daemon.hangUp()
    try expectEqual(pusher.waitForExit(), 3)
    expectEqual(
      pusher.errors.text, "feedclient: 1 element acknowledged\nfeedclient: the daemon closed the connection\n")
  }

  @Test func argumentsAreCheckedBeforeAnythingIsSent() throws {
    let client = ClientCommand(try DaemonProcess())
    let outcome = try client.run("push", "f", "{\"id\":1}", "{id:2}")
    expectEqual(outcome.code, 2)
    expect(outcome.errors.contains("element 2 is not JSON"))
    try expectEqual(client.run("feeds").output, "")
  }

  @Test("standard input can mix lines, arrays, concatenated and pretty-printed JSON") func mixedInput() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "f")
    let pushed = try client.run(
      "push", "f", "-",
      input: "{\"id\":1}{\"id\":2}\n[{\"id\":3},\n {\"id\":4}]\n{\n  \"id\": 5\n}\n{\"id\" 6}\n{\"id\":7}\n")
    expectEqual(pushed.code, 2)
    expect(pushed.errors.hasPrefix("feedclient: line 7, column 7: not JSON: "), "\(pushed.errors)")
    try expectEqual(client.run("query", "f", "$[*].id").lines, ["1", "2", "3", "4", "5", "7"])
  }
}
