/// One pass over one text. All steps are inlined into `run`, so that the state stays in registers.
///
/// A step returns false if the text is refused, with the reason in `fault` and the position in `p`. That is cheaper than
/// throwing, which the scanner does once.
///
/// The tape is the stack of open containers. The token of an open container holds in `span` the tape index of its parent,
/// and in `length`, while a child container is open, the number of its children so far.
struct ScanPass {
  let base: UnsafePointer<UInt8>
  private(set) var end: UnsafePointer<UInt8>
  /// The last position at which eight bytes can be read; before `base` in a short text.
  let lastWord: UnsafePointer<UInt8>
  let maxDepth: Int
  var p: UnsafePointer<UInt8>
  var fault = JSONError.Kind.truncated
  /// The position of the last white space. A container is compact if this is before its first byte.
  var lastSpace: UnsafePointer<UInt8>
  var tape: Tape
  var next: UnsafeMutablePointer<JSONToken>
  /// The last position at which a value is begun without a look at ``growOrPause()``.
  private var last: UnsafeMutablePointer<JSONToken>
  /// The number of tokens on the tape at which the pass pauses.
  private var most = Int.max
  /// Whether the pass stopped before a value, to be continued.
  private(set) var isPaused = false
  fileprivate(set) var nesting = Nesting()
  /// The bytes of strings with escapes or non-ASCII text after which the pass pauses: they take ten times as long as others.
  private var slowBytes = Int.max
  fileprivate var strings = KnownStrings()

  struct Nesting {
    var depth = 0
    /// The tape index of the innermost open container.
    var container = 0
    /// The number of children of that container so far.
    var children: UInt32 = 0
    var inObject = false
  }

  init(base: UnsafePointer<UInt8>, count: Int, tape: Tape, after kept: Int, maxDepth: Int) {
    self.base = base
    self.tape = tape
    self.maxDepth = maxDepth
    end = base + count
    lastWord = end - 8
    p = base
    lastSpace = base
    next = tape.start + kept
    last = tape.lastPair
  }

  /// Scans the whole text. Its value is then where the first token was written.
  @inline(__always)
  mutating func run() -> Bool {
    skipSpaces()
    guard p < end else { return refuse(.empty) }
    return scanValues()
  }

  /// Scans a part of the text, which is followed by other bytes of it. A scalar may be scanned beyond the part, which is then
  /// refused.
  @inline(__always)
  mutating func run(_ part: Range<Int>) -> Bool {
    p = base + part.lowerBound
    end = base + part.upperBound
    return run()
  }

  /// Scans the rest of the text from the first byte of a value, or of a name in an object.
  @inline(__always)
  private mutating func scanValues() -> Bool {
    // At the start of each iteration `p` is at the first byte of a value, or of a name in an object.
    while true {
      // An iteration writes at most one name and one value.
      if _slowPath(next > last) { guard growOrPause() else { return false } }
      if nesting.inObject { guard _fastPath(name()) else { return false } }
      let byte = p.pointee
      if byte == UInt8(ascii: "\"") {
        guard _fastPath(string()) else {
          if isPaused && nesting.inObject { returnToName() }
          return false
        }
      } else if byte <= UInt8(ascii: "9") {
        guard _fastPath(number()) else { return false }
      } else if byte | 0x20 == UInt8(ascii: "{") {
        guard _fastPath(open()) else { return false }
        guard _slowPath(p.pointee == closingByte) else { continue }
        close()
      } else {
        guard _fastPath(literal(byte)) else { return false }
      }
      if _fastPath(isFollowed(by: UInt8(ascii: ","))), nesting.depth > 0 {
        nesting.children &+= 1
        p += 1
        continue
      }
      guard closeContainers() else { return false }
      guard nesting.depth > 0 else { return true }
    }
  }

  /// Whether `byte` is at `p` and is followed by a byte that is not white space.
  @inline(__always)
  func isFollowed(by byte: UInt8) -> Bool { p + 1 < end && p.pointee == byte && p[1] > 0x20 }

  /// Skips the byte at `p` and white space. Refuses the text if it ends there.
  @inline(__always)
  mutating func advance() -> Bool {
    p += 1
    skipSpaces()
    return p < end || refuse(.truncated)
  }

