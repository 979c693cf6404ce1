import FeedModel
import FeedStorage
import FeedSystem

extension DaemonOptions {
  /// The command line of `feedd`.
  /// - Parameters:
  ///   - socketPath: the default path, for the help.
  ///   - statePath: the default state directory, for the help; nil when there is none.
  public static func table(defaultSocket socketPath: String, defaultState statePath: String?) -> OptionTable {
    OptionTable(
      program: "feedd", usage: ["[OPTION]..."],
      about: """
        Owns lists for the programs of this machine: they push JSON elements over a Unix socket, feedd sorts them into bins, \
        composes feeds, and tells every watcher by position what changed.
        """,
      groups: [places(socketPath, statePath), running, OptionGroup("Limits", Limits.all.map(limit))],
      notes: """
        BYTES may be written with K, M or G (powers of 1024), TIME with ms, s, m, h or d.
        Exit codes: 0 ended as asked, 1 failed at run time, 2 the command line is wrong.
        """)
  }

  private static func places(_ socketPath: String, _ statePath: String?) -> OptionGroup {
    OptionGroup(
      "Places",
      [
        OptionDescription("socket", value: .text("PATH"), help: "where clients connect to", defaultText: socketPath),
        OptionDescription(
          "state", value: .text("DIR"), help: "where everything is kept, unless durability is memory",
          defaultText: statePath),
        OptionDescription(
          "config", value: .text("FILE"), help: "definitions, access rules and limits; SIGHUP has it read again"),
        OptionDescription(
          "check-config", value: .text("FILE"), help: "say whether such a file is right, and end"),
      ])
  }

  private static let running = OptionGroup(
    "Running",
    [
      OptionDescription(
        "durability", value: .choice(Durability.allCases.map(\.rawValue)),
        help:
          "what a change survives before it is published: nothing, the end of the daemon, or the loss of power as well",
        defaultText: "process"),
      OptionDescription(
        "image-interval", value: .duration(.seconds(1)...(.seconds(31_536_000))),
        help: "how often all elements are written anew even if little has changed", defaultText: "6h"),
      OptionDescription(
        "image-journal", value: .bytes(4096...(1 << 40)),
        help: "bytes of journal, if that is more than the last image has, after which all elements are written anew",
        defaultText: ByteCount.text(ImagePolicy().journalBytes)),
      OptionDescription("check", help: "verify the state directory, say what it holds, and exit"),
      OptionDescription(
        "drain-timeout", value: .duration(.zero...(.seconds(3600))),
        help: "the longest time to finish writing to clients after SIGTERM", defaultText: "5s"),
      OptionDescription(
        "log-level", value: .choice(LogLevel.allCases.map(\.name)), help: "the least important lines to log",
        defaultText: "info"),
    ])

  private static func limit(_ limit: LimitDescription) -> OptionDescription {
    OptionDescription(
      limit.flag, value: limit.unit.value(in: limit.range), help: limit.help,
      defaultText: limit.unit.text(Limits()[keyPath: limit.keyPath]))
  }
}
