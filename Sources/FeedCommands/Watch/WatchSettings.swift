import FeedClient
import FeedSystem

/// What the command line of `watch` asks for.
struct WatchSettings: Equatable {
  var options: WatchOptions
  /// So many snapshot parts and deltas, then the end.
  var count: Int?
  var snapshotOnly = false
  var verifies = false
  var sinceFile: String?
  var timeout: Duration?
  var templates = Templates()

  init(_ invocation: Invocation) throws(Failure) {
    let words = invocation.options
    options = WatchOptions(feed: invocation.operand(0))
    options.client = "feedclient/watch"
    options.initial = !words.contains("no-initial")
    options.throttle = words.integer("throttle")
    options.waits = words.contains("wait")
    options.reconnects = words.contains("reconnect")
    count = words.integer("count")
    snapshotOnly = words.contains("snapshot-only")
    verifies = words.contains("verify")
    sinceFile = words.text("since-file")
    timeout = invocation.timeout
    for template in words.texts("template") { try templates.add(template) }
    if snapshotOnly, !options.initial {
      throw invocation.usage("--snapshot-only and --no-initial leave nothing to show")
    }
    if verifies, !options.initial {
      throw invocation.usage("--verify needs the whole feed; leave out --no-initial")
    }
  }
}
