import FeedChange
import FeedJSON

/// What one user stores: the feeds that it defined, their elements, and their definitions.
///
/// Elements count for the user that defined their feed, even if another user pushed them. Rows of managed feeds count for
/// no user: they are read again at each start, and replay of the log must make the same decisions as the daemon.
///
/// Selected rows count for feeds that show rows of others, because thousands of views can show the same rows.
///
/// Rows in the indexes of views count for the user that defined the view, as of the last commit; see ``ViewCharge``.
///
/// Invariant: the numbers are the sums over the feeds of the owner; those of `total` are the sums of all accounts.
public final class Account {
  /// The user; nil for the feeds of the configuration, and for the sum of all accounts.
  public let owner: UInt32?
  public private(set) var feeds = 0
  public private(set) var elements = 0
  /// Bytes of the elements.
  public private(set) var bytes = 0
  public private(set) var definitionBytes = 0
  /// Selected rows of feeds that show other feeds.
  public private(set) var selected = 0
  /// Rows in the indexes of views.
  public private(set) var viewRows = 0
  /// The account of all users; nil for that account itself.
  private let total: Account?

  init(owner: UInt32?, total: Account?) { (self.owner, self.total) = (owner, total) }

  public var isEmpty: Bool { feeds == 0 && elements == 0 }
  fileprivate var sums: [Int] { [feeds, elements, bytes, definitionBytes, selected, viewRows] }

  /// Adds elements, or takes them off with negative numbers. O(1).
  @inline(__always)
  func add(elements count: Int, bytes: Int) {
    elements &+= count
    self.bytes &+= bytes
    guard let total else { return }
    total.elements &+= count
    total.bytes &+= bytes
  }

  /// Adds feeds and their definitions, or takes them off with negative numbers.
  func add(feeds count: Int, definitionBytes bytes: Int) {
    feeds += count
    definitionBytes += bytes
    total?.add(feeds: count, definitionBytes: bytes)
    assert(feeds >= 0 && definitionBytes >= 0, "more was taken off an account than was added")
  }

  /// Adds selected rows, or takes them off with a negative number. O(1).
  func add(selected count: Int) {
    selected &+= count
    total?.add(selected: count)
    assert(selected >= 0, "more selected rows were taken off an account than were added")
  }

  /// Adds rows of views, or takes them off with a negative number. O(1).
  func add(viewRows count: Int) {
    viewRows &+= count
    total?.add(viewRows: count)
    assert(viewRows >= 0, "more rows of views were taken off an account than were added")
  }

  // MARK: Limits

  /// The limit that leaves no room for more rows of views; nil if there is room.
  /// - Parameters:
  ///   - added: the rows of views of this user, and those of all users.
  ///   - present: the rows that count, of the user and of all users.
  func noRoom(
    viewRows added: (user: Int, all: Int), besides present: (user: Int, all: Int), _ limits: Limits
  ) -> FeedError? {
    let advice = "undefine views, or remove rows that they show"
    if owner != nil && added.user > 0 && present.user + added.user > limits.maxViewRowsPerUser {
      let reason = "the views that uid \(owner ?? 0) defined keep \(counted(present.user, "row"))"
      return exceeded(\.maxViewRowsPerUser, limits, reason, advice)
    }
    if present.all + added.all > limits.maxTotalViewRows {
      return exceeded(\.maxTotalViewRows, limits, "all views keep \(counted(present.all, "row"))", advice)
    }
    return nil
  }

  /// The limit that leaves no room for more selected rows; nil if there is room.
  func noRoom(selected added: Int, besides present: (user: Int, all: Int), _ limits: Limits) -> FeedError? {
    if owner != nil && present.user + added > limits.maxSelectedPerUser {
      let reason = "\(subject) have \(counted(present.user, "selected row"))"
      return exceeded(\.maxSelectedPerUser, limits, reason, "deselect rows")
    }
    if present.all + added > limits.maxTotalSelected {
      let reason = "feeds that show others have \(counted(present.all, "selected row"))"
      return exceeded(\.maxTotalSelected, limits, reason, "deselect rows")
    }
    return nil
  }

  /// Whether there is room for an element.
  /// - Parameter isNew: whether the element does not take the place of another version.
  @inline(__always)
  func hasRoom(bytes added: Int, isNew: Bool, _ limits: Limits) -> Bool {
    guard let total else { return true }
    if isNew && total.elements >= limits.maxTotalElements || total.bytes &+ added > limits.maxTotalBytes {
      return false
    }
    return owner == nil || (!isNew || elements < limits.maxElementsPerUser) && bytes &+ added <= limits.maxBytesPerUser
  }

  func noRoom(bytes added: Int, isNew: Bool, _ limits: Limits) -> FeedError {
    if owner != nil {
      if isNew && elements >= limits.maxElementsPerUser {
        return exceeded(\.maxElementsPerUser, limits, "\(subject) hold \(counted(elements, "element"))")
      }
      if bytes &+ added > limits.maxBytesPerUser {
        return exceeded(\.maxBytesPerUser, limits, "\(subject) hold \(counted(bytes, "byte")) of elements")
      }
    }
    if let total, isNew && total.elements >= limits.maxTotalElements {
      return exceeded(\.maxTotalElements, limits, "all feeds hold \(counted(total.elements, "element"))")
    }
    return exceeded(\.maxTotalBytes, limits, "all feeds hold \(counted(total?.bytes ?? 0, "byte")) of elements")
  }

