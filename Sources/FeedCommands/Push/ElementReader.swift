import FeedClient
import FeedJSON

/// Splits a stream of JSON texts into elements: one on each line, concatenated, pretty-printed, or in arrays, in any
/// combination. All commands read JSON from files and standard input with it.
///
/// A top-level array stands for its items. A byte order mark at the very beginning is skipped. After a value that is
/// complete but not acceptable, the reader continues behind it. After any other error it continues with the next line or, if
/// the error is inside a value of several lines, with the next line that begins with a bracket and is not indented more than
/// that value. A value longer than the limit is discarded while it is read, so memory stays bounded.
///
///     reader.room()… reader.didFill(count)
///     while let item = reader.next() { … }
struct ElementReader: ~Copyable {
  enum Item {
    /// An element and the place of its beginning, from 1, with columns in bytes. Valid until the next call.
    case element(JSONView, line: Int, column: Int)
    case flaw(Flaw)
  }

  /// A part of the input that is not an element.
  struct Flaw: Error, Equatable, CustomStringConvertible {
    /// The place of the error, from 1. Columns count bytes.
    var line: Int
    var column: Int
    var reason: String
    /// Whether the text is not JSON. Otherwise no daemon with these limits would accept it.
    var isSyntax = true

    var description: String { "line \(line), column \(column): \(isSyntax ? "not JSON: " : "")\(reason)" }

    static func depth(line: Int, column: Int, _ levels: Int) -> Flaw {
      let reason = "the element nests deeper than \(counted(levels, "level"))"
      return Flaw(line: line, column: column, reason: reason, isSyntax: false)
    }
  }

  private enum Mode: Equatable {
    /// Between values.
    case between
    /// Inside a value, which begins at the start of the queue.
    case value
    /// Discarding the rest of a value that is too long.
    case discarding
    /// Discarding the rest of the line.
    case skippingLine
    /// Discarding lines up to one that begins with a bracket after at most this many spaces.
    case skippingLines(indent: Int)
    /// Discarding everything.
    case skippingAll
  }

  /// The place between values.
  private enum Place: Equatable {
    /// At the beginning of the input.
    case start
    /// Outside arrays.
    case top
    /// After the `[` of an array.
    case first
    /// After a comma.
    case item
    /// After an item.
    case next
    /// After an error: commas and brackets are accepted silently up to the next item or the end of the array.
    case lost
  }

  private let limit: Int
  /// The maximum depth of an element.
  private let maxDepth: Int
  /// Whether a top-level array stands for its items.
  private let opensArrays: Bool
  private var queue: ByteQueue
  private var scanner: JSONScanner
  private var outline = ValueOutline()
  private var mode = Mode.between
  private var place = Place.start
  /// The line and column of the first byte in the queue.
  private var line = 1
  private var column = 1
  /// The line of the `[` of the array that is being read.
  private var arrayLine: Int?
  private var isFinished = false

  /// The maximum depth without a daemon's limit: more than any daemon accepts.
  static let anyDepth = 10_000

  /// - Parameters:
  ///   - limit: the maximum bytes of an element.
  ///   - maxDepth: the maximum nesting of an element.
  ///   - opensArrays: whether a top-level array stands for its items.
  init(limit: Int, maxDepth: Int = anyDepth, opensArrays: Bool = true, capacity: Int = 64 << 10) {
    (self.limit, self.maxDepth, self.opensArrays) = (limit, maxDepth, opensArrays)
    queue = ByteQueue(capacity: capacity)
    scanner = JSONScanner(maxDepth: maxDepth)
  }

  /// Returns memory to read into. Call ``didFill(_:)`` with the number of bytes written there.
  mutating func room() -> UnsafeMutableRawBufferPointer { queue.room() }

  mutating func didFill(_ count: Int) { queue.didFill(count) }

  /// Marks the end of the input.
  mutating func finish() { isFinished = true }

  /// Returns the next item; nil if more bytes are needed, and at the end.
  mutating func next() -> Item? {
    while true {
      let step =
        switch mode {
        case .between: place == .start ? beginInput() : begin()
        case .value: readValue()
        case .discarding: discard()
        case .skippingLine: skipLine()
        case .skippingLines(let indent): skipLines(indent)
        case .skippingAll: skipAll()
        }
      switch step {
      case .item(let item): return item
      case .proceeds: continue
      case .needsInput: return nil
      }
    }
  }
}

extension ElementReader {
  /// The result of a step of the reader.
  private enum Step {
    case item(Item)
    /// Something was consumed, or the mode changed.
    case proceeds
    /// More bytes are needed, or the input has ended.
    case needsInput
  }

