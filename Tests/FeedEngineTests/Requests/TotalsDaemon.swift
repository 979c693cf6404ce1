import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// An engine with connections of two users, to ask what each of them stores.
final class TotalsDaemon {
  let harness: EngineHarness
  /// Connections of two users.
  let (ann, bob): (ConnectionID, ConnectionID)

  init(isDurable: Bool = false, _ change: (inout Limits) -> Void = { _ in }) {
    var limits = Limits()
    change(&limits)
    harness = EngineHarness(limits: limits, isDurable: isDurable)
    ann = harness.connect(uid: 7)
    bob = harness.connect(uid: 8)
  }

  /// The limit that refuses a request; nil if it succeeds.
  func limit(_ client: ConnectionID, _ method: String, _ params: String) -> String? {
    let answer = harness.ask(client, method, params).first?.json
    if answer?["result"] != nil { return nil }
    expectEqual(answer?.errorCode, -32007)
    return answer?.errorData?["limit"]?.string ?? answer?.errorData?["reason"]?.string ?? "?"
  }

  func define(_ client: ConnectionID, _ feed: String, children: [String]? = nil) -> String? {
    let content = children.map {
      #""kind":"composed","children":["# + $0.map { "\"\($0)\"" }.joined(separator: ",") + "]"
    }
    return limit(client, "define", #"{"feed":"\#(feed)",\#(content ?? #""kind":"array""#)}"#)
  }

  /// Gives a managed feed so many rows, which differ from others if `value` does.
  func setManaged(_ feed: String, _ count: Int, value: Int = 0) {
    var rows = ManagedRows()
    for id in 0..<count {
      Array(#"{"id":\#(id),"v":\#(value)}"#.utf8).withUnsafeBytes { rows.append($0, section: feed) }
    }
    harness.engine.setManaged(feed, rows, SourceStatus(.ok, since: "T"), now: harness.now)
    harness.turn()
  }

  func usage(of uid: UInt32) -> [Int] { usage(harness.engine.catalog.accounts.usage(of: uid)) }
  var total: [Int] { usage(harness.engine.catalog.accounts.total) }
  private func usage(_ account: Account?) -> [Int] {
    account.map { [$0.feeds, $0.elements, $0.bytes, $0.definitionBytes] } ?? [0, 0, 0, 0]
  }
}
