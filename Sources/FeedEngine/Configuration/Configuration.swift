import FeedJSON
import FeedModel

/// The content of the file of `--config`: feeds, limits, access rules and the permissions of the socket (Protocol/config.md).
///
/// The file is parsed without the daemon's state; applying it checks whether it fits that state. Invariant: each
/// definition follows the definitions whose feeds it shows.
public struct Configuration: Sendable {
  public struct Entry: Sendable {
    public let definition: FeedDefinition
    public let place: ConfigurationError.Place
    /// The places of members by name, of those that are checked against more than the file.
    public let members: [String: ConfigurationError.Place]

    public init(
      definition: FeedDefinition, place: ConfigurationError.Place, members: [String: ConfigurationError.Place] = [:]
    ) {
      (self.definition, self.place, self.members) = (definition, place, members)
    }
  }

  public let entries: [Entry]
  /// The limits that the file sets, by name.
  public let limits: [String: Int]
  /// The access rules; nil if the file has none, so that every client may do everything.
  public let access: AccessRules?
  public let socket: SocketSettings
  /// The group that the daemon joins; nil if the file names none.
  public let group: GroupFacts?
  /// What is allowed but probably a mistake.
  public let remarks: [ConfigurationError]

  /// The number of feeds that the file defines.
  public var feedCount: Int { entries.count }

  /// The number of managed feeds that the file defines.
  public var managedFeedCount: Int {
    entries.count { entry in
      if case .managed = entry.definition.content { true } else { false }
    }
  }

  /// Sorts the definitions so that each follows those whose feeds it shows, and otherwise keeps their order.
  /// - Precondition: the names of the definitions are unique.
  /// - Throws: an error if definitions show each other in a cycle.
  public init(
    entries: [Entry], limits: [String: Int], access: AccessRules?, socket: SocketSettings = SocketSettings(),
    group: GroupFacts? = nil, remarks: [ConfigurationError] = []
  ) throws(ConfigurationError) {
    var order = DependencyOrder(entries)
    for index in entries.indices { try order.visit(index) }
    self.entries = order.result
    (self.limits, self.access, self.socket, self.group, self.remarks) = (limits, access, socket, group, remarks)
  }
}

/// An error in a configuration, or a remark about it: where it is, what is wrong and what to change.
public struct ConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
  public struct Place: Equatable, Sendable {
    /// Lines and columns count from 1; columns are bytes.
    public let line: Int
    public let column: Int
    /// The path of the member, such as `feeds[2].bins[0].filter`; empty for the file itself.
    public let member: String

    public init(line: Int, column: Int, member: String) {
      (self.line, self.column, self.member) = (line, column, member)
    }
  }

  public let place: Place
  public let reason: String

  public init(_ place: Place, _ reason: String) { (self.place, self.reason) = (place, reason) }

  /// The text after the file name and a colon, such as `3:14: feeds[0].kind: is missing: …`, in one line whatever names it
  /// quotes.
  public var description: String {
    "\(place.line):\(place.column): \(place.member.isEmpty ? "" : "\(place.member): ")\(reason)".inLine
  }
}

/// What applying a configuration changed: the names of feeds, and whether the access rules changed.
public struct ConfigurationChanges: Equatable, Sendable {
  public internal(set) var defined: [String] = []
  public internal(set) var redefined: [String] = []
  public internal(set) var undefined: [String] = []
  /// Feeds that the previous configuration defined and this one does not. They are kept unchanged.
  public internal(set) var left: [String] = []
  /// Whether the access rules changed.
  public var access: Bool

  public init(access: Bool = false) { self.access = access }

  public var text: String {
    let parts = [("defined", defined), ("redefined", redefined), ("undefined", undefined)]
    var texts = parts.filter { !$0.1.isEmpty }.map { "\($0.0) \($0.1.joined(separator: ", "))" }
    if access { texts.append("replaced the access rules") }
    if !left.isEmpty {
      texts.append(
        "kept \(left.joined(separator: ", ")), which the file no longer defines; undefine what is not needed")
    }
    return texts.isEmpty ? "nothing changed" : texts.joined(separator: "; ")
  }
}

/// A depth-first search from definitions to those whose feeds they show. Lists the latter first.
private struct DependencyOrder {
  private enum Visit {
    case new, open, done
  }

  private let entries: [Configuration.Entry]
  private let places: [String: Int]
  private var visits: [Visit]
  private(set) var result: [Configuration.Entry] = []

  init(_ entries: [Configuration.Entry]) {
    self.entries = entries
    places = Dictionary(uniqueKeysWithValues: entries.enumerated().map { ($1.definition.name, $0) })
    visits = Array(repeating: .new, count: entries.count)
  }

  /// Adds a definition after all definitions that it depends on. Iterative, because a chain of definitions may be as
  /// long as the file.
  mutating func visit(_ start: Int) throws(ConfigurationError) {
    guard visits[start] == .new else { return }
    var stack: [(index: Int, shown: [Int])] = [(start, shown(by: start))]
    visits[start] = .open
    while let top = stack.last {
      guard let next = top.shown.last else {
        visits[top.index] = .done
        result.append(entries[top.index])
        stack.removeLast()
        continue
      }
      stack[stack.count - 1].shown.removeLast()
      switch visits[next] {
      case .done: break
      case .new:
        visits[next] = .open
        stack.append((next, shown(by: next)))
      case .open: throw cycle(stack.map(\.index), closedBy: next)
      }
    }
  }

  /// The definitions whose feeds a definition shows, in reverse order.
  private func shown(by index: Int) -> [Int] {
    entries[index].definition.content.shown.reversed().compactMap { name in
      places[String(name.prefix { $0 != "/" })]
    }
  }

  private func cycle(_ stack: [Int], closedBy next: Int) -> ConfigurationError {
    let members = stack.drop { $0 != next } + [next]
    let names = members.map { "\"\(entries[$0].definition.name)\"" }
    return ConfigurationError(
      entries[next].place,
      "\(names.joined(separator: " shows ")), which is a cycle; take one of them out of the other")
  }
}

/// Who may connect to the socket that the daemon creates: the options `--socket-mode` and `--socket-group`, and the members
/// `socketMode` and `socketGroup` of the configuration. Nil stands for the default.
public struct SocketSettings: Equatable, Sendable {
  /// The permissions.
  public var mode: UInt32?
  public var group: UInt32?

  /// The permissions without a setting: only the user and the group of the daemon may connect.
  public static let defaultMode: UInt32 = 0o660
  /// What an error about a mode asks for.
  public static let modeSyntax = "an octal mode such as 0660"

  public init(mode: UInt32? = nil, group: UInt32? = nil) { (self.mode, self.group) = (mode, group) }

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

  public func differences(from other: SocketSettings) -> [String] {
    (mode ?? Self.defaultMode == other.mode ?? Self.defaultMode ? [] : ["socketMode"])
      + (group == other.group ? [] : ["socketGroup"])
  }
}

/// The member `group` of a configuration (Protocol/groups.md): the group of hosts that the daemon joins.
public struct GroupFacts: Sendable, Equatable {
  public var name: String?
  /// The URLs of NATS servers.
  public var log: [String] = []
  public var host: String?
  public var user: String?
  public var password: String?
  public var token: String?
  /// Paths of files.
  public var credentials: String?
  public var authority: String?
  public var certificate: String?
  public var key: String?
  /// Copies of the stream that the servers keep.
  public var replicas: Int?

  public init() {}
}
