import FeedJSON
import Glibc

/// The methods of protocol version 1; `Protocol/methods/` has a page for each.
///
/// To add a method, see "Recipes" in `Sources/README.md`.
public enum Method: UInt8, CaseIterable, Sendable {
  case update, patch, delete, set
  case insert, remove, replace, move, put
  case activate, insertChild, removeChild
  case select, deselect, selected
  case get, range, snapshot, query, verify
  case watch, unwatch, sync, ping, hello
  case define, undefine, feeds, describe
  case transaction, stats, clients, quotas, kick, logLevel, group
}

extension Method {
  /// The properties of a method that the daemon checks before it executes a request.
  public struct Rules: Sendable {
    public let name: StaticString
    public let effect: Effect
    /// The right that the access rules must grant. Nil if every client can call the method, and for `transaction`, whose
    /// operations are checked one by one.
    public let right: Right?
    public let cost: Cost

    @inlinable @inline(__always) init(_ name: StaticString, effect: Effect, right: Right?, cost: Cost) {
      self.name = name
      self.effect = effect
      self.right = right
      self.cost = cost
    }
  }

  /// The changes that a method can make, which decide whether its requests are logged.
  public enum Effect: Sendable {
    /// Changes no stored state. Not logged.
    case none
    /// Logged only if the feed has no history yet, because replay must begin the history at the same revision.
    case mayBeginHistory
    /// Logged before it executes.
    case logged
    /// Logged before it executes; allowed as an operation of `transaction`.
    case changesFeeds
  }

  /// The work of executing a request.
  public enum Cost: Sendable {
    /// Independent of the content of the feed.
    case short
    /// Proportional to the rows of the change, which the response lists.
    case change
    /// Proportional to the elements in the response. A turn executes a bounded number of such requests for each connection.
    case elements
    /// Can be answered in several turns. Later requests of the connection wait, so that answers keep their order, unless the answer is
    /// certainly short.
    case long
  }

  /// The rules of this method.
  ///
  /// Inlined, so that a single rule is read from a table of constants.
  @inlinable @inline(__always) public var rules: Rules {
    switch self {
    case .update: Rules("update", effect: .changesFeeds, right: .write, cost: .change)
    case .patch: Rules("patch", effect: .changesFeeds, right: .write, cost: .change)
    case .delete: Rules("delete", effect: .changesFeeds, right: .write, cost: .change)
    case .set: Rules("set", effect: .changesFeeds, right: .write, cost: .change)
    case .insert: Rules("insert", effect: .changesFeeds, right: .write, cost: .change)
    case .remove: Rules("remove", effect: .changesFeeds, right: .write, cost: .change)
    case .replace: Rules("replace", effect: .changesFeeds, right: .write, cost: .change)
    case .move: Rules("move", effect: .changesFeeds, right: .write, cost: .change)
    case .put: Rules("put", effect: .changesFeeds, right: .write, cost: .change)
    case .activate: Rules("activate", effect: .changesFeeds, right: .write, cost: .change)
    case .insertChild: Rules("insertChild", effect: .changesFeeds, right: .define, cost: .change)
    case .removeChild: Rules("removeChild", effect: .changesFeeds, right: .define, cost: .change)
    case .select: Rules("select", effect: .logged, right: .write, cost: .short)
    case .deselect: Rules("deselect", effect: .logged, right: .write, cost: .short)
    case .selected: Rules("selected", effect: .none, right: .read, cost: .short)
    case .get: Rules("get", effect: .none, right: .read, cost: .elements)
    case .range: Rules("range", effect: .none, right: .read, cost: .long)
    case .snapshot: Rules("snapshot", effect: .none, right: .read, cost: .long)
    case .query: Rules("query", effect: .none, right: .read, cost: .long)
    case .verify: Rules("verify", effect: .none, right: .read, cost: .long)
    case .watch: Rules("watch", effect: .mayBeginHistory, right: .read, cost: .short)
    case .unwatch: Rules("unwatch", effect: .none, right: nil, cost: .short)
    case .sync: Rules("sync", effect: .none, right: nil, cost: .long)
    case .ping: Rules("ping", effect: .none, right: nil, cost: .short)
    case .hello: Rules("hello", effect: .none, right: nil, cost: .short)
    case .define: Rules("define", effect: .changesFeeds, right: .define, cost: .short)
    case .undefine: Rules("undefine", effect: .changesFeeds, right: .define, cost: .short)
    case .feeds: Rules("feeds", effect: .none, right: nil, cost: .long)
    case .describe: Rules("describe", effect: .none, right: .read, cost: .short)
    case .transaction: Rules("transaction", effect: .logged, right: nil, cost: .change)
    case .stats: Rules("stats", effect: .none, right: .admin, cost: .short)
    case .clients: Rules("clients", effect: .none, right: .admin, cost: .long)
    case .quotas: Rules("quotas", effect: .none, right: .admin, cost: .short)
    case .kick: Rules("kick", effect: .none, right: .admin, cost: .short)
    case .logLevel: Rules("logLevel", effect: .none, right: .admin, cost: .short)
    case .group: Rules("group", effect: .none, right: .admin, cost: .short)
    }
  }

