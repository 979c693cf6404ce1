extension JSONView {
  /// The value of a number that is exactly an integer in the range of `Int`, however it is written (`1e2` and `1.0`
  /// are). Nil for all other numbers and kinds.
  public var int: Int? {
    guard isKind(.number) else { return nil }
    let bytes = UnsafeBufferPointer(start: start, count: Int(token.pointee.length))
    if token.pointee.info & JSONToken.isPlainInteger != 0, bytes.count <= 18 {
      return JSONNumber.shortInteger(bytes)
    }
    return JSONNumber(bytes).int
  }
}
