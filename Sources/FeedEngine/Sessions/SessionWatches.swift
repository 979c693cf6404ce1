import FeedModel

/// The watches of one connection: at most one for each name of a feed. Each operation is O(1).
///
/// Invariant: `places` has the place of each watch in `all`, by the name of its feed.
struct SessionWatches: Sequence {
  private var all: [Watch] = []
  private var places: [String: Int] = [:]

  var count: Int { all.count }
  var isEmpty: Bool { all.isEmpty }

  func makeIterator() -> IndexingIterator<[Watch]> { all.makeIterator() }

  /// The watch of the feed with a name, or of a former feed with that name, whose end is not sent yet.
  subscript(name: String) -> Watch? { places[name].map { all[$0] } }

  /// Adds a watch.
  /// - Precondition: there is none with the name of its feed.
  mutating func add(_ watch: Watch) {
    let former = places.updateValue(all.count, forKey: watch.channel.feed.name)
    precondition(former == nil, "a connection watches a feed once")
    all.append(watch)
  }

  /// Removes a watch; the last one takes its place.
  mutating func remove(_ watch: Watch) {
    guard let place = places.removeValue(forKey: watch.channel.feed.name) else {
      preconditionFailure("the watch is not of this connection")
    }
    assert(all[place] === watch)
    let last = all.removeLast()
    if last === watch { return }
    all[place] = last
    places[last.channel.feed.name] = place
  }
}
