/// A letter, `_`, or a byte of a scalar beyond ASCII.
func isNameFirst(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"), 0x80...: true
  default: false
  }
}

func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

func startsNumber(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "-") || isDigit(byte) }
