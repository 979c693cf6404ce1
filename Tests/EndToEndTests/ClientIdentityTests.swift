import FeedSystem
import Glibc
import TestSupport
import Testing

/// What `feedclient watch` and `trigger` tell of the identities of deleted rows.
@Suite("feedclient: identities of deleted rows") struct ClientIdentityTests {
  private static let feeds = [
    #"{"feed":"a","kind":"collection","id":"$.key","section":"$.s"}"#, #"{"feed":"b","kind":"array","id":"$.id"}"#,
    #"{"feed":"home","kind":"composed","children":["a","b"]}"#,
    #"{"feed":"tabs","kind":"segmented","children":["a","b"]}"#,
    #"{"feed":"top","kind":"view","of":"home","limit":9}"#,
    #"{"feed":"mixed","kind":"slots","contents":{"A":"a","B":"b"},"pattern":["A","B"]}"#,
  ]

  private func client(_ daemon: DaemonProcess, defining feeds: [String] = feeds) throws -> ClientCommand {
    let client = ClientCommand(daemon)
    for feed in feeds { try client.succeed("define", feed) }
    return client
  }

  private func run(_ client: ClientCommand, _ commands: [[String]]) throws {
    for words in commands { try expectEqual(ClientCommand.finish(client.start(words)).code, 0, "\(words)") }
  }

