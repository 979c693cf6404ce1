import FeedModel

/// What a client can see of a daemon.
extension DurableEngine {
  /// Every feed with its definition, revision, rows, types and selection, one a line; the time does not go on.
  var visibleState: [String] {
    // Watches do not outlive a connection, but their number shows.
    for name in feedNames { ask("unwatch", #"{"feed":"\#(name)"}"#, later: 0) }
    var lines = [ask("feeds", later: 0)]
    for name in feedNames {
      for method in ["describe", "snapshot", "selected", "verify"] {
        lines.append("\(method) \(name): " + ask(method, #"{"feed":"\#(name)"}"#, later: 0))
      }
    }
    return lines
  }

  /// The feeds and the bins of collections.
  var feedNames: [String] {
    catalog.feeds.values.flatMap { feed in
      [feed.name] + (feed.kindName == "collection" ? (0..<feed.sectionCount).map { feed.section(at: $0).name } : [])
    }.sorted()
  }

  /// What a watcher that comes back to `feed` at `revision` is told.
  func resume(_ feed: String, from revision: UInt64, epoch: String) -> [String] {
    let since = #"{"feed":"\#(feed)","since":{"epoch":"\#(epoch)","revision":\#(revision)}}"#
    let told = turn([Self.request("watch", since)], later: 0)
    _ = ask("unwatch", #"{"feed":"\#(feed)"}"#, later: 0)
    return told
  }

  var catalog: Catalog { engine.catalog }
}
