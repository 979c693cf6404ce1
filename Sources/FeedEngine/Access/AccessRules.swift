import FeedWire

/// The access rules of the configuration (Protocol/config.md, "`access`"). A request that no rule allows is refused.
/// Root and the daemon's user may do everything.
public struct AccessRules: Equatable, Sendable {
  /// A rule: some users have some rights on some feeds.
  public struct Rule: Equatable, Sendable {
    public var isForAll = true
    /// The uids of users to which the rule applies.
    public var users: Set<UInt32> = []
    /// The gids of groups to whose members the rule applies.
    public var groups: Set<UInt32> = []
    /// The patterns of feed names. A right on the daemon does not depend on them.
    public var feeds: [NamePattern] = [NamePattern("*")]
    /// The rights that the rule grants.
    public var rights: Set<Right> = []

    /// Creates a rule that grants nothing: it has no rights, and applies to every user and feed.
    public init() {}

    func applies(to peer: Peer) -> Bool {
      isForAll || users.contains(peer.uid) || groups.contains(peer.gid) || peer.groups.contains(where: groups.contains)
    }
  }

  private let rules: [Rule]

  public var count: Int { rules.count }

  public init(rules: [Rule]) { self.rules = rules }

  /// Whether a rule grants `peer` a right on a feed or bin; without a name, on the daemon. O(rules).
  public func allows(_ right: Right, on feed: String?, to peer: Peer) -> Bool {
    rules.contains { rule in
      rule.rights.contains(right) && rule.applies(to: peer)
        && (feed.map { name in rule.feeds.contains { $0.matches(feed: name) } } ?? true)
    }
  }
}

/// A pattern of feed names: `*` matches any characters, `?` matches one character. `$feeds` is matched only by patterns
/// that begin with `$`.
public struct NamePattern: Equatable, Sendable {
  private let pattern: [UInt8]

  public init(_ text: String) { pattern = Array(text.utf8) }

  /// Whether the pattern matches a feed's name. A pattern that matches a collection also matches its bins.
  public func matches(feed name: String) -> Bool {
    var name = name
    return name.withUTF8 { bytes in
      if bytes.first == UInt8(ascii: "$"), pattern.first != UInt8(ascii: "$") { return false }
      if matches(bytes[...]) { return true }
      return bytes.firstIndex(of: UInt8(ascii: "/")).map { matches(bytes[..<$0]) } ?? false
    }
  }

  /// O(pattern · name): only the last star is retried.
  private func matches(_ name: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
    var (place, index) = (0, name.startIndex)
    var retry: (place: Int, index: Int)?
    while index < name.endIndex {
      if place < pattern.count, pattern[place] == UInt8(ascii: "*") {
        retry = (place, index)
        place += 1
      } else if place < pattern.count, pattern[place] == UInt8(ascii: "?") || pattern[place] == name[index] {
        place += 1
        index += 1
      } else if let (star, from) = retry {
        retry = (star, from + 1)
        (place, index) = (star + 1, from + 1)
      } else {
        return false
      }
    }
    return pattern[place...].allSatisfy { $0 == UInt8(ascii: "*") }
  }
}