  public var name: String { "\(rules.name)" }
  /// Whether a request is checked when it arrives, whatever the access rules, because it may define feeds or name children.
  @inlinable @inline(__always) public var isCheckedOnArrival: Bool {
    switch self {
    case .define, .transaction, .activate, .insertChild, .removeChild: true
    default: false
    }
  }
  /// Whether a request changes no rows, and its answer or its work grows with what the daemon holds.
  @inlinable @inline(__always) public var readsFeeds: Bool { !isLogged && (rules.right != nil || self == .feeds) }

  /// Whether a request may need more space in the stored state. The operations of `transaction` decide that for it.
  @inlinable @inline(__always) public var mayGrow: Bool {
    switch self {
    case .delete, .remove, .removeChild, .undefine, .deselect: false
    default: isLogged
    }
  }

  /// Whether a request is always written to the commit log before it executes.
  @inlinable @inline(__always) public var isLogged: Bool {
    switch rules.effect {
    case .logged, .changesFeeds: true
    case .none, .mayBeginHistory: false
    }
  }
}

extension Method {
  /// Finds a method by its name, a JSON string; nil if there is none. A name that is too long for any method is not decoded.
  public init?(_ name: JSONView) {
    // Most requests of a busy daemon are updates.
    if name.stringEquals("update") {
      self = .update
      return
    }
    guard name.text.count <= Self.longestSpelling, let method = name.withDecodedUTF8({ Method(utf8: $0) }) ?? nil else {
      return nil
    }
    self = method
  }

  /// Finds a method by the bytes of its name; nil if there is none. O(methods), without allocation.
  public init?(utf8 name: UnsafeRawBufferPointer) {
    for method in Self.all where Self.spells(name, method.rules.name) {
      self = method
      return
    }
    return nil
  }

  private static let all = allCases

  /// The maximum length of the JSON text of a name in bytes: each character is an escape.
  private static let longestSpelling = 2 + 6 * (all.map(\.rules.name.utf8CodeUnitCount).max() ?? 0)

  @inline(__always) private static func spells(_ bytes: UnsafeRawBufferPointer, _ name: StaticString) -> Bool {
    guard bytes.count == name.utf8CodeUnitCount, let start = bytes.baseAddress else { return false }
    return memcmp(start, name.utf8Start, bytes.count) == 0
  }
}

/// A right that an access rule can grant ("access" in `Protocol/config.md`).
public enum Right: String, CaseIterable, Sendable {
  /// Read and watch feeds.
  case read
  /// Change the content of feeds.
  case write
  /// Define, redefine and undefine feeds, and change their children.
  case define
  /// Read the counters and the connections of the daemon, close connections, and choose what it logs.
  case admin
}
