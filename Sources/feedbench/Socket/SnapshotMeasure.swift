import FeedSystem

/// Whether a large snapshot for one keeps others waiting: pings, one after another, until a watcher has read it all.
struct SnapshotMeasure {
  let server: FeeddServer
  let elements: Int
  let payload: Int

  /// Elements of one push.
  private static let batch = 1000

  func run(_ report: Report) throws {
    try fill()
    let watcher = try server.connect()
    let reader = SnapshotReader(watcher)
    var ping = try Ping(server)
    var latencies = Latencies()
    let start = MonotonicClock.now
    try reader.start()
    while !reader.isDone { latencies.add(try ping.once()) }
    let time = Double(MonotonicClock.now - start)
    try report.add("a ping and its answer", latencies.metrics)
    try reader.join()
    try report.add(
      "the snapshot",
      [
        Metric(name: "seconds", value: time / 1e9, unit: "s"),
        .gigabytesPerSecond(Double(elements * payload) / time),
      ])
    var dialogue = Dialogue(try server.connect())
    try dialogue.ask("set", #"{"feed":"\#(PushJob.feed)","elements":[]}"#)
  }

  private func fill() throws {
    var dialogue = Dialogue(try server.connect())
    try dialogue.ask("define", PushJob.definition)
    var random = Random(seed: 13)
    var next = 0
    while next < elements {
      let ids = next..<min(elements, next + Self.batch)
      let texts = ids.map { id in
        let head = #"{"id":\#(id),"text":""#
        return head + random.words(max(1, payload - head.utf8.count - 2)) + "\"}"
      }
      try dialogue.ask("update", #"{"feed":"\#(PushJob.feed)","elements":[\#(texts.joined(separator: ","))]}"#)
      next = ids.upperBound
    }
  }
}
