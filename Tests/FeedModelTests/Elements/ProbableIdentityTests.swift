import FeedJSON
import TestSupport
import Testing

@testable import FeedModel

/// The identity that is guessed from a text which was not scanned is the one that is found when it is.
struct ProbableIdentityTests {
  private func guess(_ text: String) -> [UInt8]? {
    Array(text.utf8).withUnsafeBytes { bytes in
      var buffer = ByteBuffer()
      return Identity.append(probable: bytes, to: &buffer) ? Array(buffer.bytes) : nil
    }
  }

  private func identity(_ json: String) throws -> [UInt8] {
    try withJSON(Array(json.utf8)) { view in
      var buffer = ByteBuffer()
      expect(Identity.append(view, to: &buffer))
      return Array(buffer.bytes)
    }
  }

  @Test func guessesAreThoseOfAScan() throws {
    for id in ["0", "7", "1000000005", "123456789012345678", "\"a\"", "\"\"", "\"a longer identity é\""] {
      expectEqual(guess(id + ",\"more\":1}"), (try identity(id)), "\(id)")
    }
  }

  @Test func othersAreNotGuessed() {
    for text in ["", "5", "\"open", "-1,", "null,", "{}", "[1]", ",", "1234567890123456789,"] {
      expectEqual(guess(text), nil, "\(text)")
    }
  }
}
