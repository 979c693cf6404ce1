import FeedClient
import FeedJSON

/// Splits a stream of JSON texts into elements: one on each line, concatenated, pretty-printed, or in arrays, in any
/// combination.
///
/// A top-level array stands for its items. After an error the reader continues with the next line or, if the error is
/// inside a value of several lines, with the next line that begins with `{` or `[`. A value longer than the limit is
/// discarded while it is read, so memory stays bounded.
///
///     reader.room()… reader.didFill(count)
///     while let item = reader.next() { … }
struct ElementReader: ~Copyable {
  enum Item {
    /// An element and the line of its beginning, from 1. Valid until the next call.
    case element(JSONView, line: Int)
    /// Text that is not JSON, with the line and column of the error, from 1. Columns count bytes.
    case malformed(line: Int, column: Int, reason: String)
    case tooLong(line: Int)
  }

  private enum Mode: Equatable {
    /// Between values.
    case between
    /// Inside a value, which begins at the start of the queue.
    case value
    /// Discarding the rest of the line; if `untilBracket`, also lines that do not begin with a bracket.
    case skipping(untilBracket: Bool)
  }

  private let limit: Int
  /// Whether a top-level array stands for its items.
  private let opensArrays: Bool
  private var queue: ByteQueue
  private var scanner = JSONScanner(maxDepth: 10_000)
  private var outline = ValueOutline()
  private var mode = Mode.between
  /// The line and column of the first byte in the queue.
  private var line = 1
  private var column = 1
  /// The line of the `[` of the array that is being read.
  private var arrayLine: Int?
  /// Whether a comma is required before the next item of that array.
  private var needsComma = false
  private var isFinished = false
  /// The column of the beginning of the last element, from 1, in bytes.
  private(set) var elementColumn = 1

  /// - Parameters:
  ///   - limit: the maximum bytes of an element.
  ///   - opensArrays: whether a top-level array stands for its items.
  init(limit: Int, opensArrays: Bool = true, capacity: Int = 64 << 10) {
    self.limit = limit
    self.opensArrays = opensArrays
    queue = ByteQueue(capacity: capacity)
  }

  /// Returns memory to read into. Call ``didFill(_:)`` with the number of bytes written there.
  mutating func room() -> UnsafeMutableRawBufferPointer { queue.room() }

  mutating func didFill(_ count: Int) { queue.didFill(count) }

  /// Marks the end of the input.
  mutating func finish() { isFinished = true }

  /// Returns the next item; nil if more bytes are needed, and at the end.
  mutating func next() -> Item? {
    while true {
      switch mode {
      case .skipping(let untilBracket):
        guard skip(untilBracket: untilBracket) else { return nil }
      case .between:
        switch begin() {
        case .some(let item?): return item
        case .some(nil): continue
        case nil: return nil
        }
      case .value:
        return readValue()
      }
    }
  }

  /// Skips white space and separators up to the beginning of a value.
  /// - Returns: nil if more bytes are needed; an item for an error; otherwise a value begins, or something was skipped.
  private mutating func begin() -> Item?? {
    skipSpace()
    guard let byte = queue.bytes.first else {
      guard isFinished, let start = arrayLine else { return nil }
      arrayLine = nil
      return .some(.malformed(line: line, column: column, reason: "the array that begins in line \(start) has no ]"))
    }
    switch byte {
    case UInt8(ascii: "["), UInt8(ascii: ","), UInt8(ascii: "]"): break
    default:
      if arrayLine != nil, needsComma { return mistake("expected , or ]") }
      (mode, outline) = (.value, ValueOutline())
      return .some(nil)
    }
    if byte == UInt8(ascii: "["), arrayLine == nil, opensArrays {
      (arrayLine, needsComma) = (line, false)
    } else if byte == UInt8(ascii: "]"), arrayLine != nil {
      arrayLine = nil
    } else if byte == UInt8(ascii: ","), arrayLine != nil {
      needsComma = false
    } else if byte == UInt8(ascii: "["), !needsComma || arrayLine == nil {
      (mode, outline) = (.value, ValueOutline())
      return .some(nil)
    } else {
      return mistake(arrayLine == nil ? "expected a value" : "expected , or ]")
    }
    take(1)
    return .some(nil)
  }

  private mutating func mistake(_ reason: String) -> Item?? {
    let item = Item.malformed(line: line, column: column, reason: reason)
    mode = .skipping(untilBracket: false)
    needsComma = false
    return .some(item)
  }

  /// Reads the value at the start of the queue.
  private mutating func readValue() -> Item? {
    let bytes = queue.bytes
    let length: Int
    switch outline.advance(bytes) {
    case .complete(let count): length = count
    case .incomplete where bytes.count > limit: return tooLong(bytes)
    case .incomplete where !isFinished: return nil
    case .incomplete: length = bytes.count
    case .malformed(let offset): length = min(offset + 1, bytes.count)
    }
    if length > limit { return tooLong(UnsafeRawBufferPointer(rebasing: bytes[..<length])) }
    let text = UnsafeRawBufferPointer(rebasing: bytes[..<length])
    let start = line
    elementColumn = column
    do throws(JSONError) {
      let view = try scanner.scan(text)
      take(length)
      (mode, needsComma) = (.between, true)
      return .element(view, line: start)
    } catch {
      let (line, column) = position(of: min(error.offset, length), in: text)
      mode = .skipping(untilBracket: line > start)
      // If the value was incomplete, the line of the error may be the beginning of the next value.
      if line > start { take(text[..<min(error.offset, length)].lastIndex(of: Self.newline) ?? 0) }
      needsComma = false
      // The end of the input also ends an enclosing array.
      if isFinished, length == bytes.count { arrayLine = nil }
      return .malformed(line: line, column: column, reason: error.message)
    }
  }

  private mutating func tooLong(_ value: UnsafeRawBufferPointer) -> Item {
    mode = .skipping(untilBracket: value.contains(Self.newline))
    needsComma = false
    let start = line
    take(value.count)
    return .tooLong(line: start)
  }

  /// Discards bytes up to the position at which reading continues.
  /// - Returns: false if more bytes are needed.
  private mutating func skip(untilBracket: Bool) -> Bool {
    while let end = queue.bytes.firstIndex(of: Self.newline) {
      guard untilBracket else {
        take(end + 1)
        mode = .between
        return true
      }
      guard end + 1 < queue.bytes.count else {
        take(end)
        return finishSkipping()
      }
      let next = queue.bytes[end + 1]
      take(end + 1)
      if next == UInt8(ascii: "{") || next == UInt8(ascii: "[") {
        mode = .between
        return true
      }
    }
    take(queue.count)
    return finishSkipping()
  }

  private mutating func finishSkipping() -> Bool {
    if isFinished {
      take(queue.count)
      mode = .between
    }
    return isFinished
  }

  private mutating func skipSpace() {
    var count = 0
    for byte in queue.bytes {
      guard byte == 0x20 || (0x09...0x0D).contains(byte) else { break }
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
