import FeedJSON
import Glibc

/// The methods of protocol version 1; `Protocol/methods/` has a page for each.
///
/// To add a method, add a case here and its rules below, its handler in the engine's `handle`, its page and its schemas. The
/// compiler and the documents test name whatever is missing.
public enum Method: UInt8, CaseIterable, Sendable {
  case update, delete, set
  case insert, remove, replace, move, put
  case activate, insertChild, removeChild
  case select, deselect, selected
  case get, range, snapshot, query, verify
  case watch, unwatch, sync, ping, hello
  case define, undefine, feeds, describe
  case transaction, stats, clients
}

extension Method {
  /// What the daemon must know about a method before it executes a request.
  public struct Rules: Sendable {
    public let name: StaticString
    public let effect: Effect
    /// The right that the access rules must grant; nil when every client may call the method, or when the operations in it are
    /// checked one by one.
    public let right: Right?
    public let cost: Cost

    init(_ name: StaticString, effect: Effect, right: Right?, cost: Cost) {
      self.name = name
      self.effect = effect
      self.right = right
      self.cost = cost
    }
  }

  /// What a method may change, and so whether its requests go through the commit log.
  public enum Effect: Sendable {
    /// Changes nothing that is stored.
    case none
    /// Logged only if the feed keeps no history yet: replay must begin the history at the same revision.
    case mayBeginHistory
    /// Logged before it executes.
    case logged
    /// Logged before it executes; allowed as an operation of `transaction`.
    case changesFeeds
  }

  /// What it takes to answer.
  public enum Cost: Sendable {
    /// Little, whatever the feed holds.
    case short
    /// The rows that the change lists; the answer lists them as well.
    case change
    /// The elements that the answer holds. One turn serves a bounded number of such requests a connection.
    case elements
    /// Possibly several turns. Requests behind it on the same connection wait.
    case long
  }

  public var rules: Rules {
    switch self {
    case .update: Rules("update", effect: .changesFeeds, right: .write, cost: .change)
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
    case .range: Rules("range", effect: .none, right: .read, cost: .elements)
    case .snapshot: Rules("snapshot", effect: .none, right: .read, cost: .elements)
    case .query: Rules("query", effect: .none, right: .read, cost: .long)
    case .verify: Rules("verify", effect: .none, right: .read, cost: .long)
    case .watch: Rules("watch", effect: .mayBeginHistory, right: .read, cost: .short)
    case .unwatch: Rules("unwatch", effect: .none, right: nil, cost: .short)
    case .sync: Rules("sync", effect: .none, right: nil, cost: .long)
    case .ping: Rules("ping", effect: .none, right: nil, cost: .short)
    case .hello: Rules("hello", effect: .none, right: nil, cost: .short)
    case .define: Rules("define", effect: .changesFeeds, right: .define, cost: .short)
    case .undefine: Rules("undefine", effect: .changesFeeds, right: .define, cost: .short)
    case .feeds: Rules("feeds", effect: .none, right: nil, cost: .short)
    case .describe: Rules("describe", effect: .none, right: .read, cost: .short)
    case .transaction: Rules("transaction", effect: .logged, right: nil, cost: .change)
    case .stats: Rules("stats", effect: .none, right: .admin, cost: .short)
    case .clients: Rules("clients", effect: .none, right: .admin, cost: .short)
    }
  }

  public var name: String { "\(rules.name)" }

  /// Whether a request is always written to the commit log before it executes.
  public var isLogged: Bool {
    switch rules.effect {
    case .logged, .changesFeeds: true
    case .none, .mayBeginHistory: false
    }
  }
}

extension Method {
  /// Finds a method by its name, a JSON string; nil when there is none. A name that is too long for any method is not decoded.
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

  /// Finds a method by the bytes of its name; nil when there is none. Makes no String.
  public init?(utf8 name: UnsafeRawBufferPointer) {
    for method in Self.all where Self.spells(name, method.rules.name) {
      self = method
      return
    }
    return nil
  }

  private static let all = allCases

  /// Bytes of the longest name as a JSON string in which each character is an escape.
  private static let longestSpelling = 2 + 6 * (all.map(\.rules.name.utf8CodeUnitCount).max() ?? 0)

  @inline(__always) private static func spells(_ bytes: UnsafeRawBufferPointer, _ name: StaticString) -> Bool {
    guard bytes.count == name.utf8CodeUnitCount, let start = bytes.baseAddress else { return false }
    return memcmp(start, name.utf8Start, bytes.count) == 0
  }
}

/// A right that a rule of the configuration can grant; `Protocol/config.md` says which methods need it.
public enum Right: String, CaseIterable, Sendable {
  /// See what a feed holds.
  case read
  /// Change what a feed holds.
  case write
  /// Define, redefine and undefine feeds, and change what they show.
  case define
  /// See the daemon's counters and its connections.
  case admin
}
