import FeedJSON
import Foundation
import TestSupport
import Testing

/// The files of a public JSON parsing suite, such as `test_parsing` of JSONTestSuite: a parser must accept `y_`, must refuse
/// `n_`, and can do either with `i_`.
///
/// The suite is not part of the repository. The environment variable `FEEDD_JSON_SUITE` names its folder. Without the variable
/// the tests are reported as skipped; with a folder that has no such files they fail.
enum PublicParsingSuite {
  static let folder = ProcessInfo.processInfo.environment["FEEDD_JSON_SUITE"].map {
    URL(fileURLWithPath: $0, isDirectory: true)
  }

  static let files: [String] = {
    let names = folder.flatMap { try? FileManager.default.contentsOfDirectory(atPath: $0.path) }
    return (names ?? []).filter { $0.hasSuffix(".json") }.sorted()
  }()

  static func bytes(_ name: String) throws -> [UInt8] {
    let folder = try require(folder)
    let file = try FileHandle(forReadingFrom: folder.appendingPathComponent(name))
    defer { try? file.close() }
    return Array(try file.readToEnd() ?? Data())
  }
}

@Suite(.enabled(if: PublicParsingSuite.folder != nil, "set FEEDD_JSON_SUITE to the folder of a JSON parsing suite"))
struct PublicParsingSuiteTests {
  @Test func hasAllThreeClasses() {
    for prefix in ["y_", "n_", "i_"] {
      expect(PublicParsingSuite.files.contains { $0.hasPrefix(prefix) })
    }
  }

  @Test(arguments: PublicParsingSuite.files)
  func file(_ name: String) throws {
    let bytes = try PublicParsingSuite.bytes(name)
    let failure = scanFailure(bytes)
    if name.hasPrefix("y_") { expectEqual(failure, nil) }
    if name.hasPrefix("n_") { expect(failure != nil) }
    // The offset of an error lies within the text; a valid text survives a round trip.
    if let failure {
      expect((0...bytes.count).contains(failure.offset))
    } else {
      try expectRoundTrip(bytes)
    }
  }
}
