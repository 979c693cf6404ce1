import TestSupport
import Testing

@Suite("feedclient on lists, providers and selections")
struct ClientListsTests {
  private func elements(_ client: ClientCommand, _ feed: String) throws -> [String] {
    try client.run("query", feed, "$[*]").lines
  }

  @Test("feeds --names prints the names of feeds and bins, one on each line") func names() throws {
    let client = ClientCommand(try DaemonProcess())
    try expectEqual(client.run("define", "inbox", "--bin", "urgent=@.p > 5", "--bin", "rest").code, 0)
    try expectEqual(client.run("define", "byday", "--section", "$.day").code, 0)
    try expectEqual(client.run("push", "byday", #"{"id":1,"day":"Monday"}"#).code, 0)
    try expectEqual(client.run("define", "home", "--kind", "composed", "--child", "inbox/rest").code, 0)
    try expectEqual(client.run("feeds", "--names").lines, ["byday", "home", "inbox", "inbox/urgent", "inbox/rest"])
    try expectEqual(client.run("feeds", "--names", "--tree").code, 2)
  }

  @Test func arraysAreEditedByRow() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    try expectEqual(client.run("define", "a", "--kind", "array").code, 0)
    try expectEqual(client.run("insert", "a", "1", "2", "3").code, 0)
    try expectEqual(client.run("insert", "a", "--at", "0", "\"x\"", "\"y\"").code, 0)
    try expectEqual(elements(client, "a"), ["\"x\"", "\"y\"", "1", "2", "3"])
    try expectEqual(client.run("replace", "a", "--at", "0,4", "10", "30").json["updated"], "[[0,0],[0,4]]")
    try expectEqual(client.run("move", "a", "4", "1").code, 0)
    try expectEqual(client.run("remove", "a", "0", "2").code, 0)
    try expectEqual(elements(client, "a"), ["30", "1", "2"])
    try expectEqual(client.run("push", "a", input: "7\n8\n").code, 0)
    try expectEqual(elements(client, "a"), ["30", "1", "2", "7", "8"])
    let watcher = try client.start("watch", "a", "--no-initial", "--count", "1")
    try daemon.waitForWatcher(of: "a", client)
    try expectEqual(client.run("remove", "a", "0", "--animation", "fade").code, 0)
    try expectEqual(ClientCommand.finish(watcher).json["params"]["animation"].string, "fade")
    try expectEqual(client.run("remove", "a", "99").code, 1)
    try expectEqual(client.run("insert", "a", "--at", "0,1", "5").code, 2)
    try expectEqual(client.run("insert", "a", "--at", "-1", "5").code, 2)
    try expectEqual(client.run("replace", "a", "5").code, 2)
    try expectEqual(client.run("move", "a", "1", "x").code, 2)
  }

  @Test func singlesAndProvidersAreEdited() throws {
    let client = ClientCommand(try DaemonProcess())
    try expectEqual(client.run("define", "banner", "--kind", "single").code, 0)
    try expectEqual(client.run("put", "banner", "{\"text\":\"noon\"}").code, 0)
    try expectEqual(client.run("push", "banner", "{\"text\":\"one\"}", "{\"text\":\"two\"}").code, 0)
    try expectEqual(client.run("push", "inbox", "--define", "{\"id\":1}").code, 0)
    try expectEqual(client.run("define", "home", "--kind", "composed", "--child", "banner").code, 0)
    try expectEqual(client.run("insertChild", "home", "inbox/all", "--before", "banner").code, 0)
    try expectEqual(elements(client, "home"), ["{\"id\":1}", "{\"text\":\"two\"}"])
    try expectEqual(client.run("removeChild", "home", "0").code, 0)
    try expectEqual(client.run("insertChild", "home", "inbox/all", "--at", "1", "--after", "banner").code, 2)
    try expectEqual(client.run("define", "tabs", "--kind", "segmented", "--child", "home", "--child", "inbox").code, 0)
    try expectEqual(client.run("activate", "tabs", "inbox").code, 0)
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
    try expectEqual(client.run("define", "days", "--section", "$.day").code, 0)
    try expectEqual(client.run("push", "days", "{\"id\":1,\"day\":\"mon\"}").code, 0)
    let tree = try client.run("feeds", "--tree").output
    expect(tree.hasPrefix("days  collection  1\ntabs  segmented  1\n"), "\(tree)")
    try expectEqual(client.run("activate", "tabs", "none").code, 0)
    try expectEqual(elements(client, "tabs"), [])
    try expectEqual(client.run("activate", "tabs", "nobody").code, 1)
    try expectEqual(client.run("put", "banner", "null").code, 0)
    try expectEqual(elements(client, "banner"), [])
  }

  @Test func selectionsArePublished() throws {
    let client = ClientCommand(try DaemonProcess())
    try expectEqual(client.run("define", "a", "--kind", "array").code, 0)
    try expectEqual(client.run("insert", "a", "1", "2", "3").code, 0)
    let watcher = try client.start("watch", "a")
    try watcher.output.wait(lines: 1)
    try expectEqual(client.run("select", "a", "0,0", "0,2").json["selected"], "[[0,0],[0,2]]")
    try watcher.output.wait(for: "\"method\":\"selection\"")
    try expectEqual(client.run("remove", "a", "0").code, 0)
    try expectEqual(client.run("selected", "a").json["selected"], "[[0,1]]")
    try expectEqual(client.run("deselect", "a", "--all").json["selected"], "[]")
    try watcher.output.wait(lines: 5)
    try expectEqual(client.run("insert", "a", "4", "--at", "0", "--at", "1").code, 2)
    try expectEqual(client.run("select", "a").code, 2)
    try expectEqual(client.run("select", "a", "0,1", "--all").code, 2)
    try expectEqual(client.run("select", "a", "1").code, 2)
    try expectEqual(client.run("select", "a", "0,9").code, 1)
    // A feed that is defined with --no-multiple has at most one selected row.
    try expectEqual(client.run("define", "one", "--kind", "array", "--no-multiple").code, 0)
    try expectEqual(client.run("insert", "one", "1", "2").code, 0)
    try expectEqual(client.run("select", "one", "0,0").code, 0)
    try expectEqual(client.run("select", "one", "0,1").json["selected"], "[[0,1]]")
    try expectEqual(client.run("select", "one", "0,0", "0,1").code, 1)
  }
}
