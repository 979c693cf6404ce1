import FeedJSON
import TestSupport
import Testing

/// Appending to and truncating a buffer.
struct ByteBufferTests {
  @Test func growingKeepsContents() {
    var buffer = ByteBuffer()
    var expected: [UInt8] = []
    var random = SeededRandom(seed: 3)
    while expected.count < 50_000 {
      switch random.next() % 4 {
      case 0:
        let byte = UInt8(truncatingIfNeeded: random.next())
        buffer.append(byte)
        expected.append(byte)
      case 1:
        buffer.append("a literal")
        expected += Array("a literal".utf8)
      case 2:
        let part = (0..<Int(random.next() % 200)).map { UInt8(truncatingIfNeeded: $0) }
        part.withUnsafeBytes { buffer.append($0) }
        expected += part
      default:
        buffer.append(string: "strïng")
        expected += Array("strïng".utf8)
      }
      expectEqual(buffer.count, expected.count)
      expect(buffer.capacity >= buffer.count)
    }
    expectEqual(buffer.array, expected)
  }

  @Test func reservedCapacityKeepsItsAddress() {
    var buffer = ByteBuffer(capacity: 10)
    buffer.reserve(1000)
    let before = buffer.pointer
    for _ in 0..<1000 { buffer.append(1) }
    expectEqual(buffer.pointer, before)
    expect(buffer.capacity >= 1000)
  }

  @Test func truncatesAndRemovesAll() {
    var buffer = ByteBuffer()
    buffer.append("0123456789")
    buffer.truncate(to: 12)
    buffer.truncate(to: -1)
    expectEqual(buffer.string, "0123456789")
    buffer.truncate(to: 4)
    expectEqual(buffer.string, "0123")
    buffer.reserve(100_000)
    let capacity = buffer.capacity
    buffer.removeAll(keepingCapacity: true)
    expectEqual(buffer.isEmpty, true)
    expectEqual(buffer.capacity, capacity)
    buffer.removeAll(keepingCapacity: false)
    expect(buffer.capacity < 1000)
    buffer.append("again")
    expectEqual(buffer.string, "again")
  }

  @Test func integersInDecimal() {
    var unsigned: [UInt64] = [0, .max]
    var power: UInt64 = 1
    for _ in 0..<19 {
      power *= 10
      unsigned += [power - 1, power, power + 1]
    }
    for value in unsigned + Array(0...12_000) {
      var buffer = ByteBuffer()
      buffer.append(integer: value)
      expectEqual(buffer.string, String(value))
    }
    for value in [0, -1, 1, .min, .max, .min + 1, -10, -99] as [Int] {
      var buffer = ByteBuffer()
      buffer.append(integer: value)
      buffer.append(integer: UInt32.max)
      expectEqual(buffer.string, String(value) + "4294967295")
    }
  }

  @Test func bigEndianWords() {
    var buffer = ByteBuffer()
    buffer.append(9)
    buffer.appendUInt32BigEndian(0x0102_0304)
    expectEqual(buffer.array, [9, 1, 2, 3, 4])
    buffer.overwriteUInt32BigEndian(at: 1, 0xFFFE_FDFC)
    expectEqual(buffer.array, [9, 0xFF, 0xFE, 0xFD, 0xFC])
    for offset in [2, -1, 5, .max] { buffer.overwriteUInt32BigEndian(at: offset, 0) }
    expectEqual(buffer.array, [9, 0xFF, 0xFE, 0xFD, 0xFC])
  }

  @Test func bytesWrittenInPlace() {
    var buffer = ByteBuffer()
    buffer.append("ab")
    buffer.reserve(2)
    buffer.pointer[2] = UInt8(ascii: "c")
    buffer.pointer[3] = UInt8(ascii: "d")
    buffer.didWrite(2)
    expectEqual(buffer.string, "abcd")
  }
}

/// JSON strings written to a buffer.
struct JSONStringWriterTests {
  private static func written(_ bytes: [UInt8]) -> String {
    var buffer = ByteBuffer()
    bytes.withUnsafeBytes { buffer.appendJSONString(utf8: $0) }
    return buffer.string
  }

  @Test func escapesOnlyRequiredCharacters() {
    var buffer = ByteBuffer()
    buffer.appendJSONString("a/b \"q\" \\ é😀\u{7F}\u{8}\u{9}\u{A}\u{C}\u{D}\u{0}\u{1F}")
    expectEqual(buffer.string, #""a/b \"q\" \\ é😀\#u{7F}\b\t\n\f\r\u0000\u001f""#)
  }

  @Test func everyCharacterRoundTrips() throws {
    var block = ""
    for value in 0...0x10FFFF as ClosedRange<UInt32> {
      if let scalar = Unicode.Scalar(value) { block.unicodeScalars.append(scalar) }
      guard value % 0x8000 == 0x7FFF || value == 0x10FFFF else { continue }
      var buffer = ByteBuffer()
      buffer.appendJSONString(block)
      let decoded = try withJSON(buffer.array) { $0.string }
      expectEqual(decoded.map { Array($0.utf8) }, Array(block.utf8), "up to \(value)")
      block = ""
    }
  }

  @Test func escapesAtEveryOffset() throws {
    for length in Array(0..<20) + [71, 72, 73, 140, 210] {
      for special in ["\"", "\\", "\n", "\u{1}", "é"] {
        for place in 0...length {
          let text = String(repeating: "x", count: place) + special + String(repeating: "y", count: length - place)
          var buffer = ByteBuffer()
          buffer.appendJSONString(text)
          try expectEqual(withJSON(buffer.array) { $0.string }, text)
        }
      }
    }
  }

  @Test func unpairedSurrogatesAreEscaped() throws {
    expectEqual(Self.written([0xED, 0xA0, 0x80]), #""\ud800""#)
    expectEqual(Self.written([0x61, 0xED, 0xBF, 0xBF, 0x62]), #""a\udfffb""#)
    let source = #""x\ud83dy\udc00""#
    let bytes = try require(try withJSON(source) { view in view.withDecodedUTF8 { Array($0) } })
    expectEqual(Self.written(bytes), source)
  }

  @Test func invalidUTF8IsReplaced() throws {
    expectEqual(Self.written([0x61, 0xFF, 0x62]), "\"a\u{FFFD}b\"")
    expectEqual(Self.written([0xC3]), "\"\u{FFFD}\"")
    var random = SeededRandom(seed: 21)
    for _ in 0..<500 {
      let noise = (0..<Int(random.next() % 40)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      expect(scanFailure(Self.written(noise)) == nil, "\(noise)")
    }
  }
}

/// The text of a number that mostly grows by one, compared with that of each number.
struct DecimalTextTests {
  @Test func digitsAreThoseOfTheNumber() {
    var text = DecimalText()
    let steps: [UInt64] = [0, 1, 2, 8, 9, 10, 11, 11, 98, 99, 100, 7, 999, 1000, 1999, 2000, .max - 1, .max, 0, 1]
    for number in steps + (0..<12_000).map({ UInt64($0) }) {
      text.set(number)
      var buffer = ByteBuffer()
      buffer.append(text)
      expect(String(decoding: buffer.bytes, as: UTF8.self) == "\(number)" && text.value == number)
    }
  }
}
