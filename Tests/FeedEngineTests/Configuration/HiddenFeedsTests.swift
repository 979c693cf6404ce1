import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// What watchers are told of feeds that they may not read: no name and no row, whenever rules or definitions change.
@Suite("Hidden feeds") struct HiddenFeedsTests {
  private static let reader: UInt32 = 2000

  private let harness: EngineHarness
  private let root: ConnectionID

  /// A daemon with the feed `open`, which the reader may read, and `vault`, which it may not.
  init() throws {
    harness = EngineHarness(isDurable: true)
    root = harness.connect(uid: 0)
    try allow("home")
    for feed in [#"{"feed":"open","kind":"array"}"#, #"{"feed":"vault","kind":"array"}"#] {
      _ = harness.ask(root, "define", feed)
    }
    _ = harness.ask(root, "insert", #"{"feed":"open","elements":["seen"]}"#)
    _ = harness.ask(root, "insert", #"{"feed":"vault","elements":["vault-row"]}"#)
  }

  /// Lets the reader read `open` and other feeds.
  private func allow(_ feeds: String...) throws {
    let names = (["open"] + feeds).map { "\"\($0)\"" }.joined(separator: ",")
    try harness.configure(#"{"access":[{"uid":\#(Self.reader),"feeds":[\#(names)],"allow":"read"}]}"#)
  }

  private func reason(_ frames: [String]) -> String? { frames.last?.json?["params"]?["reason"]?.string }

  /// A feed `home` of each kind that shows others: its definition over `open`, and a change after which it shows `vault`.
  struct Change: Sendable, CustomTestStringConvertible {
    let definition: String
    let method: String
    let params: String
    let back: (method: String, params: String)

    var testDescription: String { method + " " + params }
  }

  /// - Parameter content: the definition, in which `$` stands for the shown feed.
  private static func redefined(_ content: String) -> Change {
    func definition(_ feed: String) -> String {
      let parts = content.split(separator: "$", omittingEmptySubsequences: false)
      return #"{"feed":"home","replace":true,\#(parts.joined(separator: "\"\(feed)\""))}"#
    }
    return Change(
      definition: definition("open"), method: "define", params: definition("vault"),
      back: ("define", definition("open")))
  }

  private static let changes = [
    Change(
      definition: #"{"feed":"home","kind":"composed","children":["open"]}"#, method: "insertChild",
      params: #"{"feed":"home","child":"vault"}"#, back: ("removeChild", #"{"feed":"home","child":"vault"}"#)),
    Change(
      definition: #"{"feed":"home","kind":"segmented","children":["open"]}"#, method: "insertChild",
      params: #"{"feed":"home","child":"vault"}"#, back: ("removeChild", #"{"feed":"home","child":"vault"}"#)),
    redefined(#""kind":"composed","children":[$]"#), redefined(#""kind":"segmented","children":[$]"#),
    redefined(#""kind":"view","of":$"#), redefined(#""kind":"view","of":$,"filter":"@ != 1""#),
    redefined(#""kind":"slots","contents":{"A":$},"pattern":["A"]"#),
  ]

  @Test("a watch ends before it shows a hidden feed", arguments: changes)
  func change(change: Change) throws {
    _ = harness.ask(root, "define", change.definition)
    let watchers = [#"{"feed":"home"}"#, #"{"feed":"home","elements":false}"#, #"{"feed":"home","throttle":1000}"#]
    let clients = watchers.map { params in
      let client = harness.connect(uid: Self.reader)
      expect(harness.ask(client, "watch", params).first?.json?["result"] != nil)
      return client
    }
    expect(harness.ask(root, change.method, change.params).first?.json?["result"] != nil)
    for client in clients {
      let frames = harness.take(client)
      expect(reason(frames) == "access" && !harness.isOpen(client))
      expect(!frames.joined().contains("vault"), "\(frames)")
    }
  }

  @Test("what is shown and hidden again in one turn is told to nobody", arguments: changes)
  func passing(change: Change) throws {
    _ = harness.ask(root, "define", change.definition)
    let client = harness.connect(uid: Self.reader)
    _ = harness.ask(client, "watch", #"{"feed":"home"}"#)
    let requests = [
      (change.method, change.params), ("insert", #"{"feed":"vault","elements":["vault-row"]}"#), change.back,
      ("insert", #"{"feed":"open","elements":["last"]}"#),
    ]
    harness.log?.isHeld = true
    let frames = requests.map { EngineHarness.frame(#"{"jsonrpc":"2.0","method":"\#($0.0)","params":\#($0.1)}"#) }
    harness.deliver(root, Array(frames.joined()))
    harness.log?.isHeld = false
    harness.log?.store()
    harness.turn()
    let told = harness.take(client)
    expect(harness.isOpen(client) && told.joined().contains("last"), "\(told)")
    expect(!told.joined().contains("vault"), "\(told)")
  }

  @Test("a watch resumes over the time in which its feed showed a hidden one", arguments: changes)
  func resumed(change: Change) throws {
    _ = harness.ask(root, "define", change.definition)
    let first = harness.connect(uid: Self.reader)
    let answer = try require(harness.ask(first, "watch", #"{"feed":"home"}"#).first?.json?["result"])
    let epoch = try require(answer["epoch"]?.string)
    let before = try require(answer["revision"]?.int)
    _ = harness.ask(root, change.method, change.params)
    let hidden = harness.engine.catalog.revision
    let second = harness.connect(uid: Self.reader)
    func since(_ revision: Int) -> String {
      #"{"feed":"home","since":{"epoch":"\#(epoch)","revision":\#(revision)}}"#
    }
    let refused = harness.ask(second, "watch", since(before))
    expect(refused.count == 1 && refused[0].json?.errorCode == -32006)
    expect(!refused[0].contains("vault"))
    _ = harness.ask(root, "insert", #"{"feed":"vault","elements":["vault-row"]}"#)
    _ = harness.ask(root, change.back.method, change.back.params)
    for revision in [before, Int(hidden)] {
      let client = harness.connect(uid: Self.reader)
      let frames = harness.ask(client, "watch", since(revision))
      expect(frames.first?.json?["result"] != nil)
      expect(!frames.joined().contains("vault"), "\(frames)")
    }
  }

  @Test("a watch that waits for the log is checked again when it begins", arguments: [false, true])
  func waitingForTheLog(rulesChange: Bool) throws {
    _ = harness.ask(root, "define", #"{"feed":"home","kind":"composed","children":["open"]}"#)
    _ = harness.ask(root, "define", #"{"feed":"mail","kind":"collection","bins":[{"name":"new"}]}"#)
    try allow("home", "mail/new")
    let client = harness.connect(uid: Self.reader)
    harness.log?.isHeld = true
    if !rulesChange {
      harness.send(root, #"{"jsonrpc":"2.0","method":"insertChild","params":{"feed":"home","child":"vault"}}"#)
    }
    // The first watch of a bin is stored, and so is each watch after it.
    for feed in ["mail/new", "home"] { expect(harness.ask(client, "watch", #"{"feed":"\#(feed)"}"#).isEmpty) }
    if rulesChange { try allow() }
    harness.log?.isHeld = false
    harness.log?.store()
    harness.turn()
    let frames = harness.take(client)
    let refused = frames.compactMap { $0.json?.errorCode }
    expectEqual(refused, (rulesChange ? [-32006, -32006] : [-32006]), "\(frames)")
    expect(!frames.joined().contains("vault"), "\(frames)")
    _ = harness.ask(root, "insert", #"{"feed":"open","elements":["later"]}"#)
    expect(harness.isOpen(client) && harness.take(client).isEmpty)
  }

  @Test("a client that reads nothing while the rules change is told nothing that came later")
  func stalled() throws {
    _ = harness.ask(root, "define", #"{"feed":"home","kind":"composed","children":["open"]}"#)
    let client = harness.connect(uid: Self.reader)
    _ = harness.ask(client, "watch", #"{"feed":"home"}"#)
    harness.stopped = [client]
    _ = harness.ask(root, "insert", #"{"feed":"open","elements":["before"]}"#)
    _ = harness.ask(root, "insertChild", #"{"feed":"home","child":"vault"}"#)
    harness.stopped = []
    harness.turn()
    let frames = harness.take(client)
    expect(reason(frames) == "access" && !frames.joined().contains("vault"), "\(frames)")
  }

  @Test("clients names only watched feeds that the caller may read")
  func clients() throws {
    let rule = #"{"uid":\#(Self.reader),"allow":["admin"]},{"uid":\#(Self.reader),"feeds":"open","allow":"read"}"#
    _ = harness.ask(root, "define", #"{"feed":"home","kind":"composed","children":["open","vault"]}"#)
    try harness.configure(#"{"access":[\#(rule)]}"#)
    for feed in ["open", "vault", "home"] { _ = harness.ask(root, "watch", #"{"feed":"\#(feed)"}"#) }
    func watched(_ client: ConnectionID) -> [String]? {
      let answer = harness.ask(client, "clients").first { $0.contains("result") }?.json?["result"]?["clients"]
      return answer?.items.first { $0["uid"]?.int == 0 }?["watches"]?.items.compactMap(\.string)
    }
    expectEqual(watched(root), ["open", "vault", "home"])
    expectEqual(watched(harness.connect(uid: Self.reader)), ["open"])
    for method in ["stats", "quotas", "feeds"] {
      let answer = harness.ask(harness.connect(uid: Self.reader), method)
      expect(answer.first?.json?["result"] != nil && !answer.joined().contains("vault"), "\(answer)")
    }
  }
}