  /// Scans what can follow a value: the ends of containers, then a comma, or the end of the text after the outermost value.
  @inline(__always)
  private mutating func closeContainers() -> Bool {
    while nesting.depth > 0 {
      nesting.children &+= 1
      skipSpaces()
      guard p < end else { return refuse(.truncated) }
      if p.pointee == UInt8(ascii: ",") { return advance() }
      guard p.pointee == closingByte else { return refuse(.unexpectedByte) }
      close()
    }
    skipSpaces()
    return p == end || refuse(.trailingBytes)
  }
}

extension ScanPass {
  /// The byte that closes the innermost container.
  @inline(__always)
  var closingByte: UInt8 { nesting.inObject ? UInt8(ascii: "}") : UInt8(ascii: "]") }

  /// Opens the container at `p` and advances to its contents, or to its end if it is empty.
  @inline(__always)
  mutating func open() -> Bool {
    guard nesting.depth < maxDepth else { return refuse(.tooDeep) }
    if nesting.depth > 0 { tape.start[nesting.container].length = nesting.children }
    nesting.inObject = p.pointee == UInt8(ascii: "{")
    let kind = nesting.inObject ? JSONKind.object : JSONKind.array
    next.initialize(
      to: JSONToken(
        offset: offset(p), length: 0, span: UInt32(truncatingIfNeeded: nesting.container), info: UInt32(kind.rawValue)))
    nesting.container = next - tape.start
    next += 1
    nesting.depth &+= 1
    nesting.children = 0
    return advance()
  }

  /// Closes the innermost container, whose last byte is at `p`, and returns to its parent.
  @inline(__always)
  mutating func close() {
    p += 1
    let token = tape.start + nesting.container
    let start = token.pointee.offset
    let parent = Int(token.pointee.span)
    var info = token.pointee.info | (min(nesting.children, JSONToken.countLimit) &<< JSONToken.countShift)
    if offset(lastSpace) > start { info |= JSONToken.hasSpaces }
    token.initialize(
      to: JSONToken(
        offset: start, length: offset(p) &- start, span: UInt32(truncatingIfNeeded: next - token), info: info))
    nesting.depth &-= 1
    guard nesting.depth > 0 else { return }
    nesting.container = parent
    nesting.children = tape.start[parent].length
    nesting.inObject = tape.start[parent].info & JSONToken.kindMask == UInt32(JSONKind.object.rawValue)
  }
}

extension ScanPass {
  /// Scans a member's name and colon, and advances to the value.
  @inline(__always)
  mutating func name() -> Bool {
    guard _fastPath(p.pointee == UInt8(ascii: "\"")) else { return refuse(.unexpectedByte) }
    if !predictedName() { guard _fastPath(string()) else { return false } }
    if _fastPath(isFollowed(by: UInt8(ascii: ":"))) {
      p += 1
      return true
    }
    skipSpaces()
    guard p < end else { return refuse(.truncated) }
    guard p.pointee == UInt8(ascii: ":") else { return refuse(.unexpectedByte) }
    return advance()
  }

  /// Scans the name at `p` if it is plain, has at most 15 bytes, and is as long as the token that an earlier text left at
  /// this place of the tape: consecutive texts often have the same shape.
  ///
  /// The processor must wait for the end of a string before it can continue, but it continues speculatively while it checks
  /// a predicted end. Measured: 15 to 25 percent less time for an object.
  @inline(__always)
  private mutating func predictedName() -> Bool {
    var rest = Int(next.pointee.length) &- 2
    var q = p + 1
    guard _fastPath(q + 8 <= lastWord) else { return false }
    let guess = rest
    if rest > 7, Words.stringStops(Words.load(q)) == 0 {
      q += 8
      rest &-= 8
    }
    guard rest >= 0, rest < 8, q[rest] == UInt8(ascii: "\"") else { return false }
    // The first stop is compared as a bit. If it were compared as an index, the compiler would use the computed index.
    let stops = Words.stringStops(Words.load(q))
    guard stops & (0 &- stops) == UInt64(0x80) &<< UInt64(truncatingIfNeeded: rest &* 8) else { return false }
    let start = p
    p += guess &+ 2
    append(from: start, info: UInt32(JSONKind.string.rawValue))
    return true
  }
}

