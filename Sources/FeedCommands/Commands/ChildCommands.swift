import FeedClient
import FeedSystem

/// Commands on composed and segmented feeds.
extension Command {
  static let activate = Command(
    name: "activate", usage: ["FEED CHILD|none"], summary: "choose which child of a segmented feed shows",
    about: """
      Makes a child of a segmented feed the one that shows: by its index from 0, by its name, or none of them. An \
      index past the end is the last child.
      """,
    options: [animation],
    notes: """
      Examples:
        feedclient activate tabs 1
        feedclient activate tabs inbox/urgent
        feedclient activate tabs none
      """,
    operands: 2...2
  ) { invocation throws(Failure) in
    var params = invocation.changeParameters()
    let child = invocation.operand(1)
    params.add("child", json: child == "none" ? "-1" : Operands.child(child))
    return try invocation.request("activate", params.finish(), show: Show.mutation)
  }

  static let insertChild = Command(
    name: "insertChild", usage: ["FEED CHILD [--at N|--before NAME|--after NAME]"],
    summary: "add a child to a composed or segmented feed",
    about:
      "Adds a feed, or a bin of one, as a child of a composed or segmented feed: at its end unless a place is given.",
    options: [
      OptionDescription("at", value: .integer(0...Int.max), help: "the index that it shall have, from 0"),
      OptionDescription("before", value: .text("NAME"), help: "the child that shall come after it"),
      OptionDescription("after", value: .text("NAME"), help: "the child that shall come before it"),
      animation,
    ],
    notes: """
      Example:
        feedclient insertChild home inbox/urgent --before styles
      """,
    operands: 2...2
  ) { invocation throws(Failure) in
    var params = invocation.changeParameters()
    params.add("child", invocation.operand(1))
    let places = ["at", "before", "after"].filter(invocation.options.contains)
    if places.count > 1 { throw invocation.usage("--\(places[0]) and --\(places[1]): give one of them") }
    if let index = invocation.options.integer("at") { params.add("at", index) }
    for place in ["before", "after"] {
      if let name = invocation.options.text(place) { params.add(place, name) }
    }
    return try invocation.request("insertChild", params.finish(), show: Show.mutation)
  }

  static let removeChild = Command(
    name: "removeChild", usage: ["FEED CHILD"], summary: "take a child out of a composed or segmented feed",
    about:
      "Takes a child out of a composed or segmented feed, by its index from 0 or its name. The child itself stays.",
    options: [animation],
    notes: """
      Example:
        feedclient removeChild home styles
      """,
    operands: 2...2
  ) { invocation throws(Failure) in
    var params = invocation.changeParameters()
    let child = invocation.operand(1)
    params.add(Int(child) == nil ? "child" : "at", json: Operands.child(child))
    return try invocation.request("removeChild", params.finish(), show: Show.mutation)
  }
}
