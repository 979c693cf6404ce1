import Glibc

/// The form of a scanned object: its text and tokens, all but those of one value in it, and of a short integer.
///
/// Programs send texts of one form again and again. A text of a known form is compared byte for byte, and only the value is
/// scanned:
///
///     var form = JSONForm()
///     form.record(object, value: element, integer: id)
///     if let next = scanner.scan(bytes, after: 0, like: &form) { … }   // the same as scanner.scan(bytes)
///
/// Invariant: `text` has the `lengths` of its three pieces: before the first value that is left out, between the two, and
/// after them.
public struct JSONForm: ~Copyable {
  /// The parts of a text that differ from the form.
  struct Holes {
    /// The length of the integer; 0 if the form has none.
    let integer: Int
    let value: Range<Int>
  }

  /// A token of the object as a vector, and masks of those of its numbers that grow by as much as a part of the text.
  private struct Token {
    var token: SIMD4<UInt32>
    var integer = SIMD4<UInt32>()
    var value = SIMD4<UInt32>()
    var span = SIMD4<UInt32>()
  }

  private var text = ByteBuffer()
  /// The tokens of the object without those of the value: raw memory of `Token`.
  private var tokens = ByteBuffer()
  private var lengths = (0, 0, 0)
  /// The offsets in the recorded text, and the lengths in the last one. An absent integer is beyond the end.
  private var integer = (offset: UInt32.max, length: UInt32(0))
  private var value = (offset: UInt32(0), length: UInt32(0))
  /// The number of tokens before the value, and of the containers around it.
  fileprivate private(set) var tokensBefore = 0
  fileprivate private(set) var depth = 0
  private var valueSpan: UInt32 = 0

  /// The most bytes and tokens of a form, and the most digits of the integer.
  private static let longest = 1024
  private static let mostTokens = 32
  private static let mostDigits = 18

  public init() {}

  /// Whether a form was recorded.
  public var isKnown: Bool { !tokens.isEmpty }
  fileprivate var tokenCount: Int { tokens.count / MemoryLayout<Token>.stride }

  /// Records the form of an object.
  /// - Parameter integer: another one outside `value`; nil for none. If it is not a short integer, or the form is long, nothing is
  ///   recorded.
  public mutating func record(_ object: JSONView, value: JSONView, integer: JSONView?) {
    tokens.removeAll(keepingCapacity: true)
    text.removeAll(keepingCapacity: true)
    let start = object.byteOffset
    let outer = object.text.count &- value.text.count
    let count = (object.tokenEnd - object.token) - (value.tokenEnd - value.token)
    guard outer <= Self.longest, count <= Self.mostTokens, integer.map(Self.isShortInteger) ?? true else { return }
    self.value = (UInt32(value.byteOffset &- start), UInt32(value.text.count))
    self.integer = integer.map { (UInt32($0.byteOffset &- start), UInt32($0.text.count)) } ?? (.max, 0)
    let holes = [self.value, self.integer].filter { $0.offset < .max }.sorted { $0.offset < $1.offset }
    var ends = [0]
    for hole in holes { ends += [Int(hole.offset), Int(hole.offset &+ hole.length)] }
    ends.append(object.text.count)
    for piece in stride(from: 0, to: ends.count, by: 2) {
      text.append(UnsafeRawBufferPointer(rebasing: object.text[ends[piece]..<ends[piece + 1]]))
    }
    let last = ends[ends.count - 1] - ends[ends.count - 2]
    lengths = (ends[1], holes.count == 2 ? ends[3] - ends[2] : 0, last)
    (tokensBefore, depth) = (value.token - object.token, 0)
    valueSpan = value.token.pointee.span
    var token = object.token
    while token < object.tokenEnd {
      if token == value.token {
        token = value.tokenEnd
        continue
      }
      append(token.pointee, from: UInt32(start))
      token += 1
    }
  }

  private mutating func append(_ token: JSONToken, from start: UInt32) {
    let (first, end) = (token.offset &- start, token.offset &- start &+ token.length)
    let surrounds = first < value.offset && end > value.offset
    if surrounds { depth += 1 }
    // White space may be in a later value, too.
    let info = surrounds ? token.info | JSONToken.hasSpaces : token.info
    var entry = Token(token: SIMD4(first, token.length, token.span, info))
    // What comes after a part moves; what begins before it and ends after it grows.
    entry.integer = Self.mask(moves: first > integer.offset, grows: first <= integer.offset && end > integer.offset)
    entry.value = Self.mask(moves: first > value.offset, grows: first <= value.offset && end > value.offset)
    if surrounds { entry.span[2] = .max }
    withUnsafeBytes(of: entry) { tokens.append($0) }
  }

  private static func mask(moves: Bool, grows: Bool) -> SIMD4<UInt32> {
    SIMD4(moves ? .max : 0, grows ? .max : 0, 0, 0)
  }

  private static func isShortInteger(_ value: JSONView) -> Bool {
    value.text.count <= mostDigits && value.text.allSatisfy(NumberTail.isDigit) && value.isKind(.number)
  }

  /// The place of a value in all objects of a form.
  public struct Place: Sendable {
    /// The index of its token; negative from the end, for a value after the one that differs.
    fileprivate let index: Int

