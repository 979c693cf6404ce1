import FeedJSON
import FeedSystem

/// The memory of many elements above their text.
struct MemoryMeasures {
  let count: Int

  private static let payload = 218
  private static let definition =
    ##"{"feed":"bench","kind":"collection","bins":[{"name":"a","filter":"@.id < 1000500000"},{"name":"b","filter":"@.id >= 1000500000"}],"replace":true}"##

  func run(_ report: inout Report) throws {
    try report.title("memory above the text of \(grouped(count)) elements of \(Self.payload) bytes")
    var job = PushJob(count: count)
    (job.elements, job.payload) = (count, Self.payload)
    let bytes = Double(count * Self.payload)
    let frames = Texts.filling(job)
    let daemon = try DaemonUnderTest(durability: "process")
    var dialogue = Dialogue(try FeeddServer(path: daemon.socketPath).connect())
    try dialogue.ask("define", Self.definition)
    let before = daemon.process.residentBytes
    for index in 0..<frames.count { try dialogue.ask(frames[index], "update") }
    let more = Double(daemon.process.residentBytes - before)
    try report.add(
      "feedd, two bins, integer ids, durability process",
      [.bytes((more - bytes) / Double(count), each: "element"), Metric(name: "goal", value: 80, unit: "goal")])
    if let redis = try ServersUnderTest.startRedis() {
      let server = RedisServer(path: ServersUnderTest.redisSocket(redis.folder))
      let before = redis.residentBytes
      try server.fill(job)
      let more = Double(redis.residentBytes - before)
      try report.add("a hash of Redis", [.bytes((more - bytes) / Double(count), each: "element")])
    }
  }
}
