import FeedModel

/// The state of a daemon that a client can see.
extension DurableEngine {
  /// The definition, revision, rows, types and selection of every feed, one a line. The time does not advance.
  var visibleState: [String] {
    // Watches end with their connection, but `describe` counts them.
    for name in feedNames { ask("unwatch", #"{"feed":"\#(name)"}"#, later: 0) }
    var lines = [ask("feeds", later: 0)]
    for name in feedNames {
      for method in ["describe", "snapshot", "selected", "verify"] {
        lines.append("\(method) \(name): " + ask(method, #"{"feed":"\#(name)"}"#, later: 0))
      }
    }
    return lines
  }

  /// The names of feeds and of the bins of collections.
  var feedNames: [String] {
    catalog.feeds.values.flatMap { feed in
      [feed.name] + (feed.kindName == "collection" ? (0..<feed.sectionCount).map { feed.section(at: $0).name } : [])
    }.sorted()
  }

  /// Returns the frames of a watcher that resumes `feed` from `revision`.
  func resume(_ feed: String, from revision: UInt64, epoch: String) -> [String] {
    let since = #"{"feed":"\#(feed)","since":{"epoch":"\#(epoch)","revision":\#(revision)}}"#
    let told = turn([Self.request("watch", since)], later: 0)
    _ = ask("unwatch", #"{"feed":"\#(feed)"}"#, later: 0)
    return told
  }

  var catalog: Catalog { engine.catalog }
}
