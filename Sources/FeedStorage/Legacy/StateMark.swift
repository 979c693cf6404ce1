import FeedSystem

/// The last acknowledged row of a table `journal`, kept in a file beside the database by daemons of schemas 1 and 2.
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

extension StateMark {
  static func path(of database: String) -> String { database + "-mark" }

  /// Reads the mark beside a database; nil if there is none or it cannot be read.
  static func read(of database: String) -> StateMark? {
    guard let bytes = try? SmallFile.read(path(of: database), limit: 4096) else { return nil }
    return StateMark(String(decoding: bytes, as: UTF8.self))
  }
}
