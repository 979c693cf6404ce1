import FeedClient
import FeedSystem

extension Command {
  static let watch = Command(
    name: "watch", usage: ["FEED... [OPTION]..."], summary: "show feeds and their changes",
    examples: """
      feedclient watch inbox
      feedclient watch inbox todo
      feedclient watch inbox --print '{text}' --rows 3 --separator ' | '
      feedclient watch inbox --counts
      feedclient watch inbox --only added --where '@.p > 7' --template '{text}'
      feedclient watch inbox --since-file seen.json --reconnect | ./show-changes
      feedclient watch inbox --no-initial --count 1 --timeout 60s
      """,
    about: """
      Shows feeds and every change to them until interrupted. On a terminal it is a list, several feeds side by side, \
      redrawn in place, with + ~ > - where rows were added, updated, moved or deleted; ? shows its keys. Otherwise, and \
      with --json, it is the daemon's notifications, one JSON object a line, each written at once. With --template it is \
      a line for each row, with a sign: + ~ > >~ - where it was added, updated, moved, moved and updated, or deleted; ! \
      before a new state that replaces the one before, and ? for its rows if they cannot be compared.
      """,
    options: [
      OptionDescription(
        "print", value: .text("TEMPLATE"),
        help: "print the first rows of each feed as text after every change; see --template"),
      OptionDescription(
        "rows", value: .integer(1...1_000_000),
        help: "maximum number of rows of each feed with --print", defaultText: "the first one, or an empty line"),
      OptionDescription(
        "separator", value: .text("TEXT"), help: "with --print, join the rows into one line with TEXT"),
      OptionDescription("counts", help: "print the number of rows of each section after every change"),
      Command.template,
      OptionDescription(
        "count", value: .integer(1...Int.max),
        help: "end after this many changes of each feed; a snapshot is one, in JSON each of its parts"),
      OptionDescription("snapshot-only", help: "end when the snapshot is complete"),
      OptionDescription(
        "no-initial",
        help: "start with the first change instead of a snapshot; on a terminal, print a line for each changed row"),
      OptionDescription(
        "only", value: .text("KINDS"),
        help: "show only rows that were added, updated, deleted or moved: a list such as added,updated"),
      OptionDescription(
        "section", value: .text("SECTION"), help: "show only rows of a section; one that moves into it is added"),
      OptionDescription(
        "where", value: .text("FILTER"),
        help: "show only rows whose element matches, a condition as for bins such as '@.priority >= 8'"),
      OptionDescription(
        "ids", help: "in JSON, list the identities of deleted rows, as --template and filters do anyway"),
      OptionDescription("wait", help: "wait for the daemon and for the feed to be defined"),
      OptionDescription("reconnect", help: "connect again after a lost connection and resume"),
      OptionDescription(
        "since-file", value: .text("FILE"),
        help: "resume from the positions in FILE, and move them on when the reader of the output has taken it"),
      OptionDescription(
        "verify", help: "compare the copy with the daemon's digest when the feed is quiet, and at the end"),
      OptionDescription(
        "throttle", value: .integer(0...86_400_000), help: "receive at most one delta in this many milliseconds"),
    ],
    notes: """
      A script that must not miss a change is better started by feedclient trigger:
      a line that a reader has taken is not printed again if the reader fails.
      --only leaves out the rows of snapshots too. A deleted row is judged by its last
      element, and shown if that is not known.
      The list on a terminal ends with q. Ctrl-C ends the process by SIGINT.
      What shows the whole state begins with the present one, also with --since-file:
      the list on a terminal, --print, --counts and --snapshot-only.
      --timeout ends the watch with status 4. --wait and --reconnect never give up.
      A watch whose feed is removed ends with status 1, or with --reconnect waits
      until the feed is defined again. Waiting for a feed needs the right to read
      $feeds, if the daemon has access rules.
      """,
    operands: 1...64
  ) { invocation throws(Failure) in
    let settings = try WatchSettings(invocation)
    let console = invocation.console
    let display: any WatchDisplay
    if settings.output != .changes {
      display = StateLines(console, settings.output, feeds: settings.feeds.count)
    } else if console.isJSON, settings.templates.isEmpty {
      display = NotificationLines(console, settings)
    } else if console.terminal.canRedraw, settings.initial, settings.filter.isOpen {
      display = try LiveDisplay(console, invocation.environment, settings)
    } else {
      display = ChangeLines(console, settings)
    }
    return try WatchRun(invocation, settings, display).run()
  }
}