  /// Refuses feeds and definitions for which there is no room.
  func checkRoom(feeds count: Int, definitionBytes added: Int, _ limits: Limits) throws(FeedError) {
    if owner != nil {
      if count > 0 && feeds + count > limits.maxFeedsPerUser {
        throw exceeded(\.maxFeedsPerUser, limits, "uid \(owner ?? 0) has defined \(counted(feeds, "feed"))")
      }
      if added > 0 && definitionBytes + added > limits.maxDefinitionBytesPerUser {
        throw exceeded(
          \.maxDefinitionBytesPerUser, limits, "\(subject) have \(counted(definitionBytes, "byte")) of definitions")
      }
    }
    guard let total, added > 0, total.definitionBytes + added > limits.maxTotalDefinitionBytes else { return }
    throw exceeded(
      \.maxTotalDefinitionBytes, limits, "all feeds have \(counted(total.definitionBytes, "byte")) of definitions")
  }

  private var subject: String { "the feeds that uid \(owner ?? 0) defined" }

  private func exceeded(
    _ limit: WritableKeyPath<Limits, Int>, _ limits: Limits, _ reason: String,
    _ advice: String = "undefine feeds or delete elements"
  ) -> FeedError {
    limits.exceeded(limit, "\(reason); \(advice)")
  }
}

/// What an account is charged for one feed and its definition.
///
/// Invariant: while it is open, the account counts one feed and the bytes.
struct DefinitionCharge {
  private(set) var account: Account?
  /// Bytes of the definition. Kept when the charge is closed, so that an undone removal opens it again.
  private(set) var bytes = 0

  mutating func open(_ account: Account, bytes: Int) {
    assert(self.account == nil, "the feed has an account already")
    (self.account, self.bytes) = (account, bytes)
    account.add(feeds: 1, definitionBytes: bytes)
  }

  /// Takes the feed off the account, which is returned.
  mutating func close() -> Account? {
    account?.add(feeds: -1, definitionBytes: -bytes)
    defer { account = nil }
    return account
  }

  mutating func set(bytes: Int) {
    account?.add(feeds: 0, definitionBytes: bytes - self.bytes)
    self.bytes = bytes
  }
}

public final class Accounts {
  public let total = Account(owner: nil, total: nil)
  /// The feeds that no user defined: those of the configuration, and those stored before owners were.
  public let unowned: Account
  private var users: [UInt32: Account] = [:]

  init() { unowned = Account(owner: nil, total: total) }

  /// The account of a user, or of the feeds that no user defined. It stays the same for as long as this object.
  func account(of owner: UInt32?) -> Account {
    guard let owner else { return unowned }
    if let known = users[owner] { return known }
    let account = Account(owner: owner, total: total)
    users[owner] = account
    return account
  }

  /// What a user stores; nil if it is nothing.
  public func usage(of user: UInt32) -> Account? { users[user].flatMap { $0.isEmpty ? nil : $0 } }

  /// The users that store something, ascending.
  public var owners: [UInt32] { users.filter { !$0.value.isEmpty }.keys.sorted() }

  /// Checks the sums. O(feeds).
  /// - Parameter isRestoring: whether feeds of an image are defined. The rows of `$feeds` then change without a commit, and
  ///   its views are charged at the end.
  func checkInvariants(_ feeds: some Sequence<Feed>, isRestoring: Bool, _ limits: Limits) {
    let fresh = Accounts()
    for feed in feeds {
      let account = fresh.account(of: feed.account?.owner)
      if let view = feed.kind as? ViewKind {
        account.add(viewRows: view.charge.rows)
        let isExact = view.charge.rows == (view.hasIndex ? view.source.count : 0)
        precondition(isExact || isRestoring, "a view is charged wrong")
      }
      if feed.derived != nil { account.add(selected: feed.selection.count) }
      let table = feed.kind is ManagedKind ? nil : feed.kind.rows?.elements
      account.add(elements: table?.count ?? 0, bytes: table?.bytes ?? 0)
      account.add(feeds: 1, definitionBytes: feed.definitionBytes)
      precondition(
        feed.definition.map { $0.storedBytes(limits) == feed.definitionBytes } ?? true, "a definition is charged wrong")
    }
    for account in Array(users.values) + [unowned] {
      precondition(account.sums == fresh.account(of: account.owner).sums, "an account is wrong")
    }
    precondition(total.sums == fresh.total.sums, "the sum of the accounts is wrong")
  }
}

extension FeedDefinition {
  /// Bytes that the definition counts for: its JSON and the memory of its filters, bins and entries. A list of children counts
  /// with their names, because other methods change it one by one.
  func storedBytes(_ limits: Limits) -> Int {
    switch content {
    case .composed(let children), .segmented(let children, _):
      return Self.bytes(ofChildren: children)
    case .collection, .list, .slots, .view, .managed:
      var text = ByteBuffer()
      appendMembers(to: &text)
      return text.count + (limits.countsMemory ? memory : 0)
    }
  }

  /// The memory of a bin without elements, and of its order if it is sorted.
  private static let bytesOfBin = 2048
  /// The memory of a type in `pattern` or `header`, and of one in `fixed`.
  private static let (bytesOfEntry, bytesOfFixed) = (56, 208)

  private var memory: Int {
    switch content {
    case .collection(let collection):
      collection.bins.reduce(0) { sum, bin in
        sum + (bin.sort.isEmpty ? 1 : 2) * Self.bytesOfBin + (bin.filter?.size ?? 0)
      }
    case .slots(let slots):
      (slots.pattern.count + slots.header.count) * Self.bytesOfEntry + slots.fixed.count * Self.bytesOfFixed
    case .view(let view): view.filter?.size ?? 0
    case .list, .composed, .segmented, .managed: 0
    }
  }

  /// Bytes that a definition with these children counts for.
  static func bytes(ofChildren names: some Sequence<String>) -> Int { names.reduce(128) { $0 + bytes(ofChild: $1) } }
  static func bytes(ofChild name: String) -> Int { name.utf8.count + 16 }
}