  private mutating func beginInput() -> Step {
    let bytes = queue.bytes
    if !isFinished, bytes.count < 2 || ByteOrderMark.isBegun(by: bytes) { return .needsInput }
    place = .top
    if bytes.count > 1, Self.isWide(bytes[0], bytes[1]) {
      mode = .skippingAll
      return .item(
        .flaw(Flaw(line: 1, column: 1, reason: "the input is UTF-16 or UTF-32; convert it to UTF-8", isSyntax: false)))
    }
    queue.consume(ByteOrderMark.length(atStartOf: bytes))
    return .proceeds
  }

  /// Whether a text that begins with two bytes is UTF-16 or UTF-32: there is a byte order mark, or half of a character is
  /// zero, because JSON begins with ASCII.
  private static func isWide(_ first: UInt8, _ second: UInt8) -> Bool {
    first == 0 || second == 0 || first == 0xFF && second == 0xFE || first == 0xFE && second == 0xFF
  }

  /// Skips white space and separators up to the beginning of a value.
  private mutating func begin() -> Step {
    skipSpace()
    guard let byte = queue.bytes.first else { return isFinished ? endArray() : .needsInput }
    // The first byte of the mark.
    if byte == 0xEF, let step = refuseMark() { return step }
    switch (byte, place) {
    case (UInt8(ascii: "]"), .first), (UInt8(ascii: "]"), .next), (UInt8(ascii: "]"), .lost):
      return close()
    case (UInt8(ascii: "]"), .item):
      let flaw = flaw("expected a value after the comma")
      _ = close()
      return flaw
    case (UInt8(ascii: ","), .next): return take(1, then: .item)
    case (UInt8(ascii: ","), .lost): return take(1, then: .lost)
    case (UInt8(ascii: ","), .first), (UInt8(ascii: ","), .item):
      let flaw = flaw("expected a value before the comma")
      _ = take(1, then: .lost)
      return flaw
    case (UInt8(ascii: "["), .top) where opensArrays, (UInt8(ascii: "["), .lost) where opensArrays && arrayLine == nil:
      arrayLine = line
      return take(1, then: .first)
    case (_, .next):
      let flaw = flaw("expected , or ]")
      if ValueOutline.beginsValue(byte) { place = .lost } else { giveUp(.skippingLine) }
      return flaw
    case (UInt8(ascii: "]"), _), (UInt8(ascii: ","), _):
      let flaw = flaw("expected a value")
      giveUp(.skippingLine)
      return flaw
    default: break
    }
    (mode, outline) = (.value, ValueOutline())
    return .proceeds
  }

  /// Refuses a byte order mark at the start of the queue. Returns nil if there is none.
  private mutating func refuseMark() -> Step? {
    if ByteOrderMark.isBegun(by: queue.bytes), !isFinished { return .needsInput }
    let mark = ByteOrderMark.length(atStartOf: queue.bytes)
    if mark == 0 { return nil }
    let flaw = flaw("unexpected byte order mark (U+FEFF)")
    take(mark)
    return flaw
  }

  /// Returns the flaw of an array that does not end.
  private mutating func endArray() -> Step {
    defer { (arrayLine, place) = (nil, .top) }
    guard let start = arrayLine, place != .lost else { return .needsInput }
    return flaw("the array that begins in line \(start) has no ]")
  }

  private mutating func close() -> Step {
    arrayLine = nil
    return take(1, then: .top)
  }

  private mutating func take(_ count: Int, then place: Place) -> Step {
    take(count)
    self.place = place
    return .proceeds
  }

  /// A flaw at the start of the queue.
  private func flaw(_ reason: String) -> Step { .item(.flaw(Flaw(line: line, column: column, reason: reason))) }

  private mutating func readValue() -> Step {
    let bytes = queue.bytes
    let length: Int
    var isComplete = false
    switch outline.advance(bytes) {
    case .complete(let count): (length, isComplete) = (count, true)
    case .incomplete where bytes.count > limit: return refuseLength(bytes.count, then: .discarding)
    case .incomplete where !isFinished: return .needsInput
    case .incomplete: length = bytes.count
    case .malformed(let offset):
      // The rest of a byte order mark is needed to name it.
      let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
      if !isFinished, ByteOrderMark.isBegun(by: rest), rest.first == 0xEF { return .needsInput }
      length = min(offset + 1, bytes.count)
    }
    if length > limit { return refuseLength(length, then: isComplete ? .between : .skippingLine) }
    let text = UnsafeRawBufferPointer(rebasing: bytes[..<length])
    let (start, startColumn) = (line, column)
    do throws(JSONError) {
      let view = try scanner.scan(text)
      endValue()
      take(length)
      return .item(.element(view, line: start, column: startColumn))
    } catch {
      return refuse(text, error, isComplete: isComplete)
    }
  }

  /// The mode and place after a value.
  private mutating func endValue() {
    mode = .between
    place = arrayLine != nil ? .next : place
  }

