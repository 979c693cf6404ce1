import Glibc
import TestSupport
import Testing

@testable import FeedClient

@Suite("the asynchronous client") struct ClientTests {
  @Test("items are pushed, changed in a transaction and watched") func example() async throws {
    let daemon = try DaemonProcess()
    let client = Client(socket: daemon.socketPath)
    try await client.call("define", ["feed": "inbox", "kind": "collection"])
    try await client.push(Item(id: 1, text: "disk full"), to: "inbox")
    let revision = try await client.transaction { changes in
      try changes.push([Item(id: 2, text: "fan"), Item(id: 3, text: "door")], to: "inbox")
      changes.delete(1, from: "inbox")
    }
    expectEqual(revision, 3)
    for try await update in client.watch("inbox", as: Item.self) {
      try expectEqual(update.items(), [Item(id: 2, text: "fan"), Item(id: 3, text: "door")])
      expectEqual(update[0, 1], Item(id: 3, text: "door"))
      expect(update[0, 2] == nil && update[1, 0] == nil)
      break
    }
    struct Found: Decodable { var element: Item }
    struct Query: Encodable {
      var feed: String
      var id: Int
    }
    try await expectEqual(client.call("get", Query(feed: "inbox", id: 2), as: Found.self).element.text, "fan")
  }

