import FeedJSON
import FeedModel
import FeedSystem
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// For each limit a client that uses one less than it allows, as much, and one more.
///
/// The tests compare the table with the limits of the daemon: a new limit needs a case here.
@Suite("Limits") struct LimitFamilyTests {
  @Test("every limit has a case, and the page of limits says which ones refuse requests")
  func table() throws {
    expectEqual(Set(LimitCase.all.map(\.limit)), Set(Limits.all.map(\.name)))
    let page = try SmallFile.read("\(BuildProducts.packageFolder)/Protocol/limits.md")
    let rows = String(decoding: page, as: UTF8.self).split(separator: "\n").filter {
      $0.hasPrefix("| `") && $0.contains("-32007")
    }
    let refusing = LimitCase.all.filter { if case .requests = $0.use { true } else { false } }
    expectEqual(Set(rows.map { String($0.dropFirst(3).prefix { $0 != "`" }) }), Set(refusing.map(\.limit)))
  }

  @Test("below and at a limit a request is executed, above it is refused and changes nothing", arguments: LimitCase.all)
  func boundary(_ this: LimitCase) throws {
    let limit = try require(Limits.all.first { $0.name == this.limit })
    func isAccepted(_ setting: Int, _ use: Int, checks: Bool) -> Bool {
      var limits = Limits()
      this.other(&limits)
      limits[keyPath: limit.keyPath] = setting
      let harness = EngineHarness(limits: limits)
      switch this.use {
      case .requests(let requests): return Self.accepts(harness, requests(use), limit, setting, checks: checks)
      case .effect(let hasEffect): return hasEffect(harness, use)
      }
    }
    if let value = this.value {
      for (use, isExpected) in [(value - 1, true), (value, true), (value + 1, false)] {
        expectEqual(isAccepted(value, use, checks: true), isExpected, "\(use) of \(value)")
      }
    } else {
      var (refused, accepted) = (0, Limits()[keyPath: limit.keyPath])
      while accepted - refused > 1 {
        let middle = (accepted + refused) / 2
        if isAccepted(middle, middle, checks: false) { accepted = middle } else { refused = middle }
      }
      expect(accepted > 10, "the requests use nothing of the limit")
      for (setting, isExpected) in [(accepted + 1, true), (accepted, true), (accepted - 1, false)] {
        expectEqual(isAccepted(setting, accepted, checks: true), isExpected, "\(accepted) of \(setting)")
      }
    }
  }

  /// Sends the requests one after the other. Returns false if one is refused.
  ///
  /// - Parameter checks: whether to check that the error names the limit and changed nothing.
  private static func accepts(
    _ harness: EngineHarness, _ requests: [LimitCase.Request], _ limit: LimitDescription, _ setting: Int, checks: Bool
  ) -> Bool {
    let (id, other) = (harness.connect(), harness.connect(uid: 0))
    for (method, params) in requests {
      let before = checks ? state(harness, other) : []
      let answers = harness.ask(id, method, params).compactMap(\.json).filter { $0["method"] == nil }
      guard let answer = answers.first, answers.count == 1 else {
        Issue.record("\(answers.count) answers to \(method)")
        return false
      }
      if answer["result"] != nil { continue }
      if checks {
        let message = answer["error"]?["message"]?.string ?? ""
        expectEqual(answer.errorCode, -32007, "\(answer)")
        expectEqual(answer.errorData?["limit"]?.string, limit.name, "\(answer)")
        expectEqual(answer.errorData?["value"]?.int, setting, "\(answer)")
        expect(message.contains("limit \(limit.name) (\(grouped(setting))) exceeded: "), "\(message)")
        expect(message.hasSuffix("--\(limit.flag)"), "\(message)")
        expectEqual(state(harness, other), before)
        expect(LimitCase.answersPing(harness, id) && LimitCase.answersPing(harness, other))
      }
      return false
    }
    return true
  }

  /// Everything that a client can see of the feeds.
  private static func state(_ harness: EngineHarness, _ id: ConnectionID) -> [String] {
    harness.engine.catalog.feeds.keys.sorted().flatMap { harness.ask(id, "verify", #"{"feed":"\#($0)"}"#) }
      + harness.ask(id, "feeds")
  }
}
