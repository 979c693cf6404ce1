import FeedSystem

/// A server that the fan-out is measured on: how it is spoken to, and how the ends of its messages are found.
protocol Server {
  /// The name in the table.
  var name: String { get }
  var path: String { get }

  /// Makes what is pushed to, empty.
  func prepare() throws
  /// A connection that gets every update from now on.
  func subscribe() throws -> UnixStream
  /// The requests of the job, each to be pushed as one update.
  func pushes(_ job: PushJob) -> Texts
  /// What counts the answers to pushes.
  func answerCounter(_ job: PushJob) -> MessageCounter
  /// What counts the updates that a watcher gets.
  func deliveryCounter(_ job: PushJob) -> MessageCounter
  /// A request whose answer on a watcher's connection comes behind all updates; nil when counting them tells that all came.
  var fence: Texts? { get }
  /// A request that does nothing.
  var ping: Texts { get }
  /// What counts the answers to it.
  var pingCounter: MessageCounter { get }
}

extension Server {
  func connect() throws -> UnixStream { try UnixStream.connect(path: path, timeout: .seconds(10)) }
}
