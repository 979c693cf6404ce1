import FeedJSON
import FeedWire
import Foundation
import TestSupport
import Testing

/// The table of methods, and the documents that must agree with it.
struct MethodTests {
  private static let protocolFolder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Protocol")

  private static var names: Set<String> { Set(Method.allCases.map(\.name)) }

  private func method(named text: String) -> Method? {
    var scanner = JSONScanner()
    return Array(text.utf8).withUnsafeBytes { bytes in (try? scanner.scan(bytes)).flatMap { Method($0) } }
  }

  @Test func findsEachMethodByItsName() {
    for expected in Method.allCases {
      expectEqual(method(named: "\"\(expected.name)\""), expected)
    }
    expectEqual(Self.names.count, Method.allCases.count)
  }

  @Test func decodesEscapesInNames() {
    let escaped = "insertChild".unicodeScalars.map { "\\u00" + String($0.value, radix: 16) }.joined()
    expectEqual(method(named: "\"\(escaped)\""), .insertChild)
    expectEqual(method(named: #""s\u0065t""#), .set)
  }

  @Test(arguments: [
    #""Update""#, #""""#, #""updat""#, #""update ""#, #""$evict""#, #""rpc.ping""#, "7", "null", #"["set"]"#,
    "\"\(String(repeating: "u", count: 10_000))\"",
  ])
  func otherNamesAreNotFound(_ text: String) {
    expectEqual(method(named: text), nil)
  }

  @Test func operationsOfTransactionsAreLogged() {
    for method in Method.allCases where method.rules.effect == .changesFeeds { expect(method.isLogged) }
    expect(Method.transaction.isLogged)
    expect(!Method.watch.isLogged)
  }

  /// A logged request executes within one turn.
  @Test func onlyReadsTakeSeveralTurns() {
    for method in Method.allCases where method.rules.cost == .long { expectEqual(method.rules.effect, .none) }
  }

  @Test func everyMethodHasAPage() throws {
    let folder = Self.protocolFolder.appending(path: "methods")
    let pages = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0 != "README.md" }
    expectEqual(Set(pages), Set(Self.names.map { "\($0).md" }))
  }

  @Test func openRPCNamesEveryMethod() throws {
    let document = try require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: Self.protocolFolder.appending(path: "openrpc.json")))
        as? [String: Any])
    let methods = try require(document["methods"] as? [[String: Any]])
    expectEqual(Set(methods.compactMap { $0["name"] as? String }), Self.names)
    let transaction = try require(methods.first { $0["name"] as? String == "transaction" })
    expectEqual(Set(Self.operations(of: transaction)), Self.names(where: { $0.effect == .changesFeeds }))
  }

  /// The methods that the schema of `transaction` allows in `ops`.
  private static func operations(of transaction: [String: Any]) -> [String] {
    let parameters = transaction["params"] as? [[String: Any]] ?? []
    let schema = parameters.first { $0["name"] as? String == "ops" }?["schema"] as? [String: Any]
    let properties = (schema?["items"] as? [String: Any])?["properties"] as? [String: Any]
    return (properties?["method"] as? [String: Any])?["enum"] as? [String] ?? []
  }

  private static func names(where matches: (Method.Rules) -> Bool) -> Set<String> {
    Set(Method.allCases.filter { matches($0.rules) }.map(\.name))
  }

  /// The table of rights names each method that needs a right. The text below it names the others.
  @Test func accessPageNamesTheRightOfEachMethod() throws {
    let page = try String(contentsOf: Self.protocolFolder.appending(path: "config.md"), encoding: .utf8)
    for right in Right.allCases {
      let row = try require(page.split(separator: "\n").first { $0.hasPrefix("| `\(right.rawValue)` |") })
      let named = row.split(separator: ";")[0].matches(of: /`([A-Za-z]+)`/).map { String($0.output.1) }
      expectEqual(Set(named.dropFirst()), Self.names(where: { $0.right == right }), "\(right)")
    }
    // The row of `read` names `feeds`. A transaction needs the rights of its operations.
    let free = Self.names(where: { $0.right == nil }).subtracting(["feeds", "transaction"])
    for name in free { expect(page.contains("`\(name)`"), "\(name)") }
  }
}
