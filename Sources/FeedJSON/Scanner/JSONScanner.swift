/// Turns bytes into a tape of tokens and keeps the tape's memory for the next text.
///
/// Accepts exactly the texts of RFC 8259 in strict UTF-8, without a byte order mark. O(n) in time; no recursion, no
/// allocation once the tape is as large as the texts need (a token for every value and member name, 16 bytes each).
public struct JSONScanner: ~Copyable {
  /// How many containers may stand inside each other.
  public let maxDepth: Int
  private var tape: Tape?
  /// The most tokens that a text has needed since `releaseUnused()`.
  private var needed = 0

  /// - Parameter maxDepth: deepest nesting accepted; `[[]]` has depth 2.
  public init(maxDepth: Int = 512) {
    self.maxDepth = maxDepth
  }

  deinit {
    tape?.deallocate()
  }

  /// Validates exactly one JSON text, white space around it allowed.
  ///
  /// - Returns: the value, valid until the next scan by this scanner and only while `bytes` stay in place.
  /// - Throws: the first thing wrong. Nothing of a refused text can be seen.
  public mutating func scan(_ bytes: UnsafeRawBufferPointer) throws(JSONError) -> JSONView {
    guard bytes.count <= Int(UInt32.max) else { throw JSONError(offset: 0, kind: .tooLarge) }
    guard let start = bytes.baseAddress, bytes.count > 0 else { throw JSONError(offset: 0, kind: .empty) }
    guard let tape = tape ?? Tape(capacity: Self.firstCapacity) else { throw JSONError(offset: 0, kind: .tooLarge) }
    let base = start.assumingMemoryBound(to: UInt8.self)
    var pass = ScanPass(base: base, count: bytes.count, tape: tape, maxDepth: maxDepth)
    let accepted = pass.run()
    // The pass may have moved the tape even when the text is refused.
    self.tape = pass.tape
    needed = max(needed, pass.next - pass.tape.start)
    guard accepted else { throw JSONError(offset: pass.p - base, kind: pass.fault) }
    return JSONView(base: base, token: UnsafePointer(pass.tape.start))
  }

  private static let firstCapacity = 64

  /// Tokens of a tape that is kept in any case: a mebibyte.
  private static let keptCapacity = 1 << 16

  /// Tokens that fit without taking memory.
  public var capacity: Int { tape?.capacity ?? 0 }

  /// Gives the tape's memory back when it is larger than a mebibyte and more than four times what the texts have needed
  /// since the last call; views of the last scan end. Called now and then, it keeps what a steady load needs and gives
  /// back what one large text took.
  public mutating func releaseUnused() {
    releaseMemory(beyond: max(Self.keptCapacity, needed &* 4))
    needed = 0
  }

  /// Gives the tape's memory back when it is larger than `tokens` tokens; views of the last scan end.
  public mutating func releaseMemory(beyond tokens: Int = 0) {
    guard let tape, tape.capacity > tokens else { return }
    tape.deallocate()
    self.tape = nil
  }
}

// The tape has one owner, which goes along when the scanner is handed to another thread; its views are not Sendable.
extension JSONScanner: @unchecked Sendable {}
