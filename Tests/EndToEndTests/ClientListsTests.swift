import TestSupport
import Testing

@Suite("feedclient on lists, providers and selections")
struct ClientListsTests {
  private func elements(_ client: ClientCommand, _ feed: String) throws -> [String] {
    try client.run("query", feed, "$[*]").lines
  }

  @Test("feeds --names prints the names of feeds and bins, one on each line") func names() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "inbox", "--bin", "urgent=@.p > 5", "--bin", "rest")
    try client.succeed("define", "byday", "--section", "$.day")
    try client.succeed("push", "byday", #"{"id":1,"day":"Monday"}"#)
    try client.succeed("define", "home", "--kind", "composed", "--child", "inbox/rest")
    try expectEqual(client.run("feeds", "--names").lines, ["byday", "home", "inbox", "inbox/urgent", "inbox/rest"])
    try expectEqual(client.run("feeds", "--names", "--tree").code, 2)
  }

  @Test func arraysAreEditedByRow() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    try client.succeed("define", "a", "--kind", "array")
    try client.succeed("insert", "a", "1", "2", "3")
    try client.succeed("insert", "a", "--at", "0", "\"x\"", "\"y\"")
    try expectEqual(elements(client, "a"), ["\"x\"", "\"y\"", "1", "2", "3"])
    try expectEqual(client.run("replace", "a", "--at", "0,4", "10", "30").json["updated"], "[[0,0],[0,4]]")
    try client.succeed("move", "a", "4", "1")
    try client.succeed("remove", "a", "0", "2")
    try expectEqual(elements(client, "a"), ["30", "1", "2"])
    try client.succeed("push", "a", input: "7\n8\n")
    try expectEqual(elements(client, "a"), ["30", "1", "2", "7", "8"])
    let watcher = try client.start("watch", "a", "--no-initial", "--count", "1")
    try daemon.waitForWatcher(of: "a", client)
    try client.succeed("remove", "a", "0", "--animation", "fade")
    try expectEqual(ClientCommand.finish(watcher).json["params"]["animation"].string, "fade")
    try expectEqual(client.run("remove", "a", "99").code, 1)
    try expectEqual(client.run("insert", "a", "--at", "0,1", "5").code, 2)
    try expectEqual(client.run("insert", "a", "--at", "-1", "5").code, 2)
    try expectEqual(client.run("replace", "a", "5").code, 2)
    try expectEqual(client.run("move", "a", "1", "x").code, 2)
  }

  @Test func singlesAndProvidersAreEdited() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "banner", "--kind", "single")
    try client.succeed("put", "banner", "{\"text\":\"noon\"}")
    try client.succeed("push", "banner", "{\"text\":\"one\"}", "{\"text\":\"two\"}")
    try client.succeed("push", "inbox", "--define", "{\"id\":1}")
    try client.succeed("define", "home", "--kind", "composed", "--child", "banner")
    try client.succeed("insertChild", "home", "inbox/all", "--before", "banner")
    try expectEqual(elements(client, "home"), ["{\"id\":1}", "{\"text\":\"two\"}"])
    try client.succeed("removeChild", "home", "0")
    try expectEqual(client.run("insertChild", "home", "inbox/all", "--at", "1", "--after", "banner").code, 2)
    try client.succeed("define", "tabs", "--kind", "segmented", "--child", "home", "--child", "inbox")
    try client.succeed("activate", "tabs", "inbox")
    try expectEqual(elements(client, "tabs"), ["{\"id\":1}"])
    try expectEqual(
      client.run("feeds", "--tree").output,
      """
      tabs  segmented  1
      ├─ home  composed  1
      │  └─ banner  single  1
      └─ inbox  collection  1  shows
         └─ inbox/all  bin  1

      """)
    try client.succeed("define", "days", "--section", "$.day")
    try client.succeed("push", "days", "{\"id\":1,\"day\":\"mon\"}")
    let tree = try client.run("feeds", "--tree").output
    expect(tree.hasPrefix("days  collection  1\ntabs  segmented  1\n"), "\(tree)")
    try client.succeed("activate", "tabs", "none")
    try expectEqual(elements(client, "tabs"), [])
    try expectEqual(client.run("activate", "tabs", "nobody").code, 1)
    try client.succeed("put", "banner", "null")
    try expectEqual(elements(client, "banner"), [])
  }

  @Test func selectionsArePublished() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "a", "--kind", "array")
    try client.succeed("insert", "a", "1", "2", "3")
    let watcher = try client.start("watch", "a")
    try watcher.output.wait(lines: 1)
    try expectEqual(client.run("select", "a", "0,0", "0,2").json["selected"], "[[0,0],[0,2]]")
    try watcher.output.wait(for: "\"method\":\"selection\"")
    try client.succeed("remove", "a", "0")
    try expectEqual(client.run("selected", "a").json["selected"], "[[0,1]]")
    try expectEqual(client.run("deselect", "a", "--all").json["selected"], "[]")
    try watcher.output.wait(lines: 5)
    try expectEqual(client.run("insert", "a", "4", "--at", "0", "--at", "1").code, 2)
    try expectEqual(client.run("select", "a").code, 2)
    try expectEqual(client.run("select", "a", "0,1", "--all").code, 2)
    try expectEqual(client.run("select", "a", "1").code, 2)
    try expectEqual(client.run("select", "a", "0,9").code, 1)
    // A feed that is defined with --no-multiple has at most one selected row.
    try client.succeed("define", "one", "--kind", "array", "--no-multiple")
    try client.succeed("insert", "one", "1", "2")
    try client.succeed("select", "one", "0,0")
    try expectEqual(client.run("select", "one", "0,1").json["selected"], "[[0,1]]")
    try expectEqual(client.run("select", "one", "0,0", "0,1").code, 1)
  }
}