  /// Writes a position without the rows of the feed, as a program that keeps only positions does.
  private func position(_ daemon: DaemonProcess, _ client: ClientCommand, of feed: String) throws -> String {
    let epoch = try client.run("call", "hello", #"{"protocol":1}"#).json["epoch"].text
    let path = daemon.directory.file("seen-\(feed)")
    try SmallFile.replace(path, with: Array("{\"epoch\":\(epoch),\"revision\":\(client.revision(of: feed))}".utf8))
    return path
  }

  private static let elements = [
    ["push", "a", #"{"key":"x","s":"1"}"#, #"{"key":"y","s":"1"}"#, #"{"key":"z","s":"2"}"#],
    ["push", "b", #"{"id":7}"#, #"{"id":8.50}"#],
  ]
  /// Of several commits, so that a watch that was away gets a composed delta.
  private static let deletions = [["delete", "a", "x"], ["delete", "b", "8.5"], ["delete", "a", "z"]]

  @Test(
    "a watch that was away names the rows that left, in every kind of feed",
    arguments: [
      ("a", 2, ["- [0,0] x|", "- [1,0] z|"]), ("b", 1, ["- [0,1] |8.5"]),
      // The name of a section that was deleted meanwhile is not known, so the identity may be at either place.
      ("home", 3, ["- [0,0] x|", "- [2,1] |8.5", "- [1,0] z|z"]), ("tabs", 2, ["- [0,0] x|", "- [1,0] z|z"]),
      // So are rows of several feeds in one section.
      ("top", 3, ["- [0,0] x|x", "- [0,2] z|z", "- [0,4] 8.5|8.5"]),
      ("mixed", 3, ["- [0,0] x|x", "- [0,3] 8.5|8.5", "- [0,4] z|z"]),
    ])
  func everyKind(feed: String, commits: Int, expected: [String]) throws {
    let daemon = try DaemonProcess()
    let client = try client(daemon)
    try run(client, Self.elements)
    let path = try position(daemon, client, of: feed)
    // The daemon keeps the identities because of another watch.
    let other = try client.start("watch", feed, "--ids", "--no-initial", "--count", "\(commits)")
    try daemon.waitForWatcher(of: feed, client)
    try run(client, Self.deletions)
    let outcome = try ClientCommand.finish(
      client.start(
        "watch", feed, "--since-file", path, "--count", "1", "--template", "{key}|{id|}", "--only", "deleted"))
    expect(outcome.code == 0 && outcome.lines == expected, "\(outcome)")
    // The other watch was told of each commit, and both name the same rows.
    let told = try ClientCommand.finish(other).lines.map { try JSONValue($0)["params"] }
    let ids = told.flatMap { delta in
      let moved = delta["moves"].elements.map { $0[0].int }
      let deleted = delta["deletedIDs"].elements.enumerated().filter { !moved.contains($0.offset) }.map(\.element)
      return (deleted + delta["deletedSectionIDs"].elements.flatMap(\.elements)).map { $0.string ?? $0.text }
    }
    let names = expected.map { $0.split { " |".contains($0) }.last.map(String.init) ?? "" }
    expect(Set(ids) == Set(names) && ids.count == names.count, "\(told)")
  }

  @Test("a watch of one section that was away misses no row of it") func oneSection() throws {
    let daemon = try DaemonProcess()
    let client = try client(daemon)
    try run(client, Self.elements)
    let path = try position(daemon, client, of: "home")
    let other = try client.start("watch", "home", "--ids", "--no-initial", "--count", "3")
    try daemon.waitForWatcher(of: "home", client)
    try run(client, Self.deletions)
    _ = try ClientCommand.finish(other)
    let words = ["watch", "home", "--section", "b", "--since-file", path, "--count", "1", "--template", "{id}"]
    // The row of a section that was deleted meanwhile may have been one.
    try expectEqual(ClientCommand.finish(client.start(words)).lines, ["- [2,1] 8.5", "- [1,0] z"])
    try run(client, [["push", "b", #"{"id":9}"#], ["push", "a", #"{"key":"x","s":"1"}"#]])
    try expectEqual(ClientCommand.finish(client.start(words)).lines, ["+ [1,1] 9"])
  }

  @Test("the identity of a row is where the feed of its section has it") func severalPlaces() throws {
    let daemon = try DaemonProcess()
    let client = try client(daemon)
    let watcher = try client.start("watch", "home", "--no-initial", "--template", "{key|}|{id|}", "--count", "4")
    try daemon.waitForWatcher(of: "home", client)
    try run(client, [["push", "b", #"{"id":8,"key":9}"#], ["push", "a", #"{"key":"x","id":8}"#]])
    try run(client, [["delete", "b", "8"], ["delete", "a", "x"]])
    try expectEqual(ClientCommand.finish(watcher).lines, ["+ [0,0] 9|8", "+ [0,0] x|8", "- [1,0] |8", "- [0,0] x|"])
  }

  private static let list = [#"{"feed":"f","kind":"array","id":"$.id"}"#]
  private static let three = [["push", "f", #"{"id":"a","p":1}"#, #"{"id":"b","p":9}"#, #"{"id":"c","p":8}"#]]

  @Test("JSON with --ids names rows, those with --only and --where too, and nothing else changes") func json() throws {
    let daemon = try DaemonProcess()
    let client = try client(daemon, defining: Self.list)
    try run(client, Self.three)
    let watchers = try [
      ["--count", "2"], ["--ids", "--count", "2"], ["--only", "deleted", "--count", "1"],
      ["--where", "@.p > 5", "--count", "1"],
      ["--only", "deleted,moved", "--where", "@.p < 5", "--ids", "--count", "1"],
    ].map { try client.start(["watch", "f", "--no-initial"] + $0) }
    try daemon.waitForWatcher(of: "f", client, count: watchers.count)
    try run(client, [["move", "f", "2", "0"], ["delete", "f", "a", "b"]])
    let lines = try watchers.map { try ClientCommand.finish($0).lines }
    func delta(_ from: Int, _ rest: String) -> String {
      #"{"jsonrpc":"2.0","method":"delta","params":{"feed":"f","from":\#(from),"revision":\#(from + 1),\#(rest)}}"#
    }
    let move = #""deleted":[[0,2]],"added":[[0,0]],"updated":[],"moves":[[0,0]],"elements":[{"id":"c","p":8}]"#
    let none = #""added":[],"updated":[],"elements":[]"#
    let delete = #""deleted":[[0,1],[0,2]],\#(none)"#
    expectEqual(lines[0], [delta(2, move), delta(3, delete)])
    expectEqual(lines[1], [delta(2, #"\#(move),"deletedIDs":["c"]"#), delta(3, #"\#(delete),"deletedIDs":["a","b"]"#)])
    expectEqual(lines[2], [delta(3, #"\#(delete),"deletedIDs":["a","b"]"#)])
    expectEqual(lines[3], [delta(2, #"\#(move),"deletedIDs":["c"]"#)])
    // What a row was is known without the snapshot being shown.
    expectEqual(lines[4], [delta(3, #""deleted":[[0,1]],\#(none),"deletedIDs":["a"]"#)])
  }

  @Test("what nobody knows is null or empty") func unknown() throws {
    let daemon = try DaemonProcess()
    let client = try client(daemon, defining: Self.list)
    try run(client, Self.three)
    let path = try position(daemon, client, of: "f")
    let saved = try SmallFile.read(path)
    try run(client, [["delete", "f", "b"], ["delete", "f", "c"]])
    func lines(_ options: [String]) throws -> [String] {
      try SmallFile.replace(path, with: saved)
      return try ClientCommand.finish(client.start(["watch", "f", "--since-file", path, "--count", "1"] + options))
        .lines
    }
    try expect(!JSONValue(lines([]).first)["params"].has("deletedIDs"))
    for options in [["--ids"], ["--only", "deleted"]] {
      let delta = try JSONValue(lines(options).first)["params"]
      expect(delta["deleted"] == "[[0,1],[0,2]]" && delta.has("deletedIDs") && delta["deletedIDs"] == "null")
    }
    try expectEqual(lines(["--template", "{id|?}"]), ["- [0,1]", "- [0,2]"])
  }

  @Test("at the end of a feed without rows, no identity is unknown") func endOfAnEmptyFeed() throws {
    let daemon = try DaemonProcess()
    let client = try client(daemon, defining: [#"{"feed":"f","kind":"collection","bins":[{"name":"x"},{"name":"y"}]}"#])
    let watcher = try client.start("watch", "f", "--ids")
    try watcher.output.wait(lines: 1)
    try run(client, [["undefine", "f"]])
    let delta = try JSONValue(ClientCommand.finish(watcher).lines.last)["params"]
    expect(delta["ended"].bool == true && delta["deletedIDs"] == "[]" && delta["deletedSectionIDs"] == "[[],[]]")
  }

  @Test("the rows of a file of positions name what a restarted daemon does not know") func restart() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("seen")
    let words = ["watch", "f", "--since-file", path, "--ids", "--count", "1"]
    let state = ["--state", directory.file("state")]
    do {
      let daemon = try DaemonProcess(state, directory: directory)
      let client = try client(daemon, defining: Self.list)
      try run(client, Self.three)
      try expectEqual(ClientCommand.finish(client.start(words)).code, 0)
      try run(client, [["delete", "f", "b"], ["delete", "f", "a"]])
      try expectEqual(daemon.stop(), 0)
    }
    let client = ClientCommand(try DaemonProcess(state, directory: directory))
    let delta = try ClientCommand.finish(client.start(words)).json["params"]
    expect(delta["deleted"] == "[[0,0],[0,1]]" && delta["deletedIDs"] == #"["a","b"]"#, "\(delta)")
  }

  @Test("trigger is told what left, however elements write it") func trigger() throws {
    let daemon = try DaemonProcess()
    let client = try client(daemon)
    try run(client, Self.elements)
    let state = daemon.directory.file("state")
    let words = ["trigger", "home", "--state", state, "--batch", "--on", "added,updated,deleted", "--", "cat"]
    let first = try client.start(words)
    try first.wait(forFile: state)
    first.signal(SIGTERM)
    _ = try ClientCommand.finish(first)
    try run(client, Self.deletions)
    try run(client, [["push", "b", #"{"id":85e-1,"n":1}"#]])
    let second = try client.start(words)
    try second.output.wait(lines: 1)
    second.signal(SIGTERM)
    let changes = try ClientCommand.finish(second).json["changes"].elements
    expectEqual(
      changes.map { "\($0["kind"].text) \($0["id"].text)" },
      [
        #""deleted" "x""#, #""deleted" "z""#, #""updated" 85e-1"#,
      ])
  }
}
