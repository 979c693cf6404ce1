import FeedJSON
import Testing

/// Strict UTF-8 inside strings: the standard library says what is well-formed.
@Suite struct UTF8Tests {
  /// Ends of all ranges that the tables of RFC 3629 know, and their neighbours.
  static let interesting: [UInt8] = [
    0x00, 0x22, 0x41, 0x5C, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED,
    0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF,
  ]

  private static func check(_ sequence: [UInt8]) {
    // Quote, reverse solidus and control characters have tests of their own.
    guard sequence.allSatisfy({ $0 >= 0x20 && $0 != 0x22 && $0 != 0x5C }) else { return }
    let isValid = String(validating: sequence, as: UTF8.self) != nil
    for padding in [0, 9] {
      let bytes = [0x22] + sequence + [0x22] + [UInt8](repeating: 0x20, count: padding)
      let failure = scanFailure(bytes)
      if isValid != (failure == nil) { Issue.record("\(sequence): \(String(describing: failure))") }
      if let failure { #expect(failure.kind == .invalidUTF8) }
    }
  }

  @Test func everyPairOfBytes() {
    for first in UInt8(0x7F)...0xFF {
      for second in UInt8(0x20)...0xFF { Self.check([first, second]) }
    }
  }

  @Test func everySequenceOfInterestingBytes() {
    for a in Self.interesting where a >= 0xE0 {
      for b in Self.interesting {
        for c in Self.interesting {
          Self.check([a, b, c])
          for d in [0x41, 0x7F, 0x80, 0xBF, 0xC0] as [UInt8] { Self.check([a, b, c, d]) }
        }
      }
    }
  }

  @Test func aSequenceThatTheTextCutsOff() {
    for character in ["é", "日", "😀"] {
      let bytes = [0x22] + Array(character.utf8)
      for length in 2..<bytes.count { #expect(scanFailure(Array(bytes[..<length]))?.kind == .invalidUTF8) }
    }
  }

  @Test func outsideStringsNothingBeyondASCIIStands() {
    #expect(scanFailure("[é]") == JSONError(offset: 1, kind: .unexpectedByte))
    #expect(scanFailure([0xFF, 0xFE]) == JSONError(offset: 0, kind: .unexpectedByte))
  }
}
