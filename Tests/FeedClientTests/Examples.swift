import FeedClient

// The examples of the documentation comments of FeedClient. ExampleTests compares them, so that each one compiles.

private final class Cell {
  func show(_ text: String, animated: Bool) {}
}

private enum Examples {
  static func claim(client: Client) async throws {
    try await client.patch("b", in: "todo", with: ["owner": "me"], where: "!@.owner")
  }

  static func client() async throws {
    struct Item: Codable {
      var id: Int
      var text: String
    }

    let client = Client()
    try await client.push(Item(id: 1, text: "disk full"), to: "inbox")
    try await client.transaction { changes in
      try changes.push([Item(id: 2, text: "fan"), Item(id: 3, text: "door")], to: "inbox")
      try changes.patch(2, in: "inbox", with: ["text": "fan stopped"])
      changes.delete(1, from: "inbox")
    }
    for try await update in client.watch("inbox", as: Item.self) {
      print(try update.items())
    }
  }

  static func call(_ client: Client) async throws {
    try await client.call("define", ["feed": "inbox", "kind": "collection"])
  }

  static func transaction(_ client: Client) async throws {
    struct Description: Decodable { var revision: UInt64 }

    let inbox = try await client.call("describe", ["feed": "inbox"], as: Description.self)
    try await client.transaction { changes in
      changes.require("inbox", at: inbox.revision)  // no other program has changed it since
      try changes.insert([Item(id: 4, text: "rain")], into: "queue", at: 0)
    }
  }

  static func counts(_ client: Client, _ show: (Int) -> Void) async throws {
    for try await counts in client.counts(of: "inbox/urgent") { show(counts.total) }
  }

  @MainActor static func observedMirror() throws {
    let inbox = ObservedMirror(Feed("inbox"))
    Task { try await inbox.run() }
    let item = try inbox[0, 3]?.decode(Item.self)
    _ = item
  }

  static func drawers(_ update: ItemUpdate<Item>) throws {
    var drawers = Drawers<Cell>()
    drawers.register("alarm", as: Item.self) { item, cell, animation in
      cell.show(item.text, animated: animation != nil)
    }
    for row in update.rows { try drawers.draw(row, into: Cell(), animation: update.animation) }
  }

  static func feed(_ show: (Mirror?) -> Void, _ animate: (Delta, Mirror?) -> Void, _ grayOut: (ClientError?) -> Void)
    async throws
  {
    for try await update in Feed("inbox") {
      switch update.cause {
      case .snapshot, .selection: show(update.mirror)
      case .delta(let delta): animate(delta, update.mirror)
      case .interrupted(let reason): grayOut(reason)
      case .resumed: grayOut(nil)
      }
    }
  }

  static func mirror(_ start: WatchStart, _ part: SnapshotPart, _ delta: Delta) throws {
    var mirror = Mirror(start)  // the result of `watch`
    try mirror.apply(part)  // each part of the snapshot
    try mirror.apply(delta)  // then each delta
    let text = mirror[0, 3]?.element  // JSON text
    _ = text
  }
}
