import FeedClient
import FeedJSON
import FeedSystem
import FeedWire

/// The command about the group of hosts that share their feeds.
extension Command {
  static let group = Command(
    name: "group", usage: ["[status | leave | join | image]"], summary: "show or change the membership of the group",
    examples: """
      feedclient group status
      feedclient --json group | jq .members
      feedclient group leave
      feedclient group join
      """,
    about: """
      Shows the group of hosts that share their feeds: its members, the position of this host in the log and how far it lags \
      behind, the newest image, and whether the members agree on the digest of the state. 'leave' refuses changes here until \
      'join', while reads go on; 'image' publishes an image of the state for new members. A daemon \
      joins a group at its start, by 'feedd --group NAME'.
      """,
    operands: 0...1
  ) { invocation throws(Failure) in
    let action = invocation.operands.first ?? "status"
    let actions = ["status", "leave", "join", "image"]
    guard actions.contains(action) else {
      throw invocation.usage(
        "unknown action '\(action)'"
          + Spelling.suggestion(for: action, in: actions, otherwise: "; give one of \(actions.joined(separator: ", "))")
      )
    }
    var params = ParameterWriter()
    params.add("action", action)
    return try invocation.request("group", params.finish()) { result, console in
      if console.isJSON { return console.print(result) }
      if action != "status" { return console.print(done(action)) }
      show(result, console)
    }
  }

  private static func done(_ action: String) -> String {
    switch action {
    case "leave": "left the group; changes are refused here until: feedclient group join"
    case "join": "joins the group again"
    default: "an image is published when it is complete; see: feedclient group status"
    }
  }

  /// Shows the members as a table, and the rest as lines.
  private static func show(_ result: JSONView, _ console: Console) {
    guard let name = result.member("group")?.string else {
      return console.print("this daemon is in no group; start feedd with --group NAME")
    }
    console.print("group \(name): \(result.member("log")?.string ?? "")\(reason(result))")
    let (position, last) = (result.member("position")?.int ?? 0, result.member("last")?.int ?? 0)
    console.print("position \(position) of \(last), lag \(result.member("lag")?.int ?? 0)")
    if let image = result.member("image") {
      console.print(
        "image of position \(image.member("position")?.int ?? 0), \(image.member("bytes")?.int ?? 0) bytes, by "
          + "\(image.member("host")?.string ?? "") at \(image.member("time")?.string ?? "")")
    } else {
      console.print("no image yet")
    }
    if let digest = result.member("digest") {
      console.print("digest \(digest.member("value")?.string ?? "") at position \(digest.member("position")?.int ?? 0)")
    }
    Show.table("members", important: ["host", "agrees", "self", "seen", "pid"])(result, console)
  }

  private static func reason(_ result: JSONView) -> String {
    result.member("reason")?.string.map { " (\($0))" } ?? ""
  }
}
