/// Who may connect to the socket that the daemon creates: the options `--socket-mode` and `--socket-group`, and the members
/// `socketMode` and `socketGroup` of the configuration. Nil stands for the default.
public struct SocketSettings: Equatable, Sendable {
  /// The permissions.
  public var mode: UInt32?
  /// The number of the group.
  public var group: UInt32?

  /// The permissions without a setting: only the user and the group of the daemon may connect.
  public static let defaultMode: UInt32 = 0o660
  /// What an error about a mode asks for.
  public static let modeSyntax = "an octal mode such as 0660"

  public init(mode: UInt32? = nil, group: UInt32? = nil) {
    self.mode = mode
    self.group = group
  }

  /// Parses a mode: three octal digits, or four with a leading zero. Returns nil for other texts.
  public static func mode(_ text: String) -> UInt32? {
    let isLong = text.utf8.count == 4 && text.utf8.first == UInt8(ascii: "0")
    guard text.utf8.count == 3 || isLong, text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "7")).contains) else {
      return nil
    }
    return UInt32(text, radix: 8)
  }

  /// Returns these settings, with those of `file` where these have none.
  public func completed(by file: SocketSettings) -> SocketSettings {
    SocketSettings(mode: mode ?? file.mode, group: group ?? file.group)
  }

  /// The names of the settings that differ from others.
  public func differences(from other: SocketSettings) -> [String] {
    (mode ?? Self.defaultMode == other.mode ?? Self.defaultMode ? [] : ["socketMode"])
      + (group == other.group ? [] : ["socketGroup"])
  }
}
