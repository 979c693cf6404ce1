extension JSONNumber {
  /// Orders two numbers of RFC 8259 by their exact values: -1, 0 or 1. O(digits).
  public static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
    a.withMemoryRebound(to: UInt8.self) { a in
      b.withMemoryRebound(to: UInt8.self) { b in
        if let left = shortInteger(a), let right = shortInteger(b) {
          return left == right ? 0 : left < right ? -1 : 1
        }
        return JSONNumber(a).compare(JSONNumber(b))
      }
    }
  }

  /// Orders by exact value: -1, 0 or 1.
  public func compare(_ other: JSONNumber) -> Int {
    let (mine, theirs) = (sign, other.sign)
    if mine != theirs { return mine < theirs ? -1 : 1 }
    return mine * compareMagnitude(other)
  }

  /// -1, 0 or 1.
  public var sign: Int { digitCount == 0 ? 0 : isNegative ? -1 : 1 }

  private func compareMagnitude(_ other: JSONNumber) -> Int {
    if exponent != other.exponent { return exponent < other.exponent ? -1 : 1 }
    var (left, right) = (digits, other.digits)
    while let a = left.next(), let b = right.next() {
      if a != b { return a < b ? -1 : 1 }
    }
    // No trailing zeros are counted, so the one with more digits is more.
    return (digitCount &- other.digitCount).signum()
  }
}