  @Test("a transaction can patch, replace, move, delete by filter, and require revisions") func builder() async throws {
    let daemon = try DaemonProcess()
    let client = Client(socket: daemon.socketPath)
    try await client.call("define", ["feed": "inbox", "kind": "collection"])
    try await client.call("define", ["feed": "queue", "kind": "array"])
    let revision = try await client.transaction { changes in
      changes.require("inbox", at: 1)
      changes.require("nowhere", at: nil)
      try changes.push([Item(id: 1, text: "fan", weight: 2), Item(id: 2, text: "door")], to: "inbox")
      try changes.patch(1, in: "inbox", with: ["text": "fan stopped", "weight": nil])
      changes.delete(where: "@.text == 'door'", from: "inbox")
      try changes.insert([Item(id: 3, text: "a"), Item(id: 4, text: "b")], into: "queue")
      try changes.replace([Item(id: 5, text: "c")], in: "queue", at: 0)
      changes.move(row: 1, to: 0, in: "queue")
    }
    expectEqual(revision, 3)
    try await client.call("define", ["feed": "list", "kind": "array", "id": "$.id"])
    try await client.call("define", ["feed": "banner", "kind": "single"])
    try await client.transaction { changes in
      try changes.push([Item(id: 6, text: "d"), Item(id: 7, text: "e"), Item(id: 8, text: "f")], to: "list")
      try changes.move(id: 8, to: 0, in: "list")
      try changes.patch(row: 1, of: "list", with: ["text": "g"])
      try changes.put(Item(id: 9, text: "h"), in: "banner")
      try changes.patch(single: "banner", with: ["text": "i"])
    }
    try await client.delete(where: "@.text == 'e'", from: "list")
    struct Range: Decodable { var elements: [Item] }
    struct Section: Encodable {
      var feed: String
      var section = 0
    }
    let list = try await client.call("range", Section(feed: "list"), as: Range.self)
    expectEqual(list.elements, [Item(id: 8, text: "f"), Item(id: 6, text: "g")])
    let banner = try await client.call("range", Section(feed: "banner"), as: Range.self)
    expectEqual(banner.elements, [Item(id: 9, text: "i")])
    try await client.patch(1, in: "inbox", with: ["tags": ["x"]])
    for try await update in client.watch("inbox", as: Item.self) {
      try expectEqual(update.items(), [Item(id: 1, text: "fan stopped", tags: ["x"])])
      break
    }
    for try await update in client.watch("queue", as: Item.self) {
      try expectEqual(update.items(), [Item(id: 4, text: "b"), Item(id: 5, text: "c")])
      break
    }
    let error = await #expect(throws: ClientError.self) {
      try await client.transaction { changes in
        changes.require("queue", at: 2)
        changes.remove(rows: [0], from: "queue")
      }
    }
    guard case .refused(let refusal) = error else { throw TestFailure("\(error as Any)") }
    expectEqual(refusal.code, -32009)
    try expectEqual(JSONValue(refusal.data.map { String(decoding: $0, as: UTF8.self) })["revision"].int, 3)
  }

  @Test("a request that the daemon cannot read is refused, and those around it are answered")
  func unreadable() async throws {
    let daemon = try DaemonProcess()
    let client = Client(socket: daemon.socketPath)
    try await client.call("define", ["feed": "inbox", "kind": "collection"])
    async let before = client.push(Item(id: 1, text: "a"), to: "inbox")
    async let after = client.push(Item(id: 2, text: "b"), to: "inbox")
    let error = await #expect(throws: ClientError.self) {
      try await client.call("ping", ["deep": Nest(levels: 600)])
    }
    guard case .refused(let refusal) = error else { throw TestFailure("\(error as Any)") }
    expectEqual(refusal.code, RemoteError.limitExceeded)
    let revisions = try await [before, after]
    expectEqual(revisions.sorted(), [2, 3])
  }

  @Test("a request above maxFrame is refused and not sent, and those around it are answered")
  func tooLong() async throws {
    let daemon = try DaemonProcess(["--max-frame", "64KiB"])
    let client = Client(socket: daemon.socketPath)
    try await client.call("define", ["feed": "inbox", "kind": "collection"])
    async let before = client.push(Item(id: 1, text: "a"), to: "inbox")
    async let after = client.push(Item(id: 3, text: "b"), to: "inbox")
    let error = await #expect(throws: ClientError.self) {
      try await client.push(Item(id: 2, text: String(repeating: "x", count: 65_536)), to: "inbox")
    }
    guard case .refused(let refusal) = error else { throw TestFailure("\(error as Any)") }
    expectEqual(refusal.code, -32600)
    let revisions = try await [before, after]
    expectEqual(revisions.sorted(), [2, 3])
  }

  /// Nested arrays.
  private struct Nest: Encodable {
    var levels: Int

    func encode(to encoder: any Encoder) throws {
      var container = encoder.unkeyedContainer()
      if levels > 1 { try container.encode(Nest(levels: levels - 1)) }
    }
  }

  @Test("of several programs that claim an element, one gets it") func conditions() async throws {
    let daemon = try DaemonProcess()
    let client = Client(socket: daemon.socketPath)
    try await client.call("define", ["feed": "todo", "kind": "collection"])
    try await client.call("define", ["feed": "queue", "kind": "array", "id": "$.id"])
    try await client.call("define", ["feed": "lock", "kind": "single"])
    try await client.push(Item(id: 1, text: "free"), to: "todo", if: .absent)
    func refused(_ id: Int?, _ change: () async throws -> Void) async throws {
      let error = await #expect(throws: ClientError.self) { try await change() }
      guard case .refused(let refusal) = error else { throw TestFailure("\(error as Any)") }
      expectEqual(refusal.code, RemoteError.conditionFailed)
      try expectEqual(JSONValue(refusal.data.map { String(decoding: $0, as: UTF8.self) })["id"].int, id)
    }
    try await refused(1) { try await client.push(Item(id: 1, text: "again"), to: "todo", if: .absent) }
    let free = "@.text == 'free'"
    try await client.patch(1, in: "todo", with: ["text": "mine"], where: free)
    try await refused(1) { try await client.patch(1, in: "todo", with: ["text": "yours"], where: free) }
    try await refused(1) { try await client.push(Item(id: 1, text: "yours"), to: "todo", if: .matching(free)) }
    try await refused(1) { try await client.delete(1, from: "todo", where: free) }
    try await client.transaction { changes in
      try changes.push([Item(id: 1, text: "free"), Item(id: 2, text: "free")], to: "queue", if: .absent)
      try changes.push(Item(id: 1, text: "back"), to: "todo", if: .matching("@.text == 'mine'"))
      try changes.patch(row: 1, of: "queue", with: ["text": "taken"], where: free)
      try changes.move(id: 1, to: 1, in: "queue", where: free)
      changes.move(row: 0, to: 1, in: "queue", where: "@.text == 'taken'")
      try changes.put(["text": "free"], in: "lock")
      try changes.patch(single: "lock", with: ["text": "taken"], where: free)
      changes.delete(1, from: "todo", where: "@.text == 'back'")
    }
    try await refused(nil) {
      try await client.transaction { try $0.patch(single: "lock", with: ["text": "taken"], where: free) }
    }
    for try await update in client.watch("queue", as: Item.self) {
      try expectEqual(update.items(), [Item(id: 1, text: "free"), Item(id: 2, text: "taken")])
      break
    }
  }

  @Test("deltas name the rows that left, and sections by value have their values") func identities() async throws {
    let daemon = try DaemonProcess()
    let client = Client(socket: daemon.socketPath)
    try await client.call("define", ["feed": "days", "kind": "collection", "section": "$.text"])
    try await client.push([Item(id: 1, text: "1"), Item(id: 2, text: "a"), Item(id: 3, text: "a")], to: "days")
    var isFirst = true
    for try await update in Feed("days", socket: daemon.socketPath, ids: true) {
      let keys = update.mirror?.sections.map { $0.key.map { String(decoding: $0, as: UTF8.self) } }
      if isFirst {
        expectEqual(keys, ["\"1\"", "\"a\""])
        isFirst = false
        try await client.transaction { changes in
          changes.delete(1, from: "days")
          changes.delete(3, from: "days")
          try changes.push(Item(id: 4, text: "true"), to: "days")
        }
        continue
      }
      guard case .delta(let delta) = update.cause else { throw TestFailure("\(update.cause)") }
      expectEqual(delta.deletedIDs, [Array("3".utf8)])
      expectEqual(delta.deletedSectionIDs, [[Array("1".utf8)]])
      expectEqual(keys, ["\"a\"", "\"true\""])
      expectEqual(update.mirror?.sections.map(\.name), ["days/a", "days/\"true\""])
      break
    }
  }

  @Test("changes have animation hints, also in a transaction") func hints() async throws {
    let daemon = try DaemonProcess()
    let client = Client(socket: daemon.socketPath)
    try await client.call("define", ["feed": "inbox", "kind": "collection"])
    try await client.call("define", ["feed": "queue", "kind": "array"])
    var hints: [String?] = []
    let changes: [(Client) async throws -> Void] = [
      { try await $0.push(Item(id: 1, text: "a"), to: "inbox", animation: "fade") },
      { try await $0.patch(1, in: "inbox", with: ["text": "b"], animation: "flash \"b\"") },
      { client in
        try await client.transaction { changes in
          changes.animation = "slide"
          try changes.push(Item(id: 2, text: "c"), to: "inbox")
          changes.animation = "none of inbox"
          try changes.insert([1], into: "queue")
        }
      },
      { try await $0.push(Item(id: 3, text: "d"), to: "inbox") },
      { try await $0.delete(1, from: "inbox", animation: "drop") },
    ]
    for try await update in client.watch("inbox", as: Item.self) {
      if case .delta = update.cause { hints.append(update.animation) }
      if hints.count == changes.count { break }
      try await changes[hints.count](client)
    }
    expectEqual(hints, ["fade", "flash \"b\"", "slide", nil, "drop"])
  }

  @Test("the numbers of rows are watched without the rows") func counts() async throws {
    let daemon = try DaemonProcess()
    let client = Client(socket: daemon.socketPath)
    try await client.call("define", ["feed": "f", "kind": "collection"])
    try await client.push([Item(id: 1, text: "a"), Item(id: 2, text: "b")], to: "f")
    var totals: [Int] = []
    for try await counts in client.counts(of: "f") {
      totals.append(counts.total)
      expectEqual(counts.sections.map(\.name), ["f/all"])
      if totals.count == 2 { break }
      try await client.push(Item(id: 3, text: "c"), to: "f")
    }
    expectEqual(totals, [2, 3])
  }

  @Test("a refusal, a lost daemon and a cancelled task are errors of the call") func failures() async throws {
    let client: Client
    do {
      let daemon = try DaemonProcess()
      client = Client(socket: daemon.socketPath)
      await #expect(throws: ClientError.self) { try await client.push(Item(id: 1, text: ""), to: "nowhere") }
      let task = Task { try await client.call("ping", [String: Int]()) }
      task.cancel()
      _ = try? await task.value
      try await expectEqual(client.call("ping", [String: Int]()), Array("{}".utf8))
      try daemon.stop()
    }
    await #expect(throws: ClientError.self) { try await client.call("ping", [String: Int]()) }
  }

  @Test("concurrent requests receive their own answers") func concurrency() async throws {
    let daemon = try DaemonProcess()
    let client = Client(socket: daemon.socketPath)
    try await client.call("define", ["feed": "f", "kind": "collection"])
    try await withThrowingTaskGroup(of: Void.self) { group in
      for id in 0..<50 {
        group.addTask { try await client.push(Item(id: id, text: "number \(id)"), to: "f") }
      }
      try await group.waitForAll()
    }
    struct Element: Decodable { var element: Item }
    struct Query: Encodable {
      var feed = "f"
      var id: Int
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for id in 0..<50 {
        group.addTask {
          let found = try await client.call("get", Query(id: id), as: Element.self)
          expectEqual(found.element.id, id)
        }
      }
      try await group.waitForAll()
    }
  }

  @Test("drawers are chosen by the type of the row and receive the hint") func drawers() throws {
    final class Cell {
      var shown: [String] = []
    }
    var drawers = Drawers<Cell>()
    drawers.register("item", as: Item.self) { item, cell, animation in
      cell.shown.append("\(item.text) \(animation ?? "-")")
    }
    drawers.register("number", as: Int.self) { number, cell, _ in cell.shown.append("\(number)") }
    let cell = Cell()
    let item = Row(element: Array("{\"id\":1,\"text\":\"a\"}".utf8), type: "item")
    try expect(drawers.draw(item, into: cell, animation: "fade"))
    try expect(drawers.draw(item, into: cell))
    try expect(drawers.draw(Row(element: Array("7".utf8), type: "number"), into: cell))
    try expect(!drawers.draw(Row(element: Array("7".utf8)), into: cell))
    #expect(throws: DecodingError.self) {
      try drawers.draw(Row(element: Array("\"x\"".utf8), type: "number"), into: cell)
    }
    expectEqual(cell.shown, ["a fade", "a -", "7"])
    // Types are compared by their bytes.
    for type in ["\u{e9}", "e\u{301}"] {
      drawers.register(type, as: Int.self) { _, cell, _ in cell.shown.append("\(type.utf8.count)") }
    }
    for type in ["\u{e9}", "e\u{301}"] { _ = try drawers.draw(Row(element: Array("7".utf8), type: type), into: cell) }
    expectEqual(cell.shown.suffix(2), ["2", "3"])
  }

  @Test("an observed mirror follows a feed until its task is cancelled") @MainActor func observed() async throws {
    let daemon = try DaemonProcess()
    let client = Client(socket: daemon.socketPath)
    try await client.call("define", ["feed": "f", "kind": "collection"])
    try await client.push(Item(id: 1, text: "a"), to: "f")
    let mirror = ObservedMirror(Feed("f", socket: daemon.socketPath))
    let (updates, continuation) = AsyncStream<Void>.makeStream()
    let task = Task { try await mirror.run { _ in continuation.yield() } }
    for await _ in updates { break }
    try expectEqual(mirror[0, 0]?.decode(Item.self), Item(id: 1, text: "a"))
    expect(mirror[0, 1] == nil && mirror.interruption == nil)
    task.cancel()
    try await task.value
  }

  @Test("calls that wait for the daemon block no thread of the pool") func threads() async throws {
    let daemon = try DaemonProcess()
    let client = Client(socket: daemon.socketPath)
    try await client.call("define", ["feed": "f", "kind": "collection"])
    daemon.process.signal(SIGSTOP)
    try await withThrowingTaskGroup(of: UInt64.self) { group in
      for id in 0..<100 { group.addTask { try await client.push(Item(id: id, text: ""), to: "f") } }
      // As many tasks as wait run to their ends meanwhile.
      let sum = await withTaskGroup(of: Int.self) { others in
        for number in 0..<100 { others.addTask { number } }
        return await others.reduce(0, +)
      }
      expectEqual(sum, 4950)
      daemon.process.signal(SIGCONT)
      var revisions: Set<UInt64> = []
      for try await revision in group { revisions.insert(revision) }
      expectEqual(revisions.max(), 101)
    }
  }

  @Test("after a restart of the daemon calls connect again, and watches resume") func restart() async throws {
    let directory = try TemporaryDirectory()
    let state = ["--state", directory.file("state")]
    var daemon = try DaemonProcess(state, directory: directory)
    let client = Client(socket: daemon.socketPath)
    try await client.call("define", ["feed": "f", "kind": "collection"])
    try await client.push(Item(id: 1, text: "before"), to: "f")
    var updates = client.watch("f", as: Item.self).makeAsyncIterator()
    try await expectEqual(updates.next()?.items().map(\.id), [1])
    try daemon.stop()
    guard case .interrupted = try await updates.next()?.cause else { throw TestFailure("no interruption") }
    await #expect(throws: ClientError.self) { try await client.push(Item(id: 9, text: "lost"), to: "f") }
    daemon = try DaemonProcess(state, directory: directory)
    try await client.push(Item(id: 2, text: "after"), to: "f")
    var update = try await updates.next()
    guard case .resumed = update?.cause else {
      throw TestFailure("no resumption but \(String(describing: update?.cause))")
    }
    while try update?.items().count != 2 { update = try await updates.next() }
    try expectEqual(update?.items().map(\.text), ["before", "after"])
  }
}