  /// Skips a value that is not JSON or not acceptable.
  private mutating func refuse(_ text: UnsafeRawBufferPointer, _ error: JSONError, isComplete: Bool) -> Step {
    let offset = min(error.offset, text.count)
    let (start, indent) = (line, column - 1)
    // The text ends with the first byte of an error, and what follows may be the rest of a byte order mark.
    var flaw = Flaw(line: line, column: column, reason: error.message(in: queue.bytes))
    switch error.kind {
    case .tooDeep: flaw = .depth(line: line, column: column, maxDepth)
    case .invalidUTF8:
      (flaw.line, flaw.column) = position(of: offset, in: text)
      flaw.isSyntax = false
    default: (flaw.line, flaw.column) = position(of: offset, in: text)
    }
    // A word such as `nul` ends where another character begins; it is skipped as a value.
    if isComplete {
      endValue()
      take(text.count)
      return .item(.flaw(flaw))
    }
    let isInLaterLine = text[..<offset].contains(Self.newline)
    // The line of the error may be the beginning of the next value.
    if isInLaterLine { take(text[..<offset].lastIndex(of: Self.newline) ?? 0) }
    giveUp(isInLaterLine ? .skippingLines(indent: indent) : .skippingLine, from: start)
    return .item(.flaw(flaw))
  }

  /// Reports a value that is too long, and discards its first bytes.
  private mutating func refuseLength(_ count: Int, then mode: Mode) -> Step {
    let flaw = Flaw(
      line: line, column: column, reason: "the element is longer than the daemon's frames allow", isSyntax: false)
    let start = line
    outline.didDiscard(count)
    take(count)
    switch mode {
    case .between: endValue()
    case .discarding: self.mode = mode
    default: giveUp(mode, from: start)
    }
    return .item(.flaw(flaw))
  }

  /// Discards the rest of a value that is too long.
  private mutating func discard() -> Step {
    switch outline.advance(queue.bytes) {
    case .complete(let count):
      endValue()
      take(count)
      return .proceeds
    case .malformed(let offset):
      take(offset)
      giveUp(.skippingLine)
      return .proceeds
    case .incomplete:
      outline.didDiscard(queue.count)
      return skipAll()
    }
  }

  /// Skips text after an error. What an array on the same line has left is skipped, so that array is over.
  /// - Parameter start: the line where the malformed value begins.
  private mutating func giveUp(_ mode: Mode, from start: Int? = nil) {
    self.mode = mode
    if arrayLine == start ?? line { arrayLine = nil }
    if place != .top { place = .lost }
  }

  /// Discards the rest of the line.
  private mutating func skipLine() -> Step {
    guard let end = queue.bytes.firstIndex(of: Self.newline) else { return skipAll() }
    take(end + 1)
    mode = .between
    return .proceeds
  }

  /// Discards lines up to one with a bracket after at most `indent` spaces.
  private mutating func skipLines(_ indent: Int) -> Step {
    while let end = queue.bytes.firstIndex(of: Self.newline) {
      let bytes = queue.bytes
      var next = end + 1
      while next < bytes.count, next - end <= indent, bytes[next] == 0x20 || bytes[next] == 0x09 { next += 1 }
      guard next < bytes.count else {
        // The beginning of the next line is needed.
        take(end)
        if isFinished { take(queue.count) }
        return isFinished ? finishSkipping() : .needsInput
      }
      take(end + 1)
      let byte = bytes[next]
      if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "]") && arrayLine != nil {
        mode = .between
        return .proceeds
      }
    }
    return skipAll()
  }

  /// Discards everything that was read.
  private mutating func skipAll() -> Step {
    take(queue.count)
    return isFinished ? finishSkipping() : .needsInput
  }

  private mutating func finishSkipping() -> Step {
    mode = .between
    return .proceeds
  }

  private mutating func skipSpace() {
    var count = 0
    for byte in queue.bytes {
      guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { break }
      count += 1
    }
    take(count)
  }

  /// Consumes bytes and counts their lines.
  private mutating func take(_ count: Int) {
    if count == 0 { return }
    let bytes = UnsafeRawBufferPointer(rebasing: queue.bytes[..<count])
    (line, column) = position(of: count, in: bytes)
    queue.consume(count)
  }

  /// The line and column of an offset in `bytes`, which begin at ``line`` and ``column``.
  private func position(of offset: Int, in bytes: UnsafeRawBufferPointer) -> (line: Int, column: Int) {
    var (line, start) = (line, -column + 1)
    for index in 0..<offset where bytes[index] == Self.newline { (line, start) = (line + 1, index + 1) }
    return (line, offset - start + 1)
  }

  private static let newline = UInt8(ascii: "\n")
}
