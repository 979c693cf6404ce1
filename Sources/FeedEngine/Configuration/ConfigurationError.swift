/// Why a configuration cannot be used: where in the file, what is wrong and what to change.
public struct ConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
  /// A place in the file.
  public struct Place: Equatable, Sendable {
    /// Both count from 1; columns are bytes.
    public let line: Int
    public let column: Int
    /// As in `feeds[2].bins[0].filter`; empty for the file itself.
    public let member: String

    public init(line: Int, column: Int, member: String) {
      self.line = line
      self.column = column
      self.member = member
    }
  }

  public let place: Place
  /// A sentence without the full stop.
  public let reason: String

  public init(_ place: Place, _ reason: String) {
    self.place = place
    self.reason = reason
  }

  /// `3:14: feeds[0].kind: is missing: …`, to stand behind the file's name and a colon.
  public var description: String {
    "\(place.line):\(place.column): \(place.member.isEmpty ? "" : "\(place.member): ")\(reason)"
  }
}
