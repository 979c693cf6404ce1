import FeedJSON

extension JSONView {
  /// Gives the decoded bytes of this string. Without escapes, nearly always, that is a piece of the text and the call is inlined.
  ///
  /// Surrogates that stand alone are three bytes, as `withDecodedUTF8` says.
  @inline(__always)
  func withStringBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    if !hasEscapes {
      let quoted = text
      return body(UnsafeRawBufferPointer(rebasing: quoted[1..<max(quoted.count - 1, 1)]))
    }
    // Only strings have escapes.
    return withDecodedUTF8(body).unsafelyUnwrapped
  }
}