extension ScanPass {
  /// Scans the string at `p`. Only plain ASCII up to the closing quote is scanned here, the rest by `StringTail`.
  @inline(__always)
  mutating func string() -> Bool {
    let start = p
    p += 1
    while p <= lastWord {
      let stops = Words.stringStops(Words.load(p))
      if _slowPath(stops == 0) {
        p += 8
        // Short strings have ended by now.
        if p - start > 16 { p = Words.skipPlain(slowBytes < Int.max ? knownPlain(from: start) : p, end) }
        continue
      }
      p += Words.firstIndex(stops)
      guard _fastPath(p.pointee == UInt8(ascii: "\"")) else { break }
      p += 1
      append(from: start, info: UInt32(JSONKind.string.rawValue))
      return true
    }
    if p > lastWord, p < end, lastWord >= base {
      // Fewer than eight bytes are left: the zeros that follow them are stops, too.
      let stops = Words.stringStops(Words.load(lastWord) &>> UInt64(truncatingIfNeeded: (p - lastWord) &* 8))
      let quote = p + Words.firstIndex(stops)
      if quote < end, quote.pointee == UInt8(ascii: "\"") {
        p = quote + 1
        append(from: start, info: UInt32(JSONKind.string.rawValue))
        return true
      }
    }
    let tail = slowBytes < Int.max ? tailInParts(from: start) : StringTail.scan(p, end)
    if tail.isPaused {
      isPaused = true
      p = start
      return false
    }
    p = tail.end
    append(from: start, info: UInt32(JSONKind.string.rawValue) | tail.flags)
    return !tail.isWrong || refuse(tail.fault)
  }

  /// Scans a part of the tail at `p` of a string, or the rest of what an earlier part left. Pauses before the next value if the pass
  /// has scanned enough.
  @inline(__always)
  private mutating func tailInParts(from start: UnsafePointer<UInt8>) -> StringTail {
    let known = strings.known(at: start - base)
    let from = known.map { base + $0.end } ?? p
    if let known, known.isWhole { return StringTail.scan(from - 1, end, flags: known.flags) }
    let tail = StringTail.scan(from, end, flags: known?.flags ?? 0, most: max(slowBytes, Self.fewBytes))
    slowBytes &-= tail.end - from
    // Also a name for which the rest of the turn suffices: the pass may pause in its value many times.
    strings.note(
      .init(start: start - base, tail: p - base, end: tail.end - base, flags: tail.flags, isWhole: !tail.isPaused))
    if slowBytes <= 0 {
      most = min(most, next - tape.start)
      last = min(last, tape.start + (most &- 1))
    }
    return tail
  }

  /// The end of what is known to be plain at the beginning of the string at `start`; `p` if an earlier part did not scan it.
  @inline(never)
  private func knownPlain(from start: UnsafePointer<UInt8>) -> UnsafePointer<UInt8> {
    strings.known(at: start - base).map { max(p, base + $0.tail) } ?? p
  }

  /// The bytes of a string that are scanned even if the pass has scanned enough.
  private static var fewBytes: Int { 4096 }

  /// Returns to the name of the member whose value is scanned.
  @inline(__always)
  private mutating func returnToName() {
    next -= 1
    p = base + Int(next.pointee.offset)
    strings.noteName(at: p - base, end: p - base + Int(next.pointee.length))
  }

  /// Scans the number at `p`. Only plain integers followed by more text are scanned here, the others by `NumberTail`.
  @inline(__always)
  mutating func number() -> Bool {
    let start = p
    if start.pointee == UInt8(ascii: "-") { p += 1 }
    let first = p
    while _fastPath(p <= lastWord) {
      let stops = Words.nonDigits(Words.load(p))
      if stops == 0 {
        p += 8
        continue
      }
      p += Words.firstIndex(stops)
      let byte = p.pointee
      guard _fastPath(byte == UInt8(ascii: ",") || (byte != UInt8(ascii: ".") && byte | 0x20 != UInt8(ascii: "e"))),
        _fastPath(p > first), _fastPath(first.pointee != UInt8(ascii: "0") || p == first + 1)
      else { break }
      append(from: start, info: UInt32(JSONKind.number.rawValue) | JSONToken.isPlainInteger)
      return true
    }
    let tail = NumberTail.scan(start, end)
    p = tail.end
    append(from: start, info: UInt32(JSONKind.number.rawValue) | tail.flags)
    return !tail.isWrong || refuse(tail.fault)
  }

  /// Scans `true`, `false` or `null` at `p`, whose first byte is `byte`.
  @inline(__always)
  mutating func literal(_ byte: UInt8) -> Bool {
    var (word, count, kind) = (0x6575_7274 as UInt64, 4, JSONKind.true)
    if byte == UInt8(ascii: "n") { (word, kind) = (0x6C6C_756E, .null) }
    if byte == UInt8(ascii: "f") { (word, count, kind) = (0x65_736C_6166, 5, .false) }
    let start = p
    if _slowPath(p > lastWord) || (Words.load(p) ^ word) &<< UInt64(64 &- 8 &* count) != 0 {
      let same = Words.commonBytes(p, end, word, count)
      p += same
      guard same == count else { return refuse(p == end ? .truncated : .unexpectedByte) }
    } else {
      p += count
    }
    append(from: start, info: UInt32(kind.rawValue))
    return true
  }
}

