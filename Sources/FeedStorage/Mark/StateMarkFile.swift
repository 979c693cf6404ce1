import FeedSystem

/// The mark's file, while the daemon runs.
///
/// Written after each batch and before its answers, so that what it says was acknowledged was stored. A write that fails leaves
/// an older mark, which asks for less. Guarded by the loop's thread.
final class StateMarkFile {
  private let file: RecordFile?
  private let mark: StateMark

  static func path(of database: String) -> String { database + "-mark" }

  /// The mark beside a database; nil when there is none that can be read.
  static func read(of database: String) -> StateMark? {
    guard let bytes = try? SmallFile.read(path(of: database), limit: 4096) else { return nil }
    return StateMark(String(decoding: bytes, as: UTF8.self))
  }

  /// Writes a first mark. Where that is impossible the daemon goes on without: the next start begins a new history.
  init(_ mark: StateMark, of database: String) {
    self.mark = mark
    file = try? RecordFile(Self.path(of: database))
    if let file { Self.write(mark, file) }
  }

  /// Batches up to this row of the journal are stored.
  func advance(to sequence: Int64) {
    guard let file else { return }
    withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { digits in
      var rest = sequence
      for place in digits.indices.reversed() {
        digits[place] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      }
      _ = file.write(UnsafeRawBufferPointer(digits), at: mark.offsetOfSequence)
    }
  }

  /// Everything up to this row is on the disk, and nothing will follow.
  func end(at sequence: Int64) {
    guard let file else { return }
    var last = mark
    last.sequence = sequence
    last.isClean = true
    Self.write(last, file)
    file.sync()
  }

  private static func write(_ mark: StateMark, _ file: RecordFile) {
    var text = mark.text
    let count = text.withUTF8 { bytes in
      file.write(UnsafeRawBufferPointer(bytes))
      return bytes.count
    }
    file.truncate(to: count)
  }
}
