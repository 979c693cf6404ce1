import FeedChange

/// The feeds of a catalog by name, and feeds and bins by number. ``list`` is not one of the defined feeds.
///
/// Invariant: every named feed and each of its bins is stored under its own number; a free number has no feed. An
/// undefined feed keeps its number until the commit ends, because the commit may be rolled back.
final class FeedTable {
  /// The feed `$feeds`.
  let list: Feed
  private let listed: FeedListKind
  private var named: [String: Feed] = [:]
  private var numbered: [Feed?]
  private var free: [FeedNumber] = []
  /// The numbers of feeds that the open commit undefined. A rollback may have defined some of them again.
  private var leaving: [FeedNumber] = []

  init(limits: Limits, revision: UInt64) {
    listed = FeedListKind(limits: limits)
    list = Feed(name: FeedName.feeds, number: 0, kind: listed, revision: revision)
    list.beginHistory()
    numbered = [list]
  }

  /// Decides which feeds the errors of the open commit may name besides those of its request; nil for all.
  var mayName: ((Feed) -> Bool)?

  /// A feed in the text of an error: its name in quotes, or `other` if the error may not name it.
  func mention(_ feed: Feed, or other: String) -> String { mayName?(feed) ?? true ? "\"\(feed.name)\"" : other }

  /// The feeds by name; bins are found through their collection.
  var byName: [String: Feed] { named }
  var count: Int { named.count }

  /// The feeds in the order of their names, the same in every process.
  var inNameOrder: [Feed] { named.values.sorted { $0.name < $1.name } }

  /// All feeds with a name, without bins: the defined ones and ``list``.
  var all: [Feed] { [list] + named.values }

  subscript(number: FeedNumber) -> Feed {
    guard let feed = numbered[number] else { preconditionFailure("no feed has number \(number)") }
    return feed
  }

  /// The numbers in use or free are below this.
  var numberCount: Int { numbered.count }

  /// The history of the feed or bin with a number; nil if it records none, or the number is free. O(1).
  func history(ofNumber number: FeedNumber) -> History? { numbered[number]?.history }

  /// The feed or bin with a number, without a count of references. The table keeps it until the commit under way ends. O(1).
  @inline(__always)
  func unretained(_ number: FeedNumber) -> Unmanaged<Feed> { .passUnretained(self[number]) }

  /// The feed of that name, or the bin of a collection for `collection/bin`.
  func find(_ name: String) -> Feed? {
    // Names are ASCII, and what is canonically equivalent to ASCII has more bytes.
    if let feed = named[name] { return feed.name.utf8.count == name.utf8.count ? feed : nil }
    if name == FeedName.feeds { return list }
    guard let slash = name.firstIndex(of: "/") else { return nil }
    return named[String(name[..<slash])]?.kind.bins.first { $0.name.exact == name.exact }
  }

  /// The collection of a bin; nil for other feeds.
  func collection(of feed: Feed) -> Feed? {
    guard feed.kind is BinKind, let slash = feed.name.firstIndex(of: "/") else { return nil }
    return named[String(feed.name[..<slash])]
  }

  /// Updates the row of a feed in `$feeds` from its definition. Returns the change of `$feeds`.
  func follow(_ feed: Feed, in commit: Commit) throws(FeedError) -> Change { try listed.follow(feed, in: commit) }

  /// Creates a feed or bin under a new number. It has no name in the table yet.
  func makeFeed(name: String, revision: UInt64, _ kind: (FeedNumber) -> any FeedKind) -> Feed {
    let number = free.popLast() ?? numbered.count
    if number == numbered.count { numbered.append(nil) }
    let feed = Feed(name: name, number: number, kind: kind(number), revision: revision)
    numbered[number] = feed
    return feed
  }

  func add(_ feed: Feed) {
    assert(named[feed.name] == nil && numbered[feed.number] === feed, "feed \(feed.name) is in the table already")
    named[feed.name] = feed
    sampleInvariants()
  }

  func remove(_ feed: Feed) {
    assert(named[feed.name] === feed, "feed \(feed.name) is not in the table")
    named[feed.name] = nil
  }

  /// Releases the number of a feed or bin at the end of the commit, if the feed is gone by then.
  func release(_ feed: Feed) { leaving.append(feed.number) }

  /// Ends a commit: releases the numbers of feeds that are gone.
  @inline(__always)
  func recycle() { if !leaving.isEmpty { releaseNumbers() } }

  private func releaseNumbers() {
    for number in leaving where numbered[number]?.isGone == true {
      numbered[number] = nil
      free.append(number)
    }
    leaving.removeAll()
    sampleInvariants()
  }

  private func sampleInvariants() {
    #if CHECK_INVARIANTS
      if numbered.count <= 64 { checkInvariants() }
    #endif
  }

  /// O(feeds).
  func checkInvariants() {
    for (name, feed) in named {
      precondition(feed.name == name && !feed.isGone, "a feed stands under another name")
      precondition(numbered[feed.number] === feed, "a feed stands under another number")
      for bin in feed.kind.bins { precondition(numbered[bin.number] === bin, "a bin stands under another number") }
    }
    precondition(Set(free).count == free.count, "a number is free twice")
    precondition(free.allSatisfy { numbered[$0] == nil }, "a free number has a feed")
    for (number, feed) in numbered.enumerated() {
      precondition(feed == nil || feed?.number == number, "a feed stands under another number")
    }
    precondition(numbered.count { $0 == nil } == free.count, "a number is lost")
  }
}
