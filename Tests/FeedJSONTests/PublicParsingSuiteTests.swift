import FeedJSON
import Foundation
import Testing

/// The public JSON parsing suite, if it is next to the package: `y_` must be accepted, `n_` must be refused, `i_` can be
/// either.
enum PublicParsingSuite {
  static let folder = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("../shared/conformance/json-parsing").standardizedFileURL

  static let files: [String] = {
    let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path)
    return (names ?? []).filter { $0.hasSuffix(".json") }.sorted()
  }()

  static func bytes(_ name: String) throws -> [UInt8] {
    let file = try FileHandle(forReadingFrom: folder.appendingPathComponent(name))
    defer { try? file.close() }
    return Array(try file.readToEnd() ?? Data())
  }
}

@Suite(.enabled(if: !PublicParsingSuite.files.isEmpty, "the public suite is not next to the package"))
struct PublicParsingSuiteTests {
  @Test func hasAllThreeClasses() {
    for prefix in ["y_", "n_", "i_"] {
      #expect(PublicParsingSuite.files.contains { $0.hasPrefix(prefix) })
    }
  }

  @Test(arguments: PublicParsingSuite.files)
  func file(_ name: String) throws {
    let bytes = try PublicParsingSuite.bytes(name)
    let failure = scanFailure(bytes)
    if name.hasPrefix("y_") { #expect(failure == nil) }
    if name.hasPrefix("n_") { #expect(failure != nil) }
    // The offset of an error is in the text, and a valid text survives a round trip.
    if let failure {
      #expect((0...bytes.count).contains(failure.offset))
    } else {
      try expectRoundTrip(bytes)
    }
  }
}