extension ScanPass {
  @inline(__always) func offset(_ q: UnsafePointer<UInt8>) -> UInt32 { UInt32(truncatingIfNeeded: q - base) }

  /// Records why the text is refused at `p`. Returns false.
  @inline(__always)
  mutating func refuse(_ kind: JSONError.Kind) -> Bool {
    fault = kind
    return false
  }

  /// Writes the token of a scalar that ends before `p`. `run` has made room.
  @inline(__always)
  mutating func append(from start: UnsafePointer<UInt8>, info: UInt32) {
    next.initialize(
      to: JSONToken(offset: offset(start), length: UInt32(truncatingIfNeeded: p - start), span: 1, info: info))
    next += 1
  }

  /// Skips white space (RFC 8259, section 2) and records its position.
  @inline(__always)
  mutating func skipSpaces() {
    guard _slowPath(p < end && p.pointee <= 0x20) else { return }
    let q = Self.afterSpaces(p, end)
    if q > p { lastSpace = q - 1 }
    p = q
  }

  @inline(never)
  private static func afterSpaces(_ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> UnsafePointer<UInt8> {
    var q = start
    while q < end, q.pointee == 0x20 || q.pointee == 0x0A || q.pointee == 0x0D || q.pointee == 0x09 { q += 1 }
    return q
  }

  /// Makes room for two more tokens. Returns false if there is no memory, or if the pass pauses.
  @inline(__always)
  mutating func growOrPause() -> Bool {
    let used = next - tape.start
    if used >= most {
      isPaused = true
      return false
    }
    if next > tape.lastPair {
      guard let larger = tape.enlarged() else { return refuse(.tooLarge) }
      tape = larger
      next = larger.start + used
    }
    last = tape.lastPair
    if most < Int.max { last = min(last, tape.start + (most &- 1)) }
    return true
  }
}

/// Where a pass was paused, without the addresses of text and tape.
struct ScanPause {
  private let offset: Int
  private let lastSpace: Int
  private let tokens: Int
  private let nesting: ScanPass.Nesting
  private let strings: KnownStrings

  fileprivate init(_ pass: ScanPass) {
    offset = pass.p - pass.base
    lastSpace = pass.lastSpace - pass.base
    tokens = pass.next - pass.tape.start
    nesting = pass.nesting
    strings = pass.strings
  }

  fileprivate func apply(to pass: inout ScanPass) {
    pass.p = pass.base + offset
    pass.lastSpace = pass.base + lastSpace
    pass.next = pass.tape.start + tokens
    pass.nesting = nesting
    pass.strings = strings
  }
}

/// The long strings of the member at which a pass was paused: its name, and the part of its value that was scanned.
struct KnownStrings {
  struct Entry {
    /// The offsets of the string, of its first byte that is not plain, and of the end of what was scanned of it.
    var start = -1
    var tail = 0
    var end = 0
    var flags: UInt32 = 0
    var isWhole = false
  }

  private var former = Entry()
  private var last = Entry()

  func known(at start: Int) -> Entry? { last.start == start ? last : former.start == start ? former : nil }

  mutating func note(_ entry: Entry) {
    if last.start != entry.start { former = last }
    last = entry
  }

  /// Records the name of the member whose value was noted last. Plain names are not known.
  mutating func noteName(at start: Int, end: Int) {
    if former.start != start { former = Entry(start: start, tail: end - 1, end: end, isWhole: true) }
  }
}

extension ScanPass {
  /// Where the pass was paused; nil if it has ended.
  var pause: ScanPause? { isPaused ? ScanPause(self) : nil }

  /// The bytes of a string with escapes or non-ASCII text that take as long as a token.
  private static var slowBytesOfAToken: Int { 16 }

  /// Scans about `count` tokens of the text: its beginning, or what follows a pause.
  @inline(never)
  mutating func run(after pause: ScanPause?, tokens count: Int) -> Bool {
    pause?.apply(to: &self)
    most = (next - tape.start) &+ max(count, 1)
    slowBytes = max(count, 1) &* Self.slowBytesOfAToken
    last = min(last, tape.start + (most &- 1))
    return pause == nil ? run() : scanValues()
  }
}
