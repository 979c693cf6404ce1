import FeedJSON
import FeedModel

extension Limits {
  /// The limits in a row of `limits`; nil when the text is not what was written there.
  init?(storedText: String) {
    var limits = Limits()
    var scanner = JSONScanner()
    var text = storedText
    let isSound = text.withUTF8 { bytes in
      guard let object = try? scanner.scan(UnsafeRawBufferPointer(bytes)), object.kind == .object else { return false }
      return (try? limits.take(object)) != nil
    }
    guard isSound else { return nil }
    self = limits
  }
}
