/// Who may do what with which feeds, as the configuration says. What no rule allows is refused; root and the daemon's own
/// user may do everything.
public struct AccessRules: Equatable, Sendable {
  /// What can be allowed.
  public struct Rights: OptionSet, Equatable, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
      self.rawValue = rawValue
    }

    /// See what a feed holds.
    public static let read = Rights(rawValue: 1)
    /// Change what a feed holds.
    public static let write = Rights(rawValue: 2)
    /// Define, redefine and undefine feeds, and change what they show.
    public static let define = Rights(rawValue: 4)
    /// See the daemon's counters and who is connected.
    public static let admin = Rights(rawValue: 8)

    static let names: [(name: String, right: Rights)] = [
      ("read", .read), ("write", .write), ("define", .define), ("admin", .admin),
    ]
  }

  /// One rule: these users may do this with these feeds.
  struct Rule: Equatable, Sendable {
    /// Whether it is for everybody who can connect.
    var isForAll = true
    var users: Set<UInt32> = []
    var groups: Set<UInt32> = []
    var feeds: [NamePattern] = [NamePattern("*")]
    var rights: Rights = []

    func applies(to peer: Peer) -> Bool {
      isForAll || users.contains(peer.uid) || groups.contains(peer.gid) || peer.groups.contains(where: groups.contains)
    }
  }

  let rules: [Rule]

  /// How many rules there are.
  public var count: Int { rules.count }

  init(rules: [Rule]) {
    self.rules = rules
  }

  /// Whether a rule allows `peer` this with a feed or bin, or, without a name, with the daemon. O(rules).
  func allows(_ right: Rights, on feed: String?, to peer: Peer) -> Bool {
    rules.contains { rule in
      rule.rights.contains(right) && rule.applies(to: peer)
        && (feed.map { name in rule.feeds.contains { $0.matches(feed: name) } } ?? true)
    }
  }
}