    /// The place of a value in an object of which the form without `value` was recorded.
    public init(of found: JSONView, in object: JSONView, without value: JSONView) {
      index = found.token - (found.token < value.token ? object.token : object.tokenEnd)
    }
  }

  /// The value at a place in an object of this form.
  public static func view(at place: Place, in object: JSONView) -> JSONView {
    JSONView(base: object.base, token: (place.index < 0 ? object.tokenEnd : object.token) + place.index)
  }

  // MARK: Comparing

  /// Returns what differs between a text and the form; nil if more than the two values does. The value is not looked at.
  @inline(__always)
  fileprivate func holes(of bytes: UnsafeRawBufferPointer) -> Holes? {
    guard isKnown, let start = bytes.baseAddress, bytes.count > text.count else { return nil }
    let (first, second, third) = lengths
    let pieces = UnsafeRawPointer(text.pointer)
    let end = bytes.count &- third
    guard memcmp(start, pieces, first) == 0, memcmp(start + end, pieces + (first &+ second), third) == 0 else {
      return nil
    }
    if integer.offset == .max { return Holes(integer: 0, value: first..<end) }
    let room = min(bytes.count &- text.count, Self.mostDigits &+ 1)
    let digits = start.assumingMemoryBound(to: UInt8.self)
    var length = 0
    if integer.offset < value.offset {
      while length < room, NumberTail.isDigit(digits[first &+ length]) { length &+= 1 }
      guard Self.isInteger(digits + first, length), length < bytes.count &- text.count,
        memcmp(start + (first &+ length), pieces + first, second) == 0
      else { return nil }
      return Holes(integer: length, value: (first &+ length &+ second)..<end)
    }
    while length < room, NumberTail.isDigit(digits[end &- length &- 1]) { length &+= 1 }
    let edge = end &- length &- second
    guard Self.isInteger(digits + (end &- length), length), edge > first,
      memcmp(start + edge, pieces + first, second) == 0
    else { return nil }
    return Holes(integer: length, value: first..<edge)
  }

  @inline(__always)
  private static func isInteger(_ digits: UnsafePointer<UInt8>, _ count: Int) -> Bool {
    count > 0 && count <= mostDigits && (digits[0] != UInt8(ascii: "0") || count == 1)
  }

  // MARK: Tokens

  /// Writes the tokens around a value, which is on the tape after room for those before it. The form takes the lengths of this
  /// text: the next one often has the same, and then its tokens are copies.
  @inline(__always)
  fileprivate mutating func write(to tape: UnsafeMutablePointer<JSONToken>, _ holes: Holes, span: Int) {
    let digits = UInt32(truncatingIfNeeded: holes.integer) &- integer.length
    let bytes = UInt32(truncatingIfNeeded: holes.value.count) &- value.length
    let more = UInt32(truncatingIfNeeded: span) &- valueSpan
    if digits | bytes | more != 0 { move(digits, bytes, more) }
    let known = UnsafeRawPointer(tokens.pointer).assumingMemoryBound(to: Token.self)
    var place = UnsafeMutableRawPointer(tape)
    for index in 0..<tokenCount {
      if index == tokensBefore { place += span &* MemoryLayout<JSONToken>.stride }
      place.storeBytes(of: known[index].token, as: SIMD4<UInt32>.self)
      place += MemoryLayout<JSONToken>.stride
    }
  }

  /// Changes the tokens for a text whose integer, value and tokens of the value are longer by so much.
  @inline(never)
  private mutating func move(_ digits: UInt32, _ bytes: UInt32, _ more: UInt32) {
    let known = UnsafeMutableRawPointer(tokens.pointer).assumingMemoryBound(to: Token.self)
    for index in 0..<tokenCount {
      let (integer, value) = (known[index].integer, known[index].value)
      known[index].token &+= (integer & digits) &+ (value & bytes) &+ (known[index].span & more)
    }
    integer.length &+= digits
    value.length &+= bytes
    valueSpan &+= more
  }
}

extension JSONScanner {
  /// Scans a text like ``scan(_:after:)`` if it has a known form; otherwise returns nil.
  ///
  /// The containers around the value are marked as not compact, also if they are.
  public mutating func scan(_ bytes: UnsafeRawBufferPointer, after kept: Int, like form: inout JSONForm) -> JSONView? {
    guard let holes = form.holes(of: bytes), let tape = known(room: kept &+ form.tokenCount &+ 2),
      let start = bytes.baseAddress
    else { return nil }
    let base = start.assumingMemoryBound(to: UInt8.self)
    let place = kept &+ form.tokensBefore
    var pass = ScanPass(base: base, count: bytes.count, tape: tape, after: place, maxDepth: maxDepth &- form.depth)
    let accepted = pass.run(holes.value)
    let span = pass.next - pass.tape.start &- place
    let end = kept &+ form.tokenCount &+ span
    take(pass.tape)
    guard accepted, end <= pass.tape.capacity else { return nil }
    let value = JSONView(base: base, token: UnsafePointer(pass.tape.start + place))
    // White space around the value is not part of it.
    guard value.text.count == holes.value.count else { return nil }
    form.write(to: pass.tape.start + kept, holes, span: span)
    didWrite(end)
    return JSONView(base: base, token: UnsafePointer(pass.tape.start + kept))
  }
}
