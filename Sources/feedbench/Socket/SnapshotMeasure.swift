import FeedSystem

/// Whether a large snapshot for one keeps others waiting: pings, one after another, until a watcher has read it all.
struct SnapshotMeasure {
  let server: FeeddServer
  /// What the feed is filled with.
  let job: PushJob

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
        .gigabytesPerSecond(Double(job.elements * job.payload) / time),
      ])
    var dialogue = Dialogue(try server.connect())
    try dialogue.ask("set", #"{"feed":"\#(PushJob.feed)","elements":[]}"#)
  }

  private func fill() throws {
    var dialogue = Dialogue(try server.connect())
    try dialogue.ask("define", PushJob.definition)
    let frames = Texts.filling(job)
    for index in 0..<frames.count { try dialogue.ask(frames[index], "update") }
  }
}
