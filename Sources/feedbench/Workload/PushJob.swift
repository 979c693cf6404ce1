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
  /// Elements that are updated in turn.
  var elements = 1000
  var watchers = 8

  init(count: Int) { self.count = count }

  /// How many updates are prepared; each of the elements comes several times, always different from the time before.
  var preparedCount: Int { elements * max(2, 4096 / elements) }

  /// The elements to push, in order; pushed again and again.
  func prepared() -> [String] {
    var random = Random(seed: 11)
    return (0..<preparedCount).map { index in
      let head = #"{"id":\#(index % elements),"version":\#(100_000 + index),"text":""#
      return head + random.words(max(1, payload - head.utf8.count - 2)) + "\"}"
    }
  }

  /// The feed that is pushed to.
  static let feed = "bench"
  static let definition = #"{"feed":"bench","kind":"collection"}"#
}
