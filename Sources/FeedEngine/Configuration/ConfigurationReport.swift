import FeedJSON
import FeedWire

/// What the last reading of the configuration file did, for `stats` and `feedd --reload`.
///
/// Invariant: `error` is nil unless the file, or what it changes, was refused.
public struct ConfigurationReport: Equatable, Sendable {
  /// The path of the file; nil if there is none.
  public let file: String?
  /// The time of the reading: RFC 3339, in UTC.
  public let time: String
  public let changes: ConfigurationChanges
  /// The names of settings that differ and take effect at the next start.
  public let restart: [String]
  /// Why nothing changed; nil if the file is in effect.
  public internal(set) var error: String?

  public init(
    file: String?, time: String, changes: ConfigurationChanges = ConfigurationChanges(), restart: [String] = [],
    error: String? = nil
  ) {
    (self.file, self.time, self.changes, self.restart, self.error) = (file, time, changes, restart, error)
  }

  /// One line: the changes, and what needs a new start, or why nothing changed.
  public var text: String {
    if let error { return "\(error); nothing was changed" }
    return restart.isEmpty
      ? changes.text : "\(changes.text); takes effect when feedd is started again: \(restart.joined(separator: ", "))"
  }
}

/// The reports of the configuration, and its changes that wait for the log.
struct ConfigurationReports {
  /// The number of readings since the start.
  private var reads = 0
  private var last: ConfigurationReport?
  /// The number of `$configure` requests that are submitted or in flight.
  private var waiting = 0

  mutating func add(_ report: ConfigurationReport) {
    reads += 1
    last = report
  }

  mutating func didSubmit() { waiting += 1 }

  /// Records that a request was executed, or why it changed nothing. Requests of replay were not submitted.
  mutating func didComplete(_ error: String?) {
    waiting = max(0, waiting - 1)
    if let error { last?.error = error }
  }

  /// Appends `,"configuration":{…}` if the configuration was ever read.
  func append(to out: inout ByteBuffer) {
    guard let last else { return }
    out.append(",\"configuration\":{\"reads\":", integer: reads)
    out.append(",\"status\":")
    out.append(last.error != nil ? "\"refused\"" : waiting > 0 ? "\"storing\"" : "\"applied\"")
    out.append(",\"time\":", quoted: last.time)
    if let file = last.file { out.append(",\"file\":", quoted: file) }
    out.append(",\"text\":", quoted: last.text)
    let changes = last.changes
    let lists: [(StaticString, [String])] = [
      (",\"defined\":[", changes.defined), (",\"redefined\":[", changes.redefined),
      (",\"undefined\":[", changes.undefined),
      (",\"kept\":[", changes.left), (",\"restart\":[", last.restart),
    ]
    for (head, names) in lists {
      out.append(head)
      out.appendJSONStrings(names)
      out.append(UInt8(ascii: "]"))
    }
    out.append(changes.access ? ",\"access\":true}" : ",\"access\":false}")
  }
}

extension Engine {
  /// Records what reading the configuration did. Call it after ``configure(_:now:)``.
  public func report(_ report: ConfigurationReport) { ownWork.reports.add(report) }
}
