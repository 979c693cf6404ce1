import FeedClient
import FeedSystem

extension Program {
  /// The command line before the command, and the help of the whole.
  static var help: OptionTable {
    OptionTable(
      program: "feedclient",
      usage: ["[OPTION]... COMMAND [ARGUMENT]...", "help COMMAND", "COMMAND --help"],
      about: """
        Talks to feedd, the daemon that keeps lists of JSON elements in sync between programs: puts elements into \
        feeds, and shows what changes in them.
        """,
      groups: [OptionGroup("Connection and output", Command.common)],
      notes: commands + "\n" + examples)
  }

  private static var commands: String {
    let width = CommandTable.all.map(\.name.count).max() ?? 0
    var text = ""
    for group in CommandTable.groups {
      text += "\(group.title):\n"
      for command in group.commands {
        let margin = String(repeating: " ", count: width - command.name.count + 2)
        text += "  \(command.name)\(margin)\(command.summary)\n"
      }
      text += "\n"
    }
    return String(text.dropLast())
  }

  private static let examples = """
    Examples:
      feedclient define inbox --bin 'urgent=@.priority >= 8' --bin rest --sort 'urgent=$.priority:desc'
      feedclient push inbox '{"id":1,"priority":9,"text":"disk full"}'
      journalctl -f -o json | jq -c --unbuffered '{id:.__CURSOR,text:.MESSAGE}' | feedclient push log
      feedclient watch inbox
      feedclient watch inbox --since-file seen.json --reconnect | while read -r line; do …; done

    Exit status: 0 done, 1 the daemon refused, 2 wrong command line or an element that is not JSON, 3 no daemon,
    4 the time was up, 5 a gap was found: the copy of a feed is not what the daemon has.
    """
}
