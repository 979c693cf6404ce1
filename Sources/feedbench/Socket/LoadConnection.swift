import FeedSystem

/// One connection of the load: what counts its messages. It lies in raw memory, and the event queue holds its address.
struct LoadConnection {
  let stream: UnixStream
  var counter: MessageCounter
  let isPusher: Bool
  /// Whether all that it waits for came.
  var isDone = false
}
