/// Something that happened to a connection and is worth a line in the log.
public struct EngineEvent: Sendable, Equatable {
  public enum Level: Int, Sendable, Comparable {
    case error = 3
    case warning = 4
    case info = 6
    case debug = 7

    public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
  }

  public let level: Level
  /// A sentence with what names the connection: uid, pid, client, bytes, limit.
  public let message: String
}
