/// The job of the fan-out: who pushes what to how many.
struct PushJob {
  static let defaultWindow = 256
  static let defaultPayload = 200

  /// Updates of a run.
  var count: Int
  /// Updates under way at most.
  var window = defaultWindow
  /// Bytes of an element.
  var payload = defaultPayload
  /// Elements of the feed.
  var elements = 1000
  var watchers = 8

  /// Of a larger feed so many elements are updated, which lie anywhere in it.
  private static let mostUpdated = 16_384

  init(count: Int) { self.count = count }

  /// One update: which element, and its text.
  struct Update {
    let id: Int
    let text: String
  }

  /// The updates to push, in order, again and again: each element that comes does so several times, always different from
  /// the time before.
  func updates() -> [Update] {
    var random = Random(seed: 11)
    let ids = (0..<elements).shuffled(using: &random).prefix(Self.mostUpdated)
    return (0..<max(2, 4096 / ids.count)).flatMap { lap in
      ids.map { Update(id: $0, text: element($0, version: 1_000_000_000 + lap, &random)) }
    }
  }

  /// The feed's elements as they are first.
  func initialElements() -> [String] {
    var random = Random(seed: 12)
    return (0..<elements).map { element($0, version: 1_000_000_000 - 1, &random) }
  }

  private func element(_ id: Int, version: Int, _ random: inout Random) -> String {
    // Numbers of one length, so that all messages of the job have one.
    let head = #"{"id":\#(1_000_000_000 + id),"version":\#(version),"text":""#
    return head + random.words(max(1, payload - head.utf8.count - 2)) + "\"}"
  }

  /// The feed that is pushed to.
  static let feed = "bench"
  static let definition = #"{"feed":"bench","kind":"collection"}"#
}
