import FeedClient
import FeedSystem
import Glibc

extension Command {
  static let watch = Command(
    name: "watch", usage: ["FEED"], summary: "show a feed and what changes in it",
    about: """
      Shows a feed and every change to it until it is stopped. On a terminal: the sections as a list that is redrawn \
      in place, with + - ~ where something has just changed. Otherwise, and with --json: the daemon's notifications, \
      one JSON object a line, each written at once; the program ends when its reader does.
      """,
    options: [
      OptionDescription("count", value: .integer(1...Int.max), help: "end after so many snapshot parts and deltas"),
      OptionDescription("snapshot-only", help: "end when the snapshot is complete"),
      OptionDescription("no-initial", help: "begin with the first change instead of a snapshot"),
      OptionDescription("wait", help: "wait for the daemon, and for the feed to be defined"),
      OptionDescription("reconnect", help: "when the connection is lost, connect again and go on where it ended"),
      OptionDescription(
        "since-file", value: .text("FILE"),
        help: "go on where FILE says, and keep it up to date: nothing is missed between two runs"),
      OptionDescription(
        "verify", help: "compare the copy with the daemon's digest whenever the feed is quiet, and at the end"),
      OptionDescription(
        "throttle", value: .integer(0...86_400_000),
        help: "at most one delta in so many milliseconds, for several changes"),
      OptionDescription(
        "template", value: .text("TYPE=TEXT"),
        help:
          "how rows of a type look on a terminal; {member} stands for a value; without TYPE= for all", repeats: true),
    ],
    notes: """
      --timeout ends the watch with exit status 4, however much has come. --wait and --reconnect never give up.
      A watch whose feed is undefined ends with 1, or with --reconnect waits for it to be defined again.

      Examples:
        feedclient watch inbox --template '{priority} {text}'
        feedclient watch inbox --count 1 --no-initial --timeout 60s     wait for one change
        feedclient watch inbox --since-file seen.json --reconnect | tee -a log.ndjson
        feedclient watch inbox --snapshot-only --verify > /dev/null     is the copy right?
      """,
    operands: 1...1
  ) { invocation throws(Failure) in
    let settings = try WatchSettings(invocation)
    let console = invocation.console
    if console.isJSON {
      return try WatchRun(invocation, settings, NotificationLines(console)).run()
    }
    guard console.terminal.canRedraw else {
      return try WatchRun(invocation, settings, ChangeLines(console, settings.templates)).run()
    }
    let display = LiveDisplay(console, invocation.environment, settings.templates)
    return try WatchRun(invocation, settings, display).run(TerminalSignals(display))
  }
}
