import FeedJSON

extension ByteBuffer {
  /// Appends bytes as a JSON string in base64 (RFC 4648, section 4), padded.
  mutating func appendBase64(_ bytes: UnsafeRawBufferPointer) {
    let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    append(UInt8(ascii: "\""))
    var offset = 0
    while offset < bytes.count {
      let group = min(bytes.count - offset, 3)
      var bits = UInt32(bytes[offset]) << 16
      if group > 1 { bits |= UInt32(bytes[offset + 1]) << 8 }
      if group > 2 { bits |= UInt32(bytes[offset + 2]) }
      for place in 0..<4 {
        let index = Int(bits >> UInt32(18 - 6 * place)) & 63
        append(place <= group ? alphabet.utf8Start[index] : UInt8(ascii: "="))
      }
      offset += 3
    }
    append(UInt8(ascii: "\""))
  }
}
