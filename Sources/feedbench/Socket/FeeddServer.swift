import FeedSystem

/// feedd: a plain collection, `update` and `watch`.
struct FeeddServer: Server {
  let path: String
  let name = "feedd"

  /// Answers are shorter than this, deltas longer: an element has at least 50 bytes and stands in some 130.
  private static let shortLength = 100

  func prepare() throws {
    var dialogue = Dialogue(try connect())
    try dialogue.ask("define", PushJob.definition)
    try dialogue.ask("set", #"{"feed":"\#(PushJob.feed)","elements":[]}"#)
  }

  func subscribe() throws -> UnixStream {
    var dialogue = Dialogue(try connect())
    try dialogue.ask("watch", #"{"feed":"\#(PushJob.feed)","initial":false}"#)
    return dialogue.stream
  }

  func pushes(_ job: PushJob) -> Texts { .pushes(job) }

  func answerCounter(_ job: PushJob) -> MessageCounter { .frames(FrameCounter()) }

  func deliveryCounter(_ job: PushJob) -> MessageCounter { .frames(FrameCounter(shortLength: Self.shortLength)) }

  /// A watcher that falls behind gets several updates in one delta, so counting does not tell when all came.
  var fence: Texts? { Texts.frame(Texts.request("sync")) }

  var ping: Texts { Texts.frame(Texts.request("ping")) }

  var pingCounter: MessageCounter { .frames(FrameCounter()) }
}
