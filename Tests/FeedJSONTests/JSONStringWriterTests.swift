import FeedJSON
import TestSupport
import Testing

/// Strings written as JSON.
@Suite struct JSONStringWriterTests {
  private static func written(_ bytes: [UInt8]) -> String {
    var buffer = ByteBuffer()
    bytes.withUnsafeBytes { buffer.appendJSONString(utf8: $0) }
    return buffer.string
  }

  @Test func onlyWhatHasToBeIsEscaped() {
    var buffer = ByteBuffer()
    buffer.appendJSONString("a/b \"q\" \\ é😀\u{7F}\u{8}\u{9}\u{A}\u{C}\u{D}\u{0}\u{1F}")
    #expect(buffer.string == #""a/b \"q\" \\ é😀\#u{7F}\b\t\n\f\r\u0000\u001f""#)
  }

  @Test func everyCharacterComesBack() throws {
    var block = ""
    for value in 0...0x10FFFF as ClosedRange<UInt32> {
      if let scalar = Unicode.Scalar(value) { block.unicodeScalars.append(scalar) }
      guard value % 0x8000 == 0x7FFF || value == 0x10FFFF else { continue }
      var buffer = ByteBuffer()
      buffer.appendJSONString(block)
      let decoded = try withJSON(buffer.array) { $0.string }
      #expect(decoded.map { Array($0.utf8) } == Array(block.utf8), "up to \(value)")
      block = ""
    }
  }

  @Test func everyPlaceInAWord() throws {
    for length in 0..<20 {
      for special in ["\"", "\\", "\n", "\u{1}", "é"] {
        for place in 0...length {
          let text = String(repeating: "x", count: place) + special + String(repeating: "y", count: length - place)
          var buffer = ByteBuffer()
          buffer.appendJSONString(text)
          #expect(try withJSON(buffer.array) { $0.string } == text)
        }
      }
    }
  }

  @Test func surrogatesThatStandAloneAreEscaped() throws {
    #expect(Self.written([0xED, 0xA0, 0x80]) == #""\ud800""#)
    #expect(Self.written([0x61, 0xED, 0xBF, 0xBF, 0x62]) == #""a\udfffb""#)
    let source = #""x\ud83dy\udc00""#
    let bytes = try #require(try withJSON(source) { view in view.withDecodedUTF8 { Array($0) } })
    #expect(Self.written(bytes) == source)
  }

  @Test func whatIsNotUTF8IsReplaced() throws {
    #expect(Self.written([0x61, 0xFF, 0x62]) == "\"a\u{FFFD}b\"")
    #expect(Self.written([0xC3]) == "\"\u{FFFD}\"")
    var random = SeededRandom(seed: 21)
    for _ in 0..<500 {
      let noise = (0..<Int(random.next() % 40)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      #expect(scanFailure(Self.written(noise)) == nil, "\(noise)")
    }
  }
}
