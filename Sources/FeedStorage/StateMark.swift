import FeedSystem
import Glibc

/// The last acknowledged row of the journal, kept in a file beside the database.
///
/// SQLite accepts the valid part of a damaged WAL as the whole WAL. The mark shows that more was written or, after a
/// power failure, that more may have been written.
struct StateMark: Equatable {
  /// The epoch to which `sequence` belongs.
  var epoch: String
  /// The boot during which it was written (`BootIdentity`).
  var boot: String
  /// Whether batches were synced before they were acknowledged.
  var isSynced: Bool
  /// Whether the daemon stopped cleanly, with everything synced.
  var isClean = false
  /// The last row of the journal that was acknowledged.
  var sequence: Int64

  private static let title = "feedd-mark 1"
  /// The number of digits of the sequence, with leading zeros, so that it can be overwritten in place.
  private static let digits = 20

  /// The mark as lines of text, the sequence last.
  var text: String {
    let number = String(sequence)
    let padded = String(repeating: "0", count: max(0, Self.digits - number.utf8.count)) + number
    return """
      \(Self.title)
      epoch \(epoch)
      boot \(boot)
      synced \(isSynced)
      clean \(isClean)
      sequence \(padded)

      """
  }

  /// The offset of the digits in `text`.
  var offsetOfSequence: Int { text.utf8.count - Self.digits - 1 }

  init(epoch: String, boot: String, isSynced: Bool, sequence: Int64) {
    self.epoch = epoch
    self.boot = boot
    self.isSynced = isSynced
    self.sequence = sequence
  }

  /// Parses `text`; nil if it is not a mark.
  init?(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.count >= 6, lines[0] == Self.title else { return nil }
    var values: [Substring: Substring] = [:]
    for line in lines.dropFirst() {
      guard let space = line.firstIndex(of: " ") else { continue }
      values[line[..<space]] = line[line.index(after: space)...]
    }
    guard let epoch = values["epoch"], let boot = values["boot"],
      let isSynced = values["synced"].flatMap({ Bool(String($0)) }),
      let isClean = values["clean"].flatMap({ Bool(String($0)) }),
      let sequence = values["sequence"].flatMap({ Int64($0) })
    else { return nil }
    self.init(epoch: String(epoch), boot: String(boot), isSynced: isSynced, sequence: sequence)
    self.isClean = isClean
  }

  /// The result of comparing a mark with its database.
  enum Verdict: Equatable {
    /// No acknowledged row is missing.
    case whole
    /// Acknowledged rows may be missing after a power failure: a new epoch begins.
    case cut
    /// This many acknowledged rows are missing, and no power failure explains it.
    case lost(Int64)
  }

  /// Compares a mark with a database.
  /// - Parameters:
  ///   - mark: nil if there is none.
  ///   - epoch: the epoch of the database.
  ///   - sequence: the last journal row that the database holds or its image covers.
  ///   - boot: the identity of the current boot.
  static func verdict(_ mark: StateMark?, epoch: String, sequence: Int64, boot: String) -> Verdict {
    guard let mark, mark.epoch == epoch else { return .cut }
    let mayLose = !mark.isSynced && !mark.isClean && (mark.boot.isEmpty || mark.boot != boot)
    if mayLose { return .cut }
    return sequence < mark.sequence ? .lost(mark.sequence - sequence) : .whole
  }
}

/// The file of the mark while the daemon runs.
///
/// Written after each batch is stored, and before its answers. If a write fails, the older mark stays, which requires
/// fewer rows. Invariant: the mark never exceeds the last stored row.
final class StateMarkFile {
  private let file: RecordFile?
  private var mark: StateMark
  private var last: Int64

  static func path(of database: String) -> String { database + "-mark" }

  /// Reads the mark beside a database; nil if there is none or it cannot be read.
  static func read(of database: String) -> StateMark? {
    guard let bytes = try? SmallFile.read(path(of: database), limit: 4096) else { return nil }
    return StateMark(String(decoding: bytes, as: UTF8.self))
  }

  /// Writes the first mark. On failure the daemon continues without one, and the next start begins a new epoch.
  init(_ mark: StateMark, of database: String) {
    self.mark = mark
    last = mark.sequence
    file = try? RecordFile(Self.path(of: database))
    if let file { Self.write(mark, file) }
  }

  /// Records that batches up to this row of the journal are stored.
  func advance(to sequence: Int64) {
    assert(sequence >= last, "the mark only grows")
    last = sequence
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

  /// Records that all batches so far are synced, and that later ones will be.
  func didSync() {
    if mark.isSynced { return }
    mark.isSynced = true
    mark.sequence = last
    if let file { Self.write(mark, file) }
  }

  /// Syncs the mark to the disk. Returns whether that succeeded, or there is no mark.
  func sync() -> Bool { file?.sync() ?? true }

  /// Records a clean stop: all rows up to this one are synced.
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
