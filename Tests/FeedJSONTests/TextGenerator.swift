import TestSupport

/// Generates valid JSON texts from a seed: all kinds, all forms of strings and numbers, with and without white space.
struct TextGenerator {
  private var random: SeededRandom
  private let spaced: Bool

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
    spaced = random.next() & 1 == 0
  }

  /// A container with up to `size` members and elements in all.
  mutating func text(size: Int) -> [UInt8] {
    var budget = size
    return space() + container(&budget, depth: 0) + space()
  }

  private mutating func pick<T>(_ choices: [T]) -> T { choices[Int.random(in: 0..<choices.count, using: &random)] }

  private mutating func space() -> [UInt8] {
    spaced ? Array(pick(["", " ", "\n", "\t ", "\r\n  "]).utf8) : []
  }

  private mutating func container(_ budget: inout Int, depth: Int) -> [UInt8] {
    let isObject = pick([true, true, false])
    var parts: [[UInt8]] = []
    for _ in 0..<pick([0, 1, 2, 3, 5, 12]) where budget > 0 {
      budget -= 1
      let name = isObject ? space() + string() + space() + [UInt8(ascii: ":")] : []
      parts.append(name + space() + value(&budget, depth: depth) + space())
    }
    let inside = parts.isEmpty ? space() : Array(parts.joined(separator: [UInt8(ascii: ",")]))
    return Array((isObject ? "{" : "[").utf8) + inside + Array((isObject ? "}" : "]").utf8)
  }

  private mutating func value(_ budget: inout Int, depth: Int) -> [UInt8] {
    switch pick([0, 1, 1, 1, 2, 2, 3]) {
    case 0: Array(pick(["true", "false", "null"]).utf8)
    case 1: number()
    case 2: string()
    default: depth < 8 ? container(&budget, depth: depth + 1) : Array("{}".utf8)
    }
  }

  mutating func number() -> [UInt8] {
    let sign = pick(["", "", "-"])
    let whole = pick(["0", "7", digits(1...3), digits(8...9), digits(13...13), digits(15...30)])
    let fraction = pick(["", "", ".0", "." + digits(1...4), ".00" + digits(7...18)])
    let exponent = pick(["", "", "", "e0", "E+\(digits(1...2))", "e-\(digits(1...2))", "e0\(digits(1...1))"])
    return Array((sign + whole + fraction + exponent).utf8)
  }

  /// Digits without a leading zero.
  private mutating func digits(_ count: ClosedRange<Int>) -> String {
    var text = String(pick(Array("123456789")))
    for _ in 1..<Int.random(in: count, using: &random) { text.append(pick(Array("0000123456789"))) }
    return text
  }

  mutating func string() -> [UInt8] {
    var inside: [UInt8] = []
    for _ in 0..<pick([0, 1, 2, 3, 4, 8]) { inside += Array(pick(Self.pieces).utf8) }
    return [UInt8(ascii: "\"")] + inside + [UInt8(ascii: "\"")]
  }

  private static let pieces = [
    "a", "id", "name", "seven77", "eight888", "a text of some length", "é", "日本語", "😀", "\u{7F}", "\u{80}", "\u{7FF}",
    "\u{800}", "\u{FFFF}", "\u{10FFFF}", #"\n"#, #"\""#, #"\\"#, #"\/"#, #"\u0000"#, #"\u00e9"#, #"\ud83d\ude00"#,
    #"\uD800"#, #"\udc00"#, #"\udbff\u0041"#, "'", "{", "}", "[", "]", ":", ",", " ",
  ]
}

/// Random mutations of a text.
enum Mutation {
  /// Bytes with a meaning in JSON, and the ends of byte ranges.
  static let bytes: [UInt8] =
    Array(#"{}[]:,"\/ truefalsn0123456789.-+eEu"#.utf8) + [0x00, 0x1F, 0x7F, 0x80, 0xBF, 0xC2, 0xE0, 0xED, 0xF4, 0xFF]

  /// The text with one to three changes.
  static func of(_ text: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
    var text = text
    for _ in 0..<Int.random(in: 1...3, using: &random) where !text.isEmpty {
      let at = Int.random(in: 0..<text.count, using: &random)
      let byte = bytes[Int.random(in: 0..<bytes.count, using: &random)]
      switch random.next() % 5 {
      case 0: text.remove(at: at)
      case 1: text.insert(byte, at: at)
      case 2: text.swapAt(at, Int.random(in: 0..<text.count, using: &random))
      case 3: text[at] ^= 1 << UInt8(random.next() % 8)
      default: text[at] = byte
      }
    }
    return text
  }
}
