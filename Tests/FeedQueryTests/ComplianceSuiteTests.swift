import FeedJSON
import Foundation
import Testing

@testable import FeedQuery

/// The public compliance suite of RFC 9535, if it is next to the package.
private let suite: URL = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  .deletingLastPathComponent().deletingLastPathComponent().appending(path: "shared/conformance/jsonpath-cts.json")

@Suite struct ComplianceSuiteTests {
  @Test(.enabled(if: FileManager.default.fileExists(atPath: suite.path))) func wholeSuite() throws {
    let bytes = try Data(contentsOf: suite)
    var scanner = JSONScanner()
    try bytes.withUnsafeBytes { bytes in
      let tests = try #require(try scanner.scan(bytes).member("tests"))
      for test in tests.elements { try check(test) }
      #expect(tests.count >= 703)
    }
  }

  private func check(_ test: JSONView) throws {
    let name = try #require(test.member("name")?.string)
    let selector = try #require(test.member("selector")?.string)
    if test.member("invalid_selector")?.bool == true {
      let error = refusal(selector)
      #expect(error != nil, "\(name): \(selector) must be refused")
      #expect((0...selector.utf8.count).contains(error?.offset ?? 0), "\(name)")
      return
    }
    let document = try #require(test.member("document"))
    let path: JSONPath
    do { path = try JSONPath(parsing: selector) } catch {
      Issue.record("\(name): \(selector) is refused \(error)")
      return
    }
    var expected: [JSONView] = []
    if let result = test.member("result") { expected.append(result) }
    if let results = test.member("results") { expected.append(contentsOf: results.elements) }
    var nodes: [JSONView] = []
    path.evaluate(document) { nodes.append($0) }
    let found = nodes.map { String(decoding: $0.text, as: UTF8.self) }
    #expect(
      expected.contains { result in
        result.count == nodes.count && zip(result.elements, nodes).allSatisfy { $0.equals($1) }
      }, "\(name): \(selector) gives \(found)")
    #expect(try reference(document, agreesWith: nodes, of: path), "\(name): \(selector) element by element")
  }

  /// Whether elementwise evaluation, if the path allows it, gives the same nodes.
  private func reference(_ document: JSONView, agreesWith nodes: [JSONView], of path: JSONPath) throws -> Bool {
    guard document.kind == .array, let elementwise = path.elementwise() else { return true }
    let elements = Array(document.elements)
    var found: [Int] = []
    for row in elementwise.selection(count: elements.count) {
      elementwise.evaluate(elements[row]) { found.append($0.byteOffset) }
    }
    return found == nodes.map(\.byteOffset)
  }
}
