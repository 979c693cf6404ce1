import FeedJSON
import TestSupport
import Testing

@testable import FeedModel

/// Versions of elements: what they store, and that the identity is read from the text exactly where that is possible.
struct ElementTextTests {
  private static let header = 28
  private static let parts = 16

  /// Makes a version of an element whose identity is its member `id`.
  private static func make(_ text: String, keys: [UInt8] = [], type: Range<Int> = 0..<0) -> (ElementText, [UInt8])? {
    withView(text) { view in
      guard let value = view.member("id") else { return nil }
      var identity = ByteBuffer()
      guard Identity.append(value, to: &identity) else { return nil }
      let start = value.byteOffset - view.byteOffset
      let isReadable = value.kind == .string || value.isShortInteger
      let made = keys.withUnsafeBytes { keys in
        ElementText(
          identity: identity.bytes, at: isReadable ? start..<start + value.text.count : 0..<0, keys: keys,
          text: view.text, type: type)
      }
      return made.map { ($0, Array(identity.bytes)) }
    }
  }

  private static let values = [
    "0", "-0", "7", "-7", "12345678", "123456789", "123456789012345678", "-12345678901234567", "1234567890123456789",
    "-123456789012345678", "9223372036854775807", "1.0", "10e-1", "1e400", "0.5", #""""#, #""a""#, #""é😀""#, #""1""#,
    #""a\"b""#, #""a\\""#, #""\u0061""#, #""a\u0000b""#, #""i1234567""#, #""a\",\"b""#,
  ]

  /// The texts with each value as the first, a later and the last member.
  private static func texts(_ value: String) -> [String] {
    [
      #"{"id":\#(value),"b":1}"#, #"{"a":"\#(String(repeating: "x", count: 40))","id":\#(value),"id2":5}"#,
      #"{"id":\#(value)}"#,
    ]
  }

  @Test func identitiesAreThoseThatWereGiven() throws {
    for value in Self.values {
      for text in Self.texts(value) {
        let (version, identity) = try require(Self.make(text))
        defer { version.release() }
        expectEqual(String(decoding: version.text, as: UTF8.self), text)
        expectEqual(version.withIdentity { Array($0) }, identity, "\(text)")
        expectEqual(version.footprint, 44 + identity.count + text.utf8.count)
        expect(version.keys.isEmpty && version.type.isEmpty)
        for other in Self.values {
          let (another, bytes) = try require(Self.make(#"{"id":\#(other)}"#))
          another.release()
          expectEqual(bytes.withUnsafeBytes { version.hasIdentity($0) }, (bytes == identity), "\(text) and \(other)")
        }
        // What follows the identity in the text is not part of it.
        let longer = Array(#"s\#(value.dropFirst().dropLast())","b"#.utf8)
        expect(!longer.withUnsafeBytes { version.hasIdentity($0) })
      }
    }
  }

  @Test func integersAndPlainStringsAreNotStored() throws {
    for value in Self.values {
      let isPlain = value.hasPrefix("\"") ? !value.contains("\\") : value.allSatisfy(\.isNumber) || value.hasPrefix("-")
      let (version, _) = try require(Self.make(#"{"id":\#(value)}"#))
      let isShort = value.hasPrefix("\"") || value.count <= 18
      expectEqual(version.storedIdentity.isEmpty, (isPlain && isShort), "\(value)")
      version.release()
    }
    // The element itself, and a place that is far away.
    let number: [UInt8] = Array("5".utf8)
    var identity = ByteBuffer()
    expect(withView("5") { Identity.append($0, to: &identity) })
    let whole = number.withUnsafeBytes { bytes in
      ElementText(
        identity: identity.bytes, at: 0..<1, keys: UnsafeRawBufferPointer(start: nil, count: 0), text: bytes,
        type: 0..<0)
    }
    expectEqual(whole?.storedIdentity.count, 9)
    whole?.release()
    let far = #"{"a":"\#(String(repeating: "x", count: 40_000))","id":5,"b":1}"#
    let (version, bytes) = try require(Self.make(far))
    expectEqual(Array(version.storedIdentity), bytes)
    version.release()
  }

  @Test func keysTypeAndNumbersAreKept() throws {
    let text = #"{"id":5,"type":"note"}"#
    let (version, identity) = try require(Self.make(text, keys: [1, 2, 3], type: 15..<21))
    defer { version.release() }
    expectEqual(Array(version.keys), [1, 2, 3])
    expectEqual(String(decoding: version.type, as: UTF8.self), #""note""#)
    expectEqual(String(decoding: version.text, as: UTF8.self), text)
    expectEqual(version.withIdentity { Array($0) }, identity)
    expectEqual(version.footprint, 44 + 9 + 3 + text.utf8.count)
    version.arrival = (1 << 48) - 2
    version.changedAt = Instant(nanoseconds: .max)
    version.owner = .max - 1
    expect(version.arrival == (1 << 48) - 2 && version.changedAt.nanoseconds == .max && version.owner == .max - 1)
    expectEqual(version.withIdentity { Array($0) }, identity)
  }
}
