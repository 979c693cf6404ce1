import FeedSystem

extension Command {
  static let socket = Command(
    name: "socket", summary: "push to a daemon over its socket and read what its watchers get; beside Redis too",
    about: """
      Measures the whole daemon: one connection pushes elements, so many of them unanswered at a time, others watch the feed and \
      read everything; then one request and one delta at a time; then pings of one connection while another is sent a large \
      snapshot. A feedd is started for it unless --socket names one. With --redis the same job, HSET and PUBLISH of the same \
      bytes, runs against a Redis in turn with the other, run by run, and ratios are printed.
      """,
    options: [
      count("updates that a run pushes", default: defaultSocketCount),
      OptionDescription(
        "watchers", value: .integer(0...1000), help: "connections that watch",
        defaultText: watchers.map { "\($0)" }.joined(separator: ", "), repeats: true),
      OptionDescription(
        "window", value: .integer(1...65_536), help: "pushes unanswered at a time",
        defaultText: "\(PushJob.defaultWindow)"),
      OptionDescription(
        "payload", value: .integer(50...1_000_000), help: "bytes of an element",
        defaultText: "\(PushJob.defaultPayload)"),
      OptionDescription(
        "snapshot", value: .integer(0...100_000_000), help: "elements of the large snapshot; 0 leaves it out",
        defaultText: "\(snapshot)"),
      OptionDescription(
        "durability", value: .choice(["memory", "process", "disk"]),
        help: "what the changes of the feedd that is started survive", defaultText: "memory"),
      OptionDescription("socket", value: .text("PATH"), help: "a feedd that runs already"),
      OptionDescription("redis", value: .text("PATH"), help: "the socket of a Redis to compare with"),
    ],
    notes: """
      A delivery is one update read by one watcher. "server" is the processor time that the daemon took for an update.
      A Redis for comparison: redis-server --port 0 --unixsocket /tmp/redis.sock --save '' --appendonly no
      For one that keeps as well, with --durability process: --appendonly yes --appendfsync everysec; with disk: always.
      """
  ) { options, report in
    var job = PushJob(count: options.integer("count") ?? defaultSocketCount)
    job.window = options.integer("window") ?? job.window
    job.payload = options.integer("payload") ?? job.payload
    let given = options.texts("watchers").compactMap { Int($0) }
    let durability = options.text("durability") ?? "memory"
    let daemon = try options.text("socket") == nil ? DaemonUnderTest(durability: durability) : nil
    let measures = SocketMeasures(
      job: job, watchers: given.isEmpty ? watchers : given, snapshot: options.integer("snapshot") ?? snapshot,
      feedd: options.text("socket") ?? daemon?.socketPath ?? "",
      redis: options.text("redis"))
    try withExtendedLifetime(daemon) { try measures.run(&report) }
  }

  private static let defaultSocketCount = 400_000
  private static let watchers = [1, 8, 32]
  private static let snapshot = 1_000_000
}
