import FeedModel
import FeedSystem

extension DaemonOptions {
  /// The command line of `feedd`.
  /// - Parameter socketPath: the default path, for the help.
  public static func table(defaultSocket socketPath: String) -> OptionTable {
    OptionTable(
      program: "feedd", usage: ["[OPTION]..."],
      about: """
        Owns lists for the programs of this machine: they push JSON elements over a Unix socket, feedd sorts them into bins, \
        composes feeds, and tells every watcher by position what changed.
        """,
      groups: [places(socketPath), running, OptionGroup("Limits", Limits.all.map(limit))],
      notes: """
        BYTES may be written with K, M or G (powers of 1024), TIME with ms, s, m, h or d.
        Exit codes: 0 ended as asked, 1 failed at run time, 2 the command line is wrong.
        """)
  }

  private static func places(_ socketPath: String) -> OptionGroup {
    OptionGroup(
      "Places",
      [
        OptionDescription("socket", value: .text("PATH"), help: "where clients connect to", defaultText: socketPath),
        OptionDescription(
          "state", value: .text("DIR"), help: "where elements are kept; not used with durability memory"),
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
        help: "what a commit survives before it is published; this version offers memory only", defaultText: "memory"),
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
