/// How far the journal of a database had come, kept in a file beside it.
///
/// SQLite takes the part of a damaged log that is sound for all there is. The mark tells that there was more; and, after a loss
/// of power, that there may have been.
struct StateMark: Equatable {
  /// The history to which `sequence` belongs.
  var epoch: String
  /// The run of the system in which it was written (`BootIdentity`).
  var boot: String
  /// Whether batches were on the disk before they were acknowledged.
  var isSynced: Bool
  /// Whether the daemon ended in order, with everything on the disk.
  var isClean = false
  /// The last row of the journal that was acknowledged.
  var sequence: Int64

  private static let title = "feedd-mark 1"
  /// Digits of the sequence, with leading zeros, so that a larger one fits in the same place.
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

  /// Where in `text` the digits begin.
  var offsetOfSequence: Int { text.utf8.count - Self.digits - 1 }

  init(epoch: String, boot: String, isSynced: Bool, sequence: Int64) {
    self.epoch = epoch
    self.boot = boot
    self.isSynced = isSynced
    self.sequence = sequence
  }

  /// Reads `text`; nil when it is something else.
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
}
