import FeedJSON
import FeedSystem

extension Follower {
  /// Does what the watcher says.
  /// - Parameter cause: what went wrong, for those who are told to wait.
  func perform(_ action: Watcher.Action, cause: ClientError? = nil, _ handle: Handler) throws(ClientError) {
    let options = watcher.options
    switch action {
    case .connect:
      try connect(handle)
    case .sendHello:
      pendingID = connection?.send("hello") { Connection.appendHello(client: options.client, to: &$0) }
      try connection?.flush()
    case .sendWatch(let since, let initial):
      pendingID = connection?.send("watch") { options.appendWatch(since: since, initial: initial, to: &$0) }
      try connection?.flush()
    case .rest(let nanoseconds):
      restsUntil = MonotonicClock.now &+ nanoseconds
      _ = try handle(.waiting(cause ?? .closed(nil)))
    case .read:
      return
    case .fail(let error):
      connection = nil
      throw error
    }
  }

  private func connect(_ handle: Handler) throws(ClientError) {
    do throws(ClientError) {
      connection = try Connection.open(path: path, timeout: .seconds(1))
    } catch {
      return try perform(watcher.failedToConnect(error), cause: error, handle)
    }
    try perform(watcher.connected(), handle)
  }

  /// Begins a watch that the daemon has answered.
  func begin(_ start: WatchStart, _ handle: Handler) throws(ClientError) -> Verdict {
    let action = watcher.started(start)
    if keepsMirror { beginMirror(start) }
    try perform(action, handle)
    return try handle(.started(start))
  }

  private func beginMirror(_ start: WatchStart) {
    if mirror != nil {
      mirror?.restart(start)
    } else if !start.resumed, watcher.asksForSnapshot || start.sections.allSatisfy({ $0.count == 0 }) {
      mirror = Mirror(start, initial: watcher.asksForSnapshot)
    }
  }
}

extension WatchOptions {
  /// The parameters of `watch`.
  func appendWatch(since: FeedPosition?, initial: Bool, to params: inout ByteBuffer) {
    params.append("{\"feed\":")
    params.appendJSONString(feed)
    if let since {
      params.append(",\"since\":{\"epoch\":")
      params.appendJSONString(since.epoch)
      params.append(",\"revision\":")
      params.append(integer: since.revision)
      params.append("}")
    }
    if !initial { params.append(",\"initial\":false") }
    if let throttle {
      params.append(",\"throttle\":")
      params.append(integer: throttle)
    }
    params.append("}")
  }
}
