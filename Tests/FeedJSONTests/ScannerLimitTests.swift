import TestSupport
import FeedJSON
import Testing

/// Depth, sizes, word boundaries, and independence of successive scans.
struct ScannerLimitTests {
  static func nested(_ depth: Int, _ open: String, _ close: String) -> [UInt8] {
    Array((String(repeating: open, count: depth) + "0" + String(repeating: close, count: depth)).utf8)
  }

  @Test(arguments: [0, 1, 2, 7, 512])
  func depthLimitIsExact(_ limit: Int) {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
      expectEqual(scanFailure(Self.nested(limit, open, close), maxDepth: limit), nil)
      let failure = scanFailure(Self.nested(limit + 1, open, close), maxDepth: limit)
      expectEqual(failure, JSONError(offset: limit * open.utf8.count, kind: .tooDeep))
    }
  }

  @Test func closedContainersDoNotCountAsDepth() {
    expectEqual(scanFailure(Array("[[],[],[[]],{\"a\":[]}]".utf8), maxDepth: 3), nil)
  }

  @Test func millionOpenBracketsAreRefusedWithoutRecursion() {
    let openings = [UInt8](repeating: UInt8(ascii: "["), count: 1_000_000)
    expectEqual(scanFailure(openings), JSONError(offset: 512, kind: .tooDeep))
    expectEqual(scanFailure(openings, maxDepth: .max), JSONError(offset: 1_000_000, kind: .truncated))
  }

  @Test func deepValuesAreComparedAndCopiedWithoutRecursion() throws {
    let deep = Self.nested(200_000, "[ ", "]")
    var scanner = JSONScanner(maxDepth: .max)
    var other = JSONScanner(maxDepth: .max)
    let compact = Self.nested(200_000, "[", "]")
    try deep.withUnsafeBytes { deep in
      try compact.withUnsafeBytes { compact in
        let (a, b) = (try scanner.scan(deep), try other.scan(compact))
        expect(a.equals(b))
        var buffer = ByteBuffer()
        buffer.append(compact: a)
        expectEqual(buffer.array, Array(compact))
      }
    }
  }

  @Test func tapeGrowsWithManyTokens() throws {
    let text = "[" + (0..<5000).map { "{\"n\":\($0)}" }.joined(separator: ",") + "]"
    try withJSON(text) { view in
      expectEqual(view.count, 5000)
      expectEqual(view.elements.map { $0.member("n")?.int }, Array(0..<5000))
      expectEqual(view.element(at: 4321)?.member("n")?.int, 4321)
    }
  }

  /// Every length of a string and every offset of its first special character, in the middle of a text and at its end.
  @Test(arguments: ["\"", "\\n", "é", "日", "😀", "\u{1}"])
  func stringsOfEveryLength(_ piece: String) throws {
    for length in 0..<26 {
      for place in 0...length {
        let plain = String(repeating: "x", count: place)
        let string = "\"" + plain + piece + String(repeating: "y", count: length - place) + "\""
        for text in [string, "[\(string)]", "{\(string):1}", "{\"k\":\(string),\"another\":\"member of some length\"}"]
        {
          let bytes = Array(text.utf8)
          let expected = ReferenceReader.read(bytes)
          expectEqual((scanFailure(bytes) == nil), (expected != nil), "\(text)")
        }
      }
    }
  }

  @Test func numbersOfEveryLength() throws {
    for length in 1..<40 {
      let digits = String(repeating: "9", count: length)
      for number in [digits, "-" + digits, digits + ".5", "0." + digits, "1e" + digits] {
        for text in [number, "[\(number)]", "[\(number) ,1]", "{\"k\":\(number),\"l\":0}"] {
          let bytes = Array(text.utf8)
          try expectEqual(withJSON(bytes) { ReferenceValue($0) }, ReferenceReader.read(bytes), "\(text)")
        }
      }
    }
  }

  /// Names are predicted from the previous text. Names of other lengths, and the same names again, must be read correctly.
  @Test func predictedNamesDoNotLeakIntoLaterTexts() throws {
    var scanner = JSONScanner()
    for first in 0..<20 {
      for second in [first, first + 1, first + 8, max(0, first - 1)] {
        for length in [first, second, second] {
          let name = String(repeating: "n", count: length)
          let text = Array("{\"\(name)\":\"some value\",\"b\\n\":[1,2,3],\"\(name)é\":true}".utf8)
          let value = try text.withUnsafeBytes { ReferenceValue(try scanner.scan($0)) }
          expectEqual(value, ReferenceReader.read(text))
        }
      }
    }
  }

  @Test func scannerIsReusableAfterErrorsAndReleasingMemory() throws {
    var scanner = JSONScanner()
    for text in ["[1,2", "[3]", "nope", "{\"a\":[4]}"] {
      let bytes = Array(text.utf8)
      let expected = ReferenceReader.read(bytes)
      let value = bytes.withUnsafeBytes { bytes in (try? scanner.scan(bytes)).flatMap { ReferenceValue($0) } }
      expectEqual(value, expected)
      scanner.releaseMemory()
    }
  }

  /// Memory for one large text is released; memory for a constant load is kept.
  @Test func scannerReleasesUnneededMemory() throws {
    var scanner = JSONScanner()
    let large = Array("[\(String(repeating: "1,", count: 500_000))1]".utf8)
    let small = Array("[1,2,3]".utf8)
    func scan(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { _ = try scanner.scan($0) } }
    try scan(large)
    expect(scanner.capacity > 500_000)
    for _ in 0..<3 {
      try scan(small)
      try scan(large)
      try scan(small)
      scanner.releaseUnused()
      expect(scanner.capacity > 500_000)
    }
    try scan(small)
    scanner.releaseUnused()
    expectEqual(scanner.capacity, 0)
    try scan(small)
    let capacity = scanner.capacity
    scanner.releaseUnused()
    scanner.releaseUnused()
    expect(capacity > 0 && scanner.capacity == capacity)
  }
}
