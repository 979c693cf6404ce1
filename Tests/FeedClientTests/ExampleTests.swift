import Foundation
import TestSupport
import Testing

@Suite("examples of the documentation") struct ExampleTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
  private static let root = folder.deletingLastPathComponent().deletingLastPathComponent()

  /// The lines without indentation, empty lines and comments at their ends.
  private func normal(_ lines: [Substring]) -> String {
    lines.map { $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ") }
      .filter { !$0.isEmpty }.joined(separator: "\n")
  }

  /// The indented blocks of the documentation comments of a source file.
  private func examples(in source: String) -> [[Substring]] {
    var blocks: [[Substring]] = []
    var block: [Substring] = []
    for line in source.split(separator: "\n", omittingEmptySubsequences: false) {
      let text = line.drop { $0 == " " }
      if text.hasPrefix("///     ") {
        block.append(text.dropFirst(3))
      } else if text != "///" || block.isEmpty {
        if !block.isEmpty { blocks.append(block) }
        block = []
      }
    }
    return blocks
  }

  @Test("every example in the sources of FeedClient is compiled with these tests") func sources() throws {
    let compiled = normal(
      try String(contentsOf: Self.folder.appending(path: "Examples.swift"), encoding: .utf8).split(separator: "\n"))
    let sources = Self.root.appending(path: "Sources/FeedClient")
    var count = 0
    for file in FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)! {
      guard let file = file as? URL, file.pathExtension == "swift" else { continue }
      for example in examples(in: try String(contentsOf: file, encoding: .utf8)) {
        count += 1
        expect(compiled.contains(normal(example)), "\(file.lastPathComponent): \(normal(example))")
      }
    }
    expect(count >= 5)
  }

  @Test("the Swift programs of the README are the ones in Examples") func readme() throws {
    let readme = try String(contentsOf: Self.root.appending(path: "README.md"), encoding: .utf8)
    let program = try String(
      contentsOf: Self.root.appending(path: "Tests/Examples/notices/main.swift"), encoding: .utf8)
    for block in readme.components(separatedBy: "```swift\n").dropFirst() {
      let code = block.components(separatedBy: "```")[0]
      expect(program.contains(code))
    }
  }
}
