/// The decimal digits of a number that mostly grows by one or stays. They are written once and then copied.
///
///     var revision = DecimalText()
///     revision.set(41)
///     out.append(revision)
///     revision.set(42)         // changes one digit
///
/// Invariant: the first `count` bytes of `digits` are the digits of `value`.
public struct DecimalText {
  public private(set) var value: UInt64 = 0
  fileprivate private(set) var count = 1
  /// Room for the 20 digits of the greatest number.
  fileprivate private(set) var digits: (UInt64, UInt64, UInt64) = (UInt64(UInt8(ascii: "0")), 0, 0)

  /// The text of 0.
  public init() {}

  @inline(__always)
  public mutating func set(_ number: UInt64) {
    if number == value { return }
    if number > 0 && number &- 1 == value && increment() { return }
    format(number)
  }

  /// Adds one. Returns false, without any effect, if that takes another digit.
  private mutating func increment() -> Bool {
    let isDone = withUnsafeMutableBytes(of: &digits) { [count] bytes in
      var place = count &- 1
      while place >= 0, bytes[place] == UInt8(ascii: "9") { place &-= 1 }
      if place < 0 { return false }
      bytes[place] &+= 1
      for zero in (place &+ 1)..<count { bytes[zero] = UInt8(ascii: "0") }
      return true
    }
    if isDone { value &+= 1 }
    return isDone
  }

  @inline(never)
  private mutating func format(_ number: UInt64) {
    var text = ByteBuffer(capacity: MemoryLayout.size(ofValue: digits))
    text.append(integer: number)
    withUnsafeMutableBytes(of: &digits) { $0.copyMemory(from: text.bytes) }
    (value, count) = (number, text.count)
  }
}

extension ByteBuffer {
  /// Appends the digits of a number.
  @inline(__always)
  public mutating func append(_ text: borrowing DecimalText) {
    reserve(MemoryLayout.size(ofValue: text.digits))
    UnsafeMutableRawPointer(pointer + count).storeBytes(of: text.digits, as: (UInt64, UInt64, UInt64).self)
    didWrite(text.count)
  }
}
